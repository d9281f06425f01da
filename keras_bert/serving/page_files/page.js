// The page: a tab for each kind of task, with the models of the server.
//
// The task of a model is detected from its signatures in /v1/models/NAME/metadata: `serving_default`,
// or those that a tab names. The page uses the REST interface as any client does. `show.js` draws the
// answers.

import { readMetadata, ask, post, get } from "./rest.js";
import { element, fixed, bars, marked, attentionTable, nearestList, resultList } from "./show.js";
import { textMap } from "./map.js";
import { entities } from "./entities.js";

const SEARCHED = "an index"; // in place of a signature
const RERANKED = "reranked";

const TASKS = [
  {
    id: "fill-mask",
    title: "Fill in",
    needs: "a masked language model",
    signatures: ["serving_default", "span_boundary"],
    fits: (m) => m.takes("text") && m.gives("pieces", "probabilities"),
    fields: [{ name: "text", label: "Text with [MASK]", value: "The capital of France is [MASK]." }],
    show: showFilled,
  },
  {
    id: "surprisal",
    title: "Surprisal",
    needs: "a language model",
    signatures: ["surprisal"],
    fits: (m) => m.takes("text") && m.gives("pieces", "surprisals", "lengths"),
    fields: [{ name: "text", label: "Text", value: "The capital of France is Paris." }],
    show: showSurprisal,
  },
  {
    id: "follows",
    title: "Follows",
    needs: "a model with a next-sentence or sentence-order head",
    signatures: ["next_sentence", "sentence_order"],
    fits: (m) => m.takes("text_a", "text_b") && m.gives("probability"),
    fields: [
      { name: "text_a", label: "First text", value: "She opened the door." },
      { name: "text_b", label: "Second text", value: "It was raining outside." },
    ],
    show: showFollows,
  },
  {
    id: "classify",
    title: "Classify",
    needs: "a classifier",
    fits: (m) => m.gives("label", "score") && (m.takes("text") || m.takes("text_a", "text_b")),
    fields: [
      { name: "text", label: "Text", value: "Win cash prizes, call now" },
      { name: "text_a", label: "First text", value: "A man plays the guitar." },
      { name: "text_b", label: "Second text", value: "Somebody makes music." },
    ],
    show: showClass,
  },
  {
    id: "tag",
    title: "Tag",
    needs: "a tagger or a span classifier",
    fits: (m) => m.takes("text") && m.gives("starts", "ends", "lengths"),
    fields: [{ name: "text", label: "Text", value: "Ada Lovelace was born in London." }],
    show: showEntities,
  },
  {
    id: "question",
    title: "Question",
    needs: "a question answerer",
    fits: (m) => m.takes("question", "context") && m.gives("answer", "start", "end"),
    fields: [
      { name: "question", label: "Question", value: "Where was Ada Lovelace born?", rows: 2 },
      {
        name: "context",
        label: "Paragraph",
        value: "Ada Lovelace was born in London in 1815. She wrote about the Analytical Engine.",
        rows: 8,
      },
    ],
    show: showAnswer,
  },
  {
    id: "search",
    title: "Search",
    needs: "an index",
    signatures: [SEARCHED],
    fits: (index) => index.by.length > 0,
    fields: [
      { name: "text", label: "What to find", value: "How do I open a file?", rows: 2 },
      { name: "by", label: "By", options: ["both", "vectors", "words"] },
      { name: "order", label: "Order", options: [RERANKED, "as found"] },
      { name: "filter", label: "Only texts with these values: a line COLUMN=VALUE each", rows: 1 },
    ],
    show: showResults,
  },
  {
    id: "attention",
    title: "Attention",
    needs: "a model folder, named with --attention FOLDER,",
    fields: [{ name: "text", label: "Sentence", value: "The bank of the river was steep." }],
    show: showAttention,
  },
  {
    id: "similarity",
    title: "Compare",
    needs: "a text embedder",
    // Texts as they are, or the first behind the prompt of queries and the second of documents.
    signatures: ["serving_default", "query"],
    fits: (m) => m.takes("text") && m.gives("embedding"),
    fields: [
      { name: "first", label: "First text", value: "How do I reset my password?" },
      { name: "second", label: "Second text", value: "I forgot my password and cannot log in." },
    ],
    show: showSimilarity,
  },
  {
    id: "map",
    title: "Map",
    needs: "a text embedder or an encoder",
    fits: givesVectors,
    fields: [],
    file: "File with a text on each line (.txt), or a label, a tab and a text (.tsv)",
    show: showMap,
  },
  {
    id: "nearest",
    title: "Nearest",
    needs: "a text embedder or an encoder",
    fits: givesVectors,
    fields: [{ name: "text", label: "Sentence", value: "How do I open a file?" }],
    file: "File with a sentence on each line",
    show: showNearest,
  },
];

