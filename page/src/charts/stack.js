/**
 * Stacked bars: the parts of the instructions of one case, one bar per configuration.
 *
 * @typedef {{heading: string, parts: number[]}} Bar
 */

import { plot, barX, text, gridX, axisX, axisY } from "@observablehq/plot";
import { short, tick } from "../format.js";
import { common, frame, legend } from "./frame.js";

/**
 * @param {import("./frame.js").Context} context
 * @param {{title: string, subtitle?: string, description: string, x: string, parts: string[], bars: Bar[]}} of
 * @returns {SVGElement}
 */
export function stack(context, of) {
  const { colours, width } = context;
  const shown = of.parts.map((_, at) => at).filter((at) => of.bars.some((bar) => bar.parts[at] > 0));
  const sums = of.bars.map(({ heading, parts }) => ({ heading, sum: parts.reduce((one, other) => one + other, 0) }));
  const most = Math.max(1, ...sums.map((bar) => bar.sum));
  const pieces = of.bars.flatMap((bar) => {
    let before = 0;
    return shown.map((at) => {
      const from = before;
      before += bar.parts[at];
      return { row: bar.heading, at, from, to: before, title: `${bar.heading}, ${of.parts[at]}: ${short(bar.parts[at])}` };
    });
  });
  const fits = Math.max(12, Math.floor((width * 0.4) / 7));
  const shorten = (row) => (row.length > fits ? `${row.slice(0, fits - 1)}…` : row);
  const marginLeft = Math.max(60, ...sums.map((bar) => shorten(bar.heading).length * 7 + 14));
  const drawing = plot({
    ...common(context),
    height: of.bars.length * 28 + 56,
    marginLeft,
    marginRight: 62,
    marginTop: 8,
    marginBottom: 42,
    x: { domain: [0, most], label: null },
    y: { type: "band", domain: sums.map((bar) => bar.heading), label: null, padding: 0.28 },
    marks: [
      gridX({ ticks: Math.max(2, Math.floor(width / 160)), stroke: colours.line, strokeOpacity: 1 }),
      axisX({ ticks: Math.max(2, Math.floor(width / 160)), tickFormat: tick, fill: colours.soft, stroke: colours.line, tickSize: 4, label: of.x, labelArrow: "none" }),
      axisY({ tickSize: 0, fill: colours.ink, tickFormat: shorten }),
      shown.map((part) =>
        barX(pieces.filter((piece) => piece.at === part), {
          x1: "from", x2: "to", y: "row", fill: colours[`part${part}`], stroke: colours.paper, strokeWidth: 0.8, title: "title",
        }),
      ),
      text(sums, { x: "sum", y: "heading", text: (bar) => short(bar.sum), textAnchor: "start", dx: 6, fill: colours.ink }),
    ],
  });
  const entries = shown.map((at) => ({ heading: of.parts[at], colour: `part${at}`, square: true }));
  return frame(context, drawing, { ...of, legend: legend(context, entries) });
}
