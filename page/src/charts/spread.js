/**
 * Costs of single operations: one row per configuration, from the cheapest to the most expensive, with percentiles.
 *
 * @typedef {{heading: string, colour: string, min: number, p50: number, p90: number, p99: number, max: number}} SpreadRow
 */

import { plot, dot, link, gridX, axisX, axisY } from "@observablehq/plot";
import { tick, whole } from "../format.js";
import { common, filled, frame, legend, domain, ticks } from "./frame.js";

const MARKS = [
  ["min", "times", 3.2, "cheapest"],
  ["p50", "circle", 5.5, "half are cheaper (p50)"],
  ["p90", "square", 4.6, "p90"],
  ["p99", "triangle", 4.6, "p99"],
  ["max", "diamond", 4.6, "most expensive"],
];

/**
 * @param {import("./frame.js").Context} context
 * @param {{title: string, subtitle?: string, description: string, x: string, rows: SpreadRow[]}} of
 * @returns {SVGElement}
 */
export function spread(context, of) {
  const { colours, width } = context;
  const across = domain(of.rows.flatMap((row) => MARKS.map(([key]) => row[key])));
  const fits = Math.max(12, Math.floor((width * 0.4) / 7));
  const shorten = (row) => (row.length > fits ? `${row.slice(0, fits - 1)}…` : row);
  const marginLeft = Math.max(60, ...of.rows.map((row) => shorten(row.heading).length * 7 + 14));
  const at = ticks(across, Math.max(3, Math.floor((width - marginLeft) / 62)));
  const drawing = plot({
    ...common(context),
    height: of.rows.length * 28 + 58,
    marginLeft,
    marginRight: 16,
    marginTop: 10,
    marginBottom: 42,
    x: { type: "log", domain: across, label: null },
    y: { type: "band", domain: of.rows.map((row) => row.heading), label: null },
    marks: [
      gridX(at, { stroke: colours.line, strokeOpacity: 1 }),
      axisX(at, { text: tick, fill: colours.soft, stroke: colours.line, tickSize: 4, label: of.x, labelArrow: "none" }),
      axisY({ tickSize: 0, fill: colours.ink, tickFormat: shorten }),
      of.rows.flatMap((row) => [
        link([row], { x1: "min", x2: "max", y1: "heading", y2: "heading", stroke: colours[row.colour], strokeOpacity: 0.45, strokeWidth: 2 }),
        MARKS.map(([key, symbol, r, name]) =>
          dot([row], {
            x: key, y: "heading", r, symbol, ...filled({ colour: row.colour, symbol }, colours),
            title: () => `${row.heading}, ${name}: ${whole(row[key])}`,
          }),
        ),
      ]),
    ],
  });
  const entries = MARKS.map(([, symbol, , heading]) => ({ heading, symbol, colour: "soft", dotsOnly: true }));
  return frame(context, drawing, { ...of, legend: legend(context, entries) });
}
