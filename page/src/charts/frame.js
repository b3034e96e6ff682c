/**
 * Assembles a chart: a drawing by Plot, a legend below and, for a standalone chart, a title above and a
 * background; domains and ticks of logarithmic axes; and words for readers who do not see charts.
 *
 * @typedef {{document: Document, colours: Object<string, string>, width: number, alone: boolean}} Context
 */

import { plot, dot, link, text } from "@observablehq/plot";
import { whole } from "../format.js";
import { FONT } from "./style.js";

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
