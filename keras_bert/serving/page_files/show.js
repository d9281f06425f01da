// How answers are drawn. Texts are set as text, never as HTML: they are anybody's.

export function element(name, properties = {}, text = "") {
  const { role, ...others } = properties;
  const made = Object.assign(document.createElement(name), others);
  if (role) made.setAttribute("role", role);
  if (text) made.textContent = text;
  return made;
}

// A score as text; null is what JSON has in place of NaN and the infinities.
export function fixed(number) {
  return number === null ? "not finite" : number.toFixed(4);
}

// rows: [name, share from 0 to 1].
export function bars(rows) {
  const table = element("table", { className: "bars" });
  for (const [name, share] of rows) {
    const row = table.insertRow();
    row.append(element("th", { scope: "row" }, name));
    const bar = element("div", { className: "bar" });
    bar.style.width = `${100 * share}%`;
    row.insertCell().append(bar);
    const number = row.insertCell();
    number.className = "number";
    number.textContent = fixed(share);
  }
  return table;
}

// spans: {start, end, label} in characters as Python counts them, which are not JavaScript's.
export function marked(text, spans) {
  const characters = Array.from(text);
  const cut = (start, end) => characters.slice(start, end).join("");
  const labels = [...new Set(spans.map((span) => span.label))];
  const shown = element("p", { className: "marked", dir: "auto" });
  let place = 0;
  for (const { start, end, label } of spans) {
    const mark = element("mark", {}, cut(start, end));
    if (label) {
      mark.append(element("small", {}, label));
      const hue = (47 * labels.indexOf(label) + 215) % 360;
      mark.style.setProperty("--kind", `light-dark(hsl(${hue} 80% 88%), hsl(${hue} 45% 30%))`);
    }
    shown.append(cut(place, start), mark);
    place = end;
  }
  shown.append(cut(place));
  return shown;
}

// pieces: [S]; attention: [L][N][S][S], from each piece (row) to each (column).
export function attentionTable(pieces, attention) {
  const controls = element("div", { className: "row" });
  const pick = (title, count) => {
    const select = element("select", { id: `attention-${title}` });
    const names = Array.from({ length: count }, (_, number) => String(number + 1));
    select.append(...names.map((name) => element("option", {}, name)));
    const cell = element("div");
    cell.append(element("label", { htmlFor: select.id }, title), select);
    controls.append(cell);
    return select;
  };
  const layer = pick("Layer", attention.length);
  const head = pick("Head", attention[0].length);
  const place = element("div", { className: "scrolled" });
  const read = element("p", { className: "number", role: "status" });
  const draw = () => {
    const shares = attention[layer.selectedIndex][head.selectedIndex];
    read.textContent = "";
    place.replaceChildren(square(pieces, shares, (text) => { read.textContent = text; }));
  };
  layer.addEventListener("change", draw);
  head.addEventListener("change", draw);
  draw();
  const hint =
    "Each row is a piece and what it looks at; its shares sum to one. " +
    "Point at a square, or move among them by arrow keys, to read its share.";
  return [controls, element("p", { className: "hint" }, hint), place, read];
}

// A grid, as WAI-ARIA has it: one of its cells is among what Tab goes to, arrows move to others.
function square(pieces, shares, tell) {
  const table = element("table", { className: "attention", role: "grid" });
  table.setAttribute("aria-label", "Attention from each piece, a row, to each, a column");
  const top = table.createTHead().insertRow();
  top.append(element("th"));
  for (const piece of pieces) {
    const cell = element("th", { scope: "col" });
    cell.append(element("span", {}, piece));
    top.append(cell);
  }
  const body = table.createTBody();
  pieces.forEach((piece, from) => {
    const row = body.insertRow();
    row.append(element("th", { scope: "row" }, piece));
    pieces.forEach((other, to) => {
      const cell = row.insertCell();
      const share = shares[from][to];
      const said = `${piece} to ${other}: ${share.toFixed(3)}`;
      cell.setAttribute("role", "gridcell");
      cell.setAttribute("aria-label", said);
      cell.tabIndex = from || to ? -1 : 0;
      cell.addEventListener("pointerenter", () => tell(said));
      cell.addEventListener("focus", () => tell(said));
      // By the square root: most shares are small, and their differences are to be seen.
      const depth = (100 * Math.sqrt(share)).toFixed(1);
      cell.style.background = `color-mix(in srgb, var(--accent) ${depth}%, var(--raised))`;
    });
  });
  body.addEventListener("keydown", (event) => {
    const [down, right] = ARROWS[event.key] ?? [];
    const cell = event.target.closest("td");
    if (down === undefined || !cell) return;
    event.preventDefault();
    const next = body.rows[cell.parentNode.sectionRowIndex + down]?.cells[cell.cellIndex + right];
    if (next?.localName !== "td") return;
    cell.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });
  return table;
}

const ARROWS = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] };

// rows: [text, cosine].
export function nearestList(rows) {
  const list = element("ol", { className: "nearest" });
  for (const [text, cosine] of rows) {
    const item = element("li", {}, `${text} `);
    item.append(element("small", {}, cosine.toFixed(3)));
    list.append(item);
  }
  return list;
}