function givesVectors(model) {
  return model.takes("text") && (model.gives("sentence") || model.gives("embedding"));
}

const settings = await get("/try/models");
const models = [];
for (const name of settings.models) {
  try {
    models.push(...(await readMetadata(name)));
  } catch {
    // A model without a version that loads is none to try.
  }
}
for (const index of settings.indexes) {
  // A choice is shown where there is one.
  const choices = { by: index.by.length > 1, order: index.rerank };
  const takesAlso = (field) => choices[field] ?? true;
  models.push({ ...index, signature: SEARCHED, takesAlso });
}
build();

function build() {
  const tabs = document.getElementById("tabs");
  const panels = document.getElementById("panels");
  const pairs = TASKS.map((task) => {
    const signatures = task.signatures ?? ["serving_default"];
    // The usual signatures first.
    const mayFit = signatures.flatMap((name) => models.filter((model) => model.signature === name));
    const fitting = task.fits ? mayFit.filter(task.fits) : [];
    const tab = element("button", { role: "tab", id: `tab-${task.id}`, type: "button" }, task.title);
    tab.setAttribute("aria-controls", `panel-${task.id}`);
    tab.dataset.title = task.title;
    const panel = element("section", { role: "tabpanel", id: `panel-${task.id}`, tabIndex: -1 });
    panel.setAttribute("aria-labelledby", tab.id);
    const isServed = task.id === "attention" ? settings.attention : fitting.length > 0;
    if (isServed) {
      fillPanel(panel, task, fitting);
    } else {
      const text = `Nothing to try: ${task.needs} is not served.`;
      panel.append(element("p", { className: "hint" }, text));
    }
    tabs.append(tab);
    panels.append(panel);
    return { tab, panel, isServed };
  });
  const select = (number, focus) => {
    pairs.forEach(({ tab, panel }, other) => {
      tab.setAttribute("aria-selected", String(other === number));
      tab.tabIndex = other === number ? 0 : -1;
      panel.hidden = other !== number;
    });
    if (focus) pairs[number].tab.focus();
  };
  pairs.forEach(({ tab }, number) => {
    tab.addEventListener("click", () => select(number, false));
    tab.addEventListener("keydown", (event) => {
      const last = pairs.length - 1;
      const next = {
        ArrowRight: number === last ? 0 : number + 1,
        ArrowLeft: number === 0 ? last : number - 1,
        Home: 0,
        End: last,
      }[event.key];
      if (next === undefined) return;
      event.preventDefault();
      select(next, true);
    });
  });
  select(Math.max(0, pairs.findIndex(({ isServed }) => isServed)), false);
  document.body.dataset.ready = "yes";
}

