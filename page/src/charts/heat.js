/**
 * Heat map of ratios: one row per setting, one column per kind of work; blue cells are cheaper than the
 * default, orange ones more expensive. Each cell shows its ratio.
 *
 * @typedef {{row: string, column: string, ratio: number, mark: string?, title: string}} HeatCell
 */

import { plot, cell, text, axisY } from "@observablehq/plot";
import { unique } from "../data.js";
import { spaced, times } from "../format.js";
import { common, frame, legend } from "./frame.js";

/** Upper ends of the classes; the seventh has none. */
const ENDS = [0.5, 0.8, 0.95, 1.05, 1.25, 2];
const NAMES = ["≤ 0.5×", "0.5 to 0.8", "0.8 to 0.95", "as the default", "1.05 to 1.25", "1.25 to 2", "≥ 2×"];

/** Columns beside each other on a phone. */
const NARROW = 4;

/** The class of a ratio. @param {number} ratio */
export function heat(ratio) {
  const at = ENDS.findIndex((end) => (end < 1 ? ratio <= end : ratio < end));
  return at < 0 ? ENDS.length : at;
}

/** A heading broken into lines of at most `most` letters. */
function wrapped(heading, most) {
  const result = [];
  for (const word of spaced(heading).split(" ")) {
    const last = result[result.length - 1];
    if (last !== undefined && last.length + word.length < most) result[result.length - 1] = `${last} ${word}`;
    else result.push(word);
  }
  return result.join("\n");
}

/**
 * @param {import("./frame.js").Context} context
 * @param {{title: string, subtitle?: string, description: string, cells: HeatCell[]}} of
 * @returns {SVGElement}
 */
export function heatMap(context, of) {
  const { colours, width } = context;
  const rows = unique(of.cells.map((one) => one.row));
  const columns = unique(of.cells.map((one) => one.column));
  const narrow = width < 560;
  const size = narrow ? 10 : 12;
  // A phone has no room for many columns: they continue below.
  const across = narrow ? Math.min(columns.length, NARROW) : columns.length;
  const down = Math.ceil(columns.length / across);
  const place = (column) => ({ x: columns.indexOf(column) % across, fy: Math.floor(columns.indexOf(column) / across) });
  const longest = Math.max(...rows.map((row) => row.length));
  const marginLeft = Math.min(width * 0.36, longest * size * 0.58 + 12);
  const most = Math.max(5, Math.floor((width - marginLeft) / across / (size * 0.56)));
  const lines = Math.max(...columns.map((column) => wrapped(column, most).split("\n").length));
  const above = lines * (size + 2) + 12;
  // The end of a label is what distinguishes it.
  const shorten = (row) => {
    const fits = Math.floor(marginLeft / (size * 0.58)) - 1;
    return row.length > fits ? `…${row.slice(-(fits - 2))}` : row;
  };
  const cells = of.cells.map((one) => ({ ...one, ...place(one.column) }));
  const headings = columns.map((column) => ({ ...place(column), text: wrapped(column, most) }));
  const one = rows.length * 25;
  const drawing = plot({
    ...common(context),
    height: down * one + (down - 1) * above + above + 16,
    marginTop: above,
    marginBottom: 16,
    marginLeft,
    marginRight: 2,
    x: { type: "band", domain: headings.slice(0, across).map(({ x }) => x), label: null, padding: 0.06, axis: null },
    y: { type: "band", domain: rows, label: null, padding: 0.06 },
    fy: { axis: null, padding: down > 1 ? above / (one + above) : 0 },
    marks: [
      text(headings, { x: "x", fy: "fy", text: "text", frameAnchor: "top", lineAnchor: "bottom", dy: -6, lineHeight: 1.1, fill: colours.soft }),
      axisY({ tickSize: 0, fill: colours.ink, tickFormat: shorten }),
      cell(cells, {
        x: "x", y: "row", fy: "fy", rx: 2, title: "title",
        fill: (one) => (Number.isFinite(one.ratio) ? colours[`heat${heat(one.ratio)}`] : colours.none),
        stroke: (one) => (Number.isFinite(one.ratio) ? "none" : colours.line),
      }),
      text(cells, {
        x: "x", y: "row", fy: "fy", title: "title",
        text: (one) => (Number.isFinite(one.ratio) ? times(one.ratio) : (one.mark ?? "–")),
        fill: (one) => (Number.isFinite(one.ratio) ? colours.ink : colours.soft),
      }),
    ],
  });
  const entries = NAMES.map((heading, at) => ({ heading, colour: `heat${at}`, square: true }));
  return frame(context, drawing, { ...of, size, legend: legend(context, entries) });
}
