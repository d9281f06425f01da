// Texts as points of a plane, coloured by their labels.

import { element } from "./show.js";

const SVG = "http://www.w3.org/2000/svg";
const [WIDTH, HEIGHT, MARGIN] = [900, 560, 14];
// Distinguishable by colour-blind readers, as in keras_bert/pictures.
const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];
const OTHERS = "#9aa1ad";

// rows: {text, label, point: [x, y]}; fractions: of the variance, of each axis.
export function textMap(rows, fractions) {
  const colours = coloursOf(rows);
  const drawing = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "group", class: "map" });
  drawing.setAttribute("aria-label", `${rows.length} texts in a plane`);
  const read = element("p", { className: "read", role: "status" });
  const place = scales(rows.map(({ point }) => point));
  const radius = Math.min(6, Math.max(2.5, 90 / Math.sqrt(rows.length)));
  // From the left to the right, as the arrow keys move.
  const sorted = [...rows].sort((one, other) => one.point[0] - other.point[0]);
  const points = sorted.map(({ text, label, point }, number) => {
    const [x, y] = place(point);
    const fill = colours.get(label) ?? OTHERS;
    const circle = svg("circle", { cx: x, cy: y, r: radius, fill, role: "img", tabindex: -1 });
    const name = label ? `${label}: ${text}` : text;
    circle.setAttribute("aria-label", name);
    circle.addEventListener("pointerenter", () => { read.textContent = name; });
    circle.addEventListener("focus", () => { read.textContent = name; });
    circle.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      const next = points[number + step];
      if (!next) return;
      event.preventDefault();
      circle.setAttribute("tabindex", -1);
      next.setAttribute("tabindex", 0);
      next.focus();
    });
    return circle;
  });
  points[0].setAttribute("tabindex", 0);
  drawing.append(...points);
  const [across, up] = fractions.map((fraction) => `${Math.round(100 * fraction)} %`);
  const hint =
    `The plane has ${across} of the variance from left to right and ${up} from bottom to top. ` +
    "Point at a text, or move between texts with the arrow keys, to read it.";
  return [legend(rows, colours), element("p", { className: "hint" }, hint), read, drawing];
}

function svg(name, attributes) {
  const created = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) created.setAttribute(key, value);
  return created;
}

// label -> its colour, of the labels with the most texts.
function coloursOf(rows) {
  const names = [...counts(rows)].sort((one, other) => other[1] - one[1]).map(([name]) => name);
  return new Map(names.slice(0, COLOURS.length).map((name, i) => [name, COLOURS[i]]));
}

function counts(rows) {
  const found = new Map();
  for (const { label } of rows) found.set(label, (found.get(label) ?? 0) + 1);
  return found;
}

function legend(rows, colours) {
  const list = element("ul", { className: "legend" });
  const all = counts(rows);
  if (all.size === 1 && all.has("")) return list;
  const add = (text, colour) => {
    const item = element("li", {}, text);
    item.style.setProperty("--kind", colour);
    list.append(item);
  };
  let others = rows.length;
  for (const [name, colour] of colours) {
    add(`${name || "no label"} (${all.get(name)})`, colour);
    others -= all.get(name);
  }
  if (others > 0) add(`${all.size - colours.size} other labels (${others})`, OTHERS);
  return list;
}

// A function of a point to its place in the drawing: one scale for both axes, so that distances
// keep their ratios.
function scales(points) {
  const range = (axis) => {
    const values = points.map((point) => point[axis]);
    return [Math.min(...values), Math.max(...values)];
  };
  const [[left, right], [bottom, top]] = [range(0), range(1)];
  const room = [WIDTH - 2 * MARGIN, HEIGHT - 2 * MARGIN];
  const scale = Math.min(room[0] / (right - left || 1), room[1] / (top - bottom || 1));
  return ([x, y]) => [
    WIDTH / 2 + scale * (x - (left + right) / 2),
    HEIGHT / 2 - scale * (y - (bottom + top) / 2),
  ];
}
