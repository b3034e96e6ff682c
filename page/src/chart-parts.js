/**
 * What all charts have in common: the colours, the style of each configuration, and the assembly of a chart from a
 * drawing by Plot, a legend below and, for a standalone chart, a title above and a background; domains and ticks of
 * logarithmic axes; words for readers who do not see charts; and the place of a chart on the page.
 *
 * The colours remain distinguishable with colour vision deficiency (after Okabe and Ito, darker on white). Charts use
 * their names: CSS variables on the page, values in standalone charts. A configuration has a colour, a dash pattern and a
 * symbol, so that configurations never differ by colour only.
 *
 * @typedef {{document: Document, colours: Object<string, string>, width: number, alone: boolean}} Context
 * @typedef {{key: string, heading: string, colour: string, dash: string?, symbol: string, width: number}} Series
 * @typedef {{title: string, about?: string, command?: string, file: string,
 *   draw: (context: Context) => SVGElement,
 *   controls?: Node[], table?: Node?, tableTitle?: string, level?: number}} Figure
 */

import { plot, dot, link, text } from "@observablehq/plot";
import { copyable } from "./command.js";
import { heading, isFloor } from "./data.js";
import { h, id } from "./dom.js";
import { whole } from "./format.js";

const COLOURS = {
  light: {
    paper: "#ffffff",
    ink: "#1c2126",
    soft: "#5b6470",
    line: "#dfe3e8",
    ghost: "#7d8590",
    c0: "#1c2126",
    c1: "#0072b2",
    c2: "#2e95d3",
    c3: "#c44e00",
    c4: "#008561",
    c5: "#b07d00",
    c6: "#b5508c",
    c7: "#6a3fb5",
    floor: "#7d8590",
    part0: "#0072b2",
    part1: "#8fc1e3",
    part2: "#e0a458",
    part3: "#c44e00",
    part4: "#6a3fb5",
    part5: "#5fae94",
    part6: "#b5508c",
    part7: "#c3c9d1",
    heat0: "#8cbce0",
    heat1: "#b9d7ed",
    heat2: "#dfecf6",
    heat3: "#f2f3f5",
    heat4: "#fbe5d2",
    heat5: "#f6c79d",
    heat6: "#eda15f",
    none: "#ffffff",
  },
  dark: {
    paper: "#14181d",
    ink: "#e6e9ed",
    soft: "#a3acb7",
    line: "#2c333b",
    ghost: "#8d96a1",
    c0: "#f2f4f7",
    c1: "#4da3e0",
    c2: "#8fd0ff",
    c3: "#ff8a4c",
    c4: "#2bc79b",
    c5: "#efba3f",
    c6: "#e79ac8",
    c7: "#b79cf0",
    floor: "#8d96a1",
    part0: "#3d8fd1",
    part1: "#2b5475",
    part2: "#d99a45",
    part3: "#ef7b3c",
    part4: "#9d80dd",
    part5: "#3f9c80",
    part6: "#cf7fb0",
    part7: "#56606b",
    heat0: "#1f5f92",
    heat1: "#214d70",
    heat2: "#213a50",
    heat3: "#262c33",
    heat4: "#4a3524",
    heat5: "#6e451f",
    heat6: "#95541a",
    none: "#14181d",
  },
};

const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";

/** Colours as values. @param {"light"|"dark"} name */
export function values(name) {
  return COLOURS[name];
}

/** Colours as variables of the page. */
const VARIABLES = Object.fromEntries(Object.keys(COLOURS.light).map((name) => [name, `var(--${name})`]));

/** The colours as CSS declarations. @param {"light"|"dark"} name */
export function declarations(name) {
  return Object.entries(COLOURS[name])
    .map(([key, value]) => `--${key}:${value}`)
    .join(";");
}

/** Returns `true` if the page is dark: the system's preference, unless the reader has chosen. */
export function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

