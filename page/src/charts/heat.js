/**
 * Heat map of ratios: one row per setting, one column per kind of work; blue cells are cheaper than the
 * default, orange ones more expensive. Each cell shows its ratio.
 *
 * @typedef {{row: string, column: string, ratio: number, mark: string?, title: string}} HeatCell
 */

import { plot, cell, text, axisX, axisY } from "@observablehq/plot";
import { unique } from "../data.js";
import { times } from "../format.js";
import { common, frame, legend } from "./frame.js";

/** Upper ends of the classes; the seventh has none. */
const ENDS = [0.5, 0.8, 0.95, 1.05, 1.25, 2];
const NAMES = ["≤ 0.5×", "0.5 to 0.8", "0.8 to 0.95", "as the default", "1.05 to 1.25", "1.25 to 2", "≥ 2×"];

/** The class of a ratio. @param {number} ratio */
export function heat(ratio) {
  const at = ENDS.findIndex((end) => (end < 1 ? ratio <= end : ratio < end));
  return at < 0 ? ENDS.length : at;
}

/** A heading broken into lines of at most `most` letters. */
function wrapped(heading, most) {
  const result = [];
  for (const word of heading.split(" ")) {
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
  const longest = Math.max(...rows.map((row) => row.length));
  const marginLeft = Math.min(width * 0.36, longest * size * 0.58 + 12);
  const most = Math.max(5, Math.floor((width - marginLeft) / columns.length / (size * 0.56)));
  const lines = Math.max(...columns.map((column) => wrapped(column, most).split("\n").length));
  const shorten = (row) => {
    const fits = Math.floor(marginLeft / (size * 0.58)) - 1;
    return row.length > fits ? `${row.slice(0, fits - 1)}…` : row;
  };
  const drawing = plot({
    ...common(context),
    height: rows.length * 25 + lines * (size + 2) + 22,
    marginTop: lines * (size + 2) + 12,
    marginBottom: 6,
    marginLeft,
    marginRight: 2,
    padding: 0.06,
    x: { type: "band", domain: columns, label: null },
    y: { type: "band", domain: rows, label: null },
    marks: [
      axisX({ anchor: "top", tickSize: 0, fill: colours.soft, lineHeight: 1.1, tickFormat: (column) => wrapped(column, most) }),
      axisY({ tickSize: 0, fill: colours.ink, tickFormat: shorten }),
      cell(of.cells, {
        x: "column", y: "row", rx: 2, title: "title",
        fill: (one) => (Number.isFinite(one.ratio) ? colours[`heat${heat(one.ratio)}`] : colours.none),
        stroke: (one) => (Number.isFinite(one.ratio) ? "none" : colours.line),
      }),
      text(of.cells, {
        x: "column", y: "row", title: "title",
        text: (one) => (Number.isFinite(one.ratio) ? times(one.ratio) : (one.mark ?? "–")),
        fill: (one) => (Number.isFinite(one.ratio) ? colours.ink : colours.soft),
      }),
    ],
  });
  const entries = NAMES.map((heading, at) => ({ heading, colour: `heat${at}`, square: true }));
  return frame(context, drawing, { ...of, size, legend: legend(context, entries) });
}