function fillPanel(panel, task, fitting) {
  const form = element("form");
  const answer = element("div", { className: "answer" });
  answer.setAttribute("aria-live", "polite");
  const chosen = choice(task, fitting);
  if (chosen) form.append(chosen.label, chosen.select);
  const model = () => fitting[chosen ? chosen.select.selectedIndex : 0];
  const areas = task.fields.map((field) => {
    const id = `${task.id}-${field.name}`;
    const text = { id, rows: field.rows ?? 3, value: field.value ?? "", dir: "auto" };
    const area = field.options ? element("select", { id }) : element("textarea", text);
    for (const option of field.options ?? []) area.append(element("option", {}, option));
    const label = element("label", { htmlFor: id }, field.label);
    form.append(label, area);
    return { name: field.name, label, area };
  });
  let file = null;
  if (task.file) {
    file = element("input", { type: "file", id: `${task.id}-file`, accept: "text/*" });
    form.append(element("label", { htmlFor: file.id }, task.file), file);
  }
  const button = element("button", { type: "submit", className: "ask" }, "Ask");
  form.append(button);
  panel.append(form, answer);

  // Of attention and of two texts to compare, the fields are not the inputs of a model.
  const isOwn = ["attention", "similarity"].includes(task.id);
  const shown = () => areas.filter(({ name }) => isOwn || model().takesAlso(name));
  const showFields = () => {
    const now = shown();
    for (const one of areas) one.label.hidden = one.area.hidden = !now.includes(one);
  };
  if (chosen) chosen.select.addEventListener("change", showFields);
  showFields();
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    // A disabled button would lose the keyboard focus.
    if (button.ariaDisabled === "true") return;
    button.ariaDisabled = "true";
    const given = Object.fromEntries(shown().map(({ name, area }) => [name, area.value]));
    try {
      const report = (text) => answer.replaceChildren(text);
      answer.replaceChildren(...(await task.show(model(), given, { file, report })));
    } catch (error) {
      answer.replaceChildren(element("p", { className: "wrong", role: "alert" }, error.message));
    } finally {
      button.ariaDisabled = "false";
    }
  });
}

function choice(task, fitting) {
  if (fitting.length < 2) return null;
  const select = element("select", { id: `${task.id}-model` });
  const further = { span_boundary: "span", query: "query and document" };
  const title = ({ name, signature }) =>
    signature in further ? `${name}, ${further[signature]}` : name;
  select.append(...fitting.map((model) => element("option", {}, title(model))));
  return { select, label: element("label", { htmlFor: select.id }, "Model") };
}

async function showFilled(model, given) {
  const { pieces, probabilities, lengths } = await ask(model, given);
  if (lengths === 0) throw new Error("The text has no [MASK]. Write it in place of a word.");
  return pieces.slice(0, lengths).flatMap((row, position) => {
    const title = lengths === 1 ? "[MASK]" : `[MASK] ${position + 1} of ${lengths}`;
    const rows = row.map((token, rank) => [token, probabilities[position][rank]]);
    return [element("h2", {}, title), bars(rows)];
  });
}

async function showSurprisal(model, given) {
  const { pieces, surprisals, lengths } = await ask(model, given);
  const nats = surprisals.slice(0, lengths);
  if (lengths === 0) throw new Error("The text has no tokens.");
  const mean = nats.reduce((sum, x) => sum + x, 0) / lengths;
  const title = element("h2", {}, "-log p of each token ");
  title.append(element("small", {}, `mean ${fixed(mean)}, perplexity ${Math.exp(mean).toFixed(1)}`));
  return [title, bars(nats.map((x, token) => [pieces[token], x]), Math.max(...nats))];
}

async function showFollows(model, given) {
  const probability = await ask(model, given);
  return [bars([["The second text follows", probability], ["It does not", 1 - probability]])];
}

async function showClass(model, given) {
  const prediction = await ask(model, given);
  const { labels, probabilities = [] } = prediction;
  const title = element("h2", {}, `${prediction.label} `);
  title.append(element("small", {}, fixed(prediction.score)));
  // Exports of earlier versions name the most probable label only.
  const best = probabilities.indexOf(Math.max(...probabilities));
  const name = (i) => labels?.[i] ?? (i === best ? prediction.label : `label ${i + 1}`);
  const rows = probabilities.map((p, i) => [name(i), p]);
  return [title, bars(rows.sort((one, other) => other[1] - one[1]))];
}