const KNOWN = {
  btree: ["c0", null, "circle", 2.6],
  "sqlite/delete": ["c1", "7 3", "square", 1.8],
  "sqlite/truncate": ["c2", "2 3", "triangle", 1.8],
  "sqlite/persist": ["c3", null, "diamond", 1.8],
  "sqlite/persist,cache_size=1000": ["c3", null, "circle", 2.6],
  "sqlite/memory": ["c4", "9 3 2 3", "star", 1.8],
  "sqlite/off": ["c5", null, "square", 1.8],
  "sqlite/wal": ["c6", "4 3", "wye", 1.8],
  "sqlite-vfs": ["c7", null, "triangle", 2.6],
  append: ["floor", "1 3", "times", 1.4],
  array: ["floor", "4 4", "plus", 1.4],
};

/** Styles of other configurations, in order. Once all are taken, symbols come again in other colours. */
const OTHERS = [
  ["c1", null, "circle", 1.8],
  ["c3", "7 3", "square", 1.8],
  ["c4", "2 3", "triangle", 1.8],
  ["c6", "9 3 2 3", "diamond", 1.8],
  ["c7", null, "star", 1.8],
  ["c5", "4 3", "wye", 1.8],
  ["c2", null, "times", 1.8],
  ["c0", "5 2 1 2", "plus", 1.8],
];

/** @param {import("./data.js").Report} report @param {string[]} keys @returns {Series[]} */
export function series(report, keys) {
  const known = keys.filter((key) => Object.hasOwn(KNOWN, key)).map((key) => KNOWN[key]);
  const taken = new Set(known.map(([colour]) => colour));
  const free = OTHERS.filter(([colour]) => !taken.has(colour));
  const styles = others(free.length ? free : OTHERS, known);
  return keys.map((key) => {
    let style = Object.hasOwn(KNOWN, key) ? KNOWN[key] : null;
    if (!style) style = isFloor(report, key) ? KNOWN.array : styles.next().value;
    const [colour, dash, symbol, width] = style;
    return { key, heading: heading(report, key), colour, dash, symbol, width };
  });
}

/** Styles in their order, then their symbols in other colours, and all again. Those of `known` are left out. */
function* others(pool, known) {
  const look = ([colour, , symbol]) => `${colour} ${symbol}`;
  const looks = new Set(known.map(look));
  for (let number = 0; ; number += 1) {
    const round = Math.floor(number / pool.length);
    const [colour] = pool[(number + round) % pool.length];
    const [, dash, symbol, width] = pool[number % pool.length];
    const style = [colour, dash, symbol, width];
    if (!looks.has(look(style))) yield style;
  }
}

const SVG = "http://www.w3.org/2000/svg";
/** Estimated width of a letter, because charts are also drawn without a browser. */
const LETTER = 7;
const ROW = 22;
/** Between the lines of one entry. */
const LINE = 15;

const SIZE = 12;

/** Plot's options for all charts. @param {Context} context */
export function common({ document, width }) {
  return { document, width };
}

/**
 * @param {Context} context
 * @param {SVGElement} drawing
 * @param {{title: string, subtitle?: string, description: string, legend?: SVGElement?,
 *   size?: number}} parts `size` is the font size of the drawing
 * @returns {SVGElement}
 */
export function frame({ document, colours, width, alone }, drawing, { title, subtitle, description, legend, size: letters = SIZE }) {
  const margin = alone ? 16 : 0;
  const above = alone ? (subtitle ? 58 : 38) : 0;
  const height = above + size(drawing) + (legend ? size(legend) + 6 : 0) + margin;
  const svg = element(document, "svg", {
    xmlns: SVG,
    width: width + 2 * margin,
    height,
    viewBox: `0 0 ${width + 2 * margin} ${height}`,
    "font-family": FONT,
    "font-size": SIZE,
    fill: colours.soft,
    role: "img",
    "aria-label": `${title}. ${description}`,
  });
  if (alone) {
    svg.append(element(document, "rect", { width: "100%", height: "100%", fill: colours.paper }));
    svg.append(label(document, title, { x: margin, y: 28, fill: colours.ink, "font-size": 16, "font-weight": 600 }));
    if (subtitle) svg.append(label(document, subtitle, { x: margin, y: 47, fill: colours.soft }));
  }
  svg.append(moved(document, drawing, margin, above, letters));
  if (legend) svg.append(moved(document, legend, margin, above + size(drawing) + 6, SIZE));
  return svg;
}

