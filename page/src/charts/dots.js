/**
 * Dot chart for any section: one row per case, one dot per configuration, the cost on a logarithmic axis.
 *
 * @typedef {{row: string, key: string, x: number, title: string, ghost?: boolean}} Dot
 */

import { plot, dot, ruleX, gridX, axisX, axisY, link, tickX } from "@observablehq/plot";
import { unique } from "../data.js";
import { tick } from "../format.js";
import { common, filled, frame, legend, domain, ticks } from "./frame.js";

/** A label shortened to the available width, down to a phone's. */
function shortened(label, width) {
  const most = Math.max(14, Math.floor((width * 0.42) / 7));
  return label.length > most ? `${label.slice(0, most - 1)}…` : label;
}

/**
 * @param {import("./frame.js").Context} context
 * @param {{title: string, subtitle?: string, description: string, x: string, base?: number,
 *   series: import("./series.js").Series[], dots: Dot[], ghosts?: string,
 *   means?: Array<{row: string, key: string, x: number, title: string}>}} of
 * @returns {SVGElement}
 */
export function dots(context, of) {
  const { colours, width } = context;
  const rows = unique(of.dots.map((one) => one.row));
  const shown = of.dots.filter((one) => one.x > 0);
  const across = domain([...shown.map((one) => one.x), ...(of.base ? [of.base] : [])]);
  const labels = new Map(rows.map((row) => [row, shortened(row, width)]));
  const longest = Math.max(...rows.map((row) => labels.get(row).length), 6);
  const marginLeft = Math.min(width * 0.45, longest * 7 + 16);
  const at = ticks(across, Math.max(3, Math.floor((width - marginLeft) / 62)));
  const spans = rows.flatMap((row) => {
    const xs = shown.filter((one) => one.row === row && !one.ghost).map((one) => one.x);
    return xs.length > 1 ? [{ row, low: Math.min(...xs), high: Math.max(...xs) }] : [];
  });
  const drawing = plot({
    ...common(context),
    height: rows.length * 24 + 62,
    marginLeft,
    marginRight: 14,
    marginTop: 14,
    marginBottom: 44,
    x: { type: "log", domain: across, label: null },
    y: { type: "band", domain: rows, label: null },
    marks: [
      gridX(at, { stroke: colours.line, strokeOpacity: 1 }),
      of.base ? ruleX([of.base], { stroke: colours.soft }) : [],
      axisX(at, { text: tick, fill: colours.soft, tickSize: 4, stroke: colours.line, label: of.x, labelArrow: "none" }),
      axisY({ tickFormat: (row) => labels.get(row), fill: colours.ink, tickSize: 0 }),
      link(spans, { x1: "low", x2: "high", y1: "row", y2: "row", stroke: colours.line, strokeWidth: 3, strokeLinecap: "round" }),
      of.series.flatMap((series) => {
        const own = shown.filter((one) => one.key === series.key);
        const mark = (ghost) =>
          dot(own.filter((one) => Boolean(one.ghost) === ghost), {
            x: "x", y: "row", r: 4.6, symbol: series.symbol, title: "title", ...filled({ ...series, ghost }, colours),
          });
        const means = (of.means ?? []).filter((one) => one.key === series.key);
        return [mark(true), mark(false), tickX(means, { x: "x", y: "row", stroke: colours[series.colour], strokeWidth: 2.4, inset: 1, title: "title" })];
      }),
    ],
  });
  const used = of.series.filter((series) => shown.some((one) => one.key === series.key && !one.ghost));
  const entries = used.map((series) => ({ ...series, dotsOnly: true }));
  if (shown.some((one) => one.ghost)) {
    entries.push({ heading: `hollow: published, ${of.ghosts}`, colour: "ghost", symbol: "circle", ghost: true, dotsOnly: true });
  }
  return frame(context, drawing, { ...of, legend: legend(context, entries) });
}