async function showEntities(model, given) {
  const spans = entities(await ask(model, given));
  const count = element("p", { className: "hint" }, spans.length ? "" : "No spans found.");
  return [marked(given.text, spans), count];
}

async function showAnswer(model, given) {
  const { answer, score, start, end } = await ask(model, given);
  const title = element("h2", {}, answer === "" ? "No answer " : `${answer} `);
  title.append(element("small", {}, fixed(score)));
  const spans = answer === "" ? [] : [{ start, end, label: "" }];
  return [title, marked(given.context, spans)];
}

async function showAttention(model, given) {
  const { tokens, attention } = await post("/try/attention", given);
  return attentionTable(tokens, attention);
}

async function showResults(index, given) {
  const filter = {};
  for (const line of (given.filter ?? "").split("\n").filter((line) => line.trim())) {
    const [column, ...value] = line.split("=");
    if (!value.length) throw new Error(`Write a filter as COLUMN=VALUE, not "${line}".`);
    (filter[column.trim()] ??= []).push(value.join("=").trim());
  }
  const rerank = given.order === RERANKED;
  const asked = { text: given.text, by: given.by ?? index.by[0], filter, rerank };
  const { results } = await post(`/v1/indexes/${encodeURIComponent(index.name)}:search`, asked);
  if (!results[0].length) return [element("p", { className: "hint" }, "No texts found.")];
  return [resultList(results[0])];
}

async function showSimilarity(model, given) {
  const second = model.signature === "query" ? { ...model, signature: "document" } : model;
  const [one, other] = await Promise.all([
    ask(model, { text: given.first }),
    ask(second, { text: given.second }),
  ]);
  const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);
  const norms = Math.sqrt(dot(one, one) * dot(other, other));
  const cosine = norms > 0 ? dot(one, other) / norms : 0;
  const distance = Math.hypot(...one.map((x, i) => x - other[i]));
  const others = `Dot product ${fixed(dot(one, other))}, Euclidean distance ${fixed(distance)}`;
  return [bars([["Cosine", cosine]]), element("p", { className: "hint" }, others)];
}

async function showMap(model, given, { file, report }) {
  if (!file.files.length) throw new Error("Choose a file with a text on each line.");
  const [{ name }] = file.files;
  const lines = (await file.files[0].text()).split("\n").filter((line) => line.trim() !== "");
  const hasLabels = name.endsWith(".tsv");
  const rows = lines.map((line, number) => {
    const tab = line.indexOf("\t");
    if (hasLabels && tab < 0) throw new Error(`Line ${number + 1} has no tab after a label.`);
    const label = hasLabels ? line.slice(0, tab).trim() : "";
    return { label, text: line.slice(hasLabels ? tab + 1 : 0).trim() };
  });
  report(`Reading ${rows.length} texts …`);
  const texts = rows.map(({ text }) => text);
  const { points, fractions } = await post("/try/map", { model: model.name, texts });
  return textMap(rows.map((row, i) => ({ ...row, point: points[i] })), fractions);
}

async function showNearest(model, given, { file, report }) {
  if (!file.files.length) throw new Error("Choose a file with one sentence per line.");
  const lines = (await file.files[0].text()).split("\n").map((line) => line.trim());
  const texts = [...new Set(lines.filter((line) => line !== ""))];
  for (let first = 0; first < texts.length; first += settings.batch) {
    report(`Reading ${first} of ${texts.length} sentences …`);
    const some = texts.slice(first, first + settings.batch);
    await post("/try/vectors", { model: model.name, texts: some });
  }
  const { nearest } = await post("/try/nearest", { model: model.name, text: given.text, texts });
  return [nearestList(nearest.map(([number, cosine]) => [texts[number], cosine]))];
}