/** Plot's drawing as a group, without its style element, which is for standalone drawings. */
function moved(document, drawing, x, y, letters) {
  const group = element(document, "g", {
    transform: `translate(${x},${y})`,
    "font-size": letters,
    "text-anchor": drawing.getAttribute("text-anchor") ?? "start",
  });
  for (const child of [...drawing.childNodes]) {
    if (child.nodeName.toLowerCase() !== "style") group.append(child);
  }
  // The chart is one image with one label; its parts have none.
  for (const part of group.querySelectorAll("[aria-label], [aria-hidden], [aria-description]")) {
    for (const name of ["aria-label", "aria-hidden", "aria-description"]) part.removeAttribute(name);
  }
  return group;
}

function size(drawing) {
  return Number(drawing.getAttribute("height"));
}

/** @returns {SVGElement} */
function element(document, name, attributes) {
  const created = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) created.setAttribute(key, value);
  return created;
}

function label(document, content, attributes) {
  const created = element(document, "text", attributes);
  created.textContent = content;
  return created;
}

/**
 * The legend: lines with symbols, or coloured squares, with their headings.
 * @param {Context} context
 * @param {Array<{heading: string, colour: string, dash?: string?, symbol?: string, width?: number, square?: boolean}>} entries
 * @returns {SVGElement?}
 */
export function legend(context, entries) {
  if (!entries.length) return null;
  const { colours, width } = context;
  let [x, y] = [0, 0];
  const placed = entries.map((entry) => {
    const swatch = entry.square ? 16 : 34;
    const room = swatch + 8 + entry.heading.length * LETTER + 18;
    if (x > 0 && x + room > width) [x, y] = [0, y + ROW];
    const lines = broken(entry.heading, Math.floor((width - swatch - 6) / LETTER));
    const at = { ...entry, heading: lines.join("\n"), x, y: y + ROW / 2, text: x + swatch + 6, swatch };
    x += room;
    y += (lines.length - 1) * LINE;
    return at;
  });
  const height = y + ROW;
  const colour = (entry) => colours[entry.colour];
  const long = (entry) => entry.heading.includes("\n");
  const lines = placed.filter((entry) => !entry.square);
  const squares = placed.filter((entry) => entry.square);
  return plot({
    ...common(context),
    height,
    margin: 0,
    axis: null,
    x: { domain: [0, width], range: [0, width] },
    y: { domain: [0, height], range: [0, height] },
    marks: [
      lines
        .filter((entry) => !entry.dotsOnly)
        .map((entry) =>
          link([entry], {
            x1: entry.x, x2: entry.x + 28, y1: "y", y2: "y",
            stroke: colour(entry), strokeWidth: entry.width ?? 1.8, strokeDasharray: entry.dash ?? undefined,
          }),
        ),
      lines.map((entry) =>
        dot([entry], { x: entry.x + 14, y: "y", r: 4, symbol: entry.symbol ?? "circle", ...filled(entry, colours) }),
      ),
      squares.map((entry) =>
        dot([entry], { x: entry.x + 8, y: "y", r: 5.5, symbol: "square", fill: colour(entry) }),
      ),
      text(placed.filter((entry) => !long(entry)), { x: "text", y: "y", text: "heading", textAnchor: "start", fill: colours.ink }),
      placed.some(long) ? text(placed.filter(long), { x: "text", y: "y", text: "heading", textAnchor: "start", fill: colours.ink, lineAnchor: "top", dy: -SIZE / 2, lineHeight: LINE / SIZE }) : [],
    ],
  });
}

/** A heading that is longer than the chart is wide, in lines. */
function broken(heading, most) {
  if (heading.length <= most) return [heading];
  const lines = [""];
  for (const word of heading.split(" ")) {
    const last = lines.length - 1;
    if (lines[last] && lines[last].length + word.length >= most) lines.push(word);
    else lines[last] += lines[last] ? ` ${word}` : word;
  }
  return lines;
}

