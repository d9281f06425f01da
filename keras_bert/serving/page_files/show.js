// How answers are drawn. Texts are set as text, never as HTML: they may come from anybody.

export function element(name, properties = {}, text = "") {
  const { role, ...others } = properties;
  const created = Object.assign(document.createElement(name), others);
  if (role) created.setAttribute("role", role);
  if (text) created.textContent = text;
  return created;
}

// A score as text; null is NaN or infinite.
export function fixed(number) {
  return number === null ? "not finite" : number.toFixed(4);
}

// rows: [name, number up to most]; a number below 0 has no bar.
export function bars(rows, most = 1) {
  const table = element("table", { className: "bars" });
  for (const [name, value] of rows) {
    const row = table.insertRow();
    row.append(element("th", { scope: "row" }, name));
    const bar = element("div", { className: "bar" });
    bar.style.width = `${most > 0 ? Math.max(0, (100 * value) / most) : 0}%`;
    row.insertCell().append(bar);
    const number = row.insertCell();
    number.className = "number";
    number.textContent = fixed(value);
  }
  return table;
}

// spans: {start, end, label} in characters as Python counts them (code points).
export function marked(text, spans) {
  const characters = Array.from(text);
  const cut = (start, end) => characters.slice(start, end).join("");
  const labels = [...new Set(spans.map((span) => span.label))];
  const shown = element("p", { className: "marked", dir: "auto" });
  let position = 0;
  for (const { start, end, label } of spans) {
    const mark = element("mark", {}, cut(start, end));
    if (label) {
      mark.append(element("small", {}, label));
      const hue = (47 * labels.indexOf(label) + 215) % 360;
      mark.style.setProperty("--kind", `light-dark(hsl(${hue} 80% 88%), hsl(${hue} 45% 30%))`);
    }
    shown.append(cut(position, start), mark);
    position = end;
  }
  shown.append(cut(position));
  return shown;
}

const AROUND = 200; // characters that are shown before and after a passage
const SHOWN = 600; // characters of a text without passages

// rows: the objects of results; with `passage`, `start` and `end` it is highlighted.
export function resultList(rows) {
  const list = element("ol", { className: "results" });
  for (const { score, id, text, passage, start, end, rank, ...others } of rows) {
    const item = element("li");
    const title = element("p", { className: "id" }, `${id} `);
    title.append(element("small", {}, fixed(score)));
    item.append(title, excerpt(text, passage === undefined ? null : { start, end, label: "" }));
    const values = Object.entries(others).filter(([, value]) => value !== null);
    const columns = values.map(([name, value]) => `${name}: ${value}`).join(" · ");
    if (columns) item.append(element("p", { className: "hint" }, columns));
    list.append(item);
  }
  return list;
}

// A text, or what is around its passage, in characters as Python counts them.
function excerpt(text, passage) {
  const characters = Array.from(text);
  const first = passage ? Math.max(0, passage.start - AROUND) : 0;
  const last = passage ? passage.end + AROUND : SHOWN;
  const before = first > 0 ? "…" : "";
  const after = last < characters.length ? "…" : "";
  const cut = before + characters.slice(first, last).join("") + after;
  if (!passage || (passage.start === 0 && passage.end >= characters.length)) return marked(cut, []);
  const move = before.length - first;
  return marked(cut, [{ ...passage, start: passage.start + move, end: passage.end + move }]);
}

// tokens: [S]; attention: [L][N][S][S], from each token (row) to each (column).
export function attentionTable(tokens, attention) {
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
  const container = element("div", { className: "scrolled" });
  const read = element("p", { className: "number", role: "status" });
  const draw = () => {
    const weights = attention[layer.selectedIndex][head.selectedIndex];
    read.textContent = "";
    container.replaceChildren(square(tokens, weights, (text) => { read.textContent = text; }));
  };
  layer.addEventListener("change", draw);
  head.addEventListener("change", draw);
  draw();
  const hint =
    "Each row shows the attention of a token to all tokens; it sums to one. " +
    "Point at a square, or move between squares with the arrow keys, to read its value.";
  return [controls, element("p", { className: "hint" }, hint), container, read];
}

// A grid as in WAI-ARIA: Tab moves to one of its cells, arrow keys move to others.
function square(tokens, weights, show) {
  const table = element("table", { className: "attention", role: "grid" });
  table.setAttribute("aria-label", "Attention from each token (row) to each token (column)");
  const top = table.createTHead().insertRow();
  top.append(element("th"));
  for (const token of tokens) {
    const cell = element("th", { scope: "col" });
    cell.append(element("span", {}, token));
    top.append(cell);
  }
  const body = table.createTBody();
  tokens.forEach((token, from) => {
    const row = body.insertRow();
    row.append(element("th", { scope: "row" }, token));
    tokens.forEach((other, to) => {
      const cell = row.insertCell();
      const weight = weights[from][to];
      const label = `${token} to ${other}: ${weight.toFixed(3)}`;
      cell.setAttribute("role", "gridcell");
      cell.setAttribute("aria-label", label);
      cell.tabIndex = from || to ? -1 : 0;
      cell.addEventListener("pointerenter", () => show(label));
      cell.addEventListener("focus", () => show(label));
      // The square root shows differences between small values, which most are.
      const depth = (100 * Math.sqrt(weight)).toFixed(1);
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
