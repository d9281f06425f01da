// The spans in a prediction: {start, end, label}, in characters (code points).

export function entities(answer) {
  const count = answer.lengths;
  const starts = answer.starts.slice(0, count);
  const ends = answer.ends.slice(0, count);
  if (answer.labels) {
    const spans = starts.map((start, i) => ({ start, end: ends[i], label: answer.labels[i] }));
    return withoutOverlaps(spans);
  }
  return ofTags(answer.tags.slice(0, count), starts, ends);
}

// Words with tags such as B-PER, I-PER, O; a tag without a prefix marks one word.
function ofTags(tags, starts, ends) {
  const spans = [];
  let open = null;
  tags.forEach((tag, i) => {
    const [, prefix, label] = /^([BIESLUMW])-(.+)$/.exec(tag) ?? [null, "", tag];
    const continues = open !== null && open.label === label && "IELM".includes(prefix) && prefix !== "";
    if (continues) {
      open.end = ends[i];
    } else {
      open = tag === "O" ? null : { start: starts[i], end: ends[i], label };
      if (open) spans.push(open);
    }
    if (open && (prefix === "" || "ESLUW".includes(prefix))) open = null;
  });
  return spans;
}

// Of overlapping spans, the longest are marked.
function withoutOverlaps(spans) {
  const marked = [];
  for (const span of [...spans].sort((a, b) => b.end - b.start - (a.end - a.start))) {
    if (marked.every((other) => span.end <= other.start || other.end <= span.start)) marked.push(span);
  }
  return marked.sort((a, b) => a.start - b.start);
}