/** Symbols made of lines have a stroke, others are filled. @param {{colour: string, symbol: string, ghost?: boolean}} of */
export function filled(of, colours) {
  const colour = colours[of.colour];
  if (of.ghost) return { fill: colours.paper, stroke: colour, strokeWidth: 1.4 };
  if (of.symbol === "times" || of.symbol === "plus") return { stroke: colour, strokeWidth: 1.6 };
  return { fill: colour, stroke: colours.paper, strokeWidth: 0.8 };
}

/**
 * A domain slightly wider than all values.
 * @param {number[]} values
 * @returns {[number, number]}
 */
export function domain(values) {
  const positive = values.filter((value) => value > 0 && Number.isFinite(value));
  if (!positive.length) return [1, 10];
  const [low, high] = [Math.min(...positive), Math.max(...positive)];
  const room = Math.max(1.15, (high / low) ** 0.05);
  return [low / room, high * room];
}

/** Round numbers in a domain: powers of ten, with steps in between if there are few. @param {[number, number]} of */
export function ticks([low, high], most = 8) {
  for (const steps of [[1, 1.5, 2, 3, 4, 5, 6, 8], [1, 2, 5], [1, 3], [1]]) {
    const found = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += 1) {
      for (const step of steps) {
        const value = step * 10 ** power;
        if (value >= low && value <= high) found.push(Number(value.toPrecision(6)));
      }
    }
    if (found.length <= most) return found;
  }
  const all = [];
  const apart = Math.ceil(Math.log10(high / low) / most);
  for (let power = Math.ceil(Math.log10(low)); power <= Math.log10(high); power += apart) all.push(10 ** power);
  return all;
}

/** The least and the greatest value in words. */
export function extremes(points, series, value, text = whole) {
  const name = (point) => series.find((of) => of.key === point.key)?.heading ?? point.key;
  const ordered = [...points].sort((one, other) => value(one) - value(other));
  if (!ordered.length) return "nothing";
  const [low, high] = [ordered[0], ordered[ordered.length - 1]];
  if (low === high) return `${name(low)} ${text(value(low))}`;
  return `from ${name(low)} ${text(value(low))} to ${name(high)} ${text(value(high))}`;
}

/** Width of a saved chart. */
const SAVED = 960;

/** Functions that redraw the figures, by canvas. @type {WeakMap<Element, () => void>} */
const redraws = new WeakMap();
const observer =
  typeof ResizeObserver === "undefined"
    ? null
    : new ResizeObserver((entries) => {
        for (const { target } of entries) redraws.get(target)?.();
      });

/**
 * A chart on the page: heading, description, drawing, command, a button that saves it, and the
 * table of its figures. It is drawn again when its width changes.
 * @param {Figure} of
 * @returns {{element: HTMLElement, redraw: () => void}}
 */
export function figure(of) {
  const heading = id("figure");
  const canvas = h("div", { class: "canvas" });
  let drawn = 0;
  const draw = (width) => {
    drawn = width;
    canvas.replaceChildren(of.draw({ document, colours: VARIABLES, width, alone: false }));
  };
  redraws.set(canvas, () => {
    const width = Math.floor(canvas.clientWidth);
    if (width > 0 && width !== drawn) draw(width);
  });
  observer?.observe(canvas);
  const element = h(
    "figure",
    { class: "figure", "aria-labelledby": heading },
    h(`h${of.level ?? 4}`, { id: heading }, of.title),
    of.about && h("p", { class: "about" }, of.about),
    of.controls?.length ? h("div", { class: "controls" }, of.controls) : null,
    canvas,
    h(
      "figcaption",
      { class: "below" },
      h("button", { type: "button", class: "quiet", onclick: () => save(of) }, "Save as SVG",
        h("span", { class: "hidden" }, `: ${of.title}`)),
      of.command && copyable(of.command, of.title),
    ),
    of.table && h("details", {}, h("summary", {}, of.tableTitle ?? "The figures"), of.table),
  );
  return { element, redraw: () => drawn > 0 && draw(drawn) };
}

/** Downloads the chart as a file, with the current colours as values. */
function save(of) {
  const svg = of.draw({ document, colours: values(isDark() ? "dark" : "light"), width: SAVED, alone: true });
  const text = `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(svg)}\n`;
  const address = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  h("a", { href: address, download: `${of.file}.svg` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
