/**
 * Line chart over a size, with logarithmic axes: one panel per kind of work, one line per configuration.
 *
 * @typedef {{panel: string, key: string, x: number, y: number, title: string, ghost?: boolean}} LinePoint
 */

import { plot, line, dot, text, frame as border, gridX, gridY, axisX, axisY } from "@observablehq/plot";
import { unique } from "../data.js";
import { tick } from "../format.js";
import { together } from "./coincide.js";
import { common, filled, frame, legend, domain, ticks } from "./frame.js";

const NARROWEST = 290;

/**
 * @param {import("./frame.js").Context} context
 * @param {{title: string, subtitle?: string, description: string, x: string, y: string,
 *   series: import("./series.js").Series[], points: LinePoint[], ghosts?: string, single?: boolean}} of
 *   `single`: lines that coincide are drawn once
 * @returns {SVGElement}
 */
export function lines(context, of) {
  const { colours, width } = context;
  const panels = unique(of.points.map((point) => point.panel));
  const room = Math.max(1, Math.min(panels.length, Math.floor(width / NARROWEST)));
  const down = Math.ceil(panels.length / room);
  // Rows of panels as equal as possible.
  const across = Math.ceil(panels.length / down);
  const place = new Map(panels.map((panel, at) => [panel, { fx: at % across, fy: Math.floor(at / across) }]));
  const visible = of.points.filter((point) => point.y > 0 && point.x > 0).map((point) => ({ ...point, ...place.get(point.panel) }));
  const titles = [...place].map(([panel, at]) => ({ panel, ...at }));
  const xs = unique(visible.map((point) => point.x)).sort((one, other) => one - other);
  const yDomain = domain(visible.map((point) => point.y));
  const panelWidth = (width - 56) / across;
  const xTicks = thinned(xs, panelWidth);
  const yTicks = ticks(yDomain, 7);
  const each = Math.max(240, Math.min(330, panelWidth * 0.78));
  const height = Math.round(down * each + 54);
  const all = of.series.filter((series) => visible.some((point) => point.key === series.key && !point.ghost));
  const { points, entries } = of.single ? together(of.series, visible, each / Math.log(yDomain[1] / yDomain[0])) : { points: visible, entries: all };
  const drawing = plot({
    ...common(context),
    height,
    marginLeft: 56,
    marginTop: 34,
    marginBottom: 40,
    marginRight: 8,
    x: { type: "log", domain: domain(xs), label: null },
    y: { type: "log", domain: yDomain, label: null },
    fx: { axis: null, domain: range(across), padding: 0.06 },
    fy: { axis: null, domain: range(down), padding: 0.16 },
    marks: [
      gridX(xTicks, { stroke: colours.line, strokeOpacity: 1 }),
      gridY(yTicks, { stroke: colours.line, strokeOpacity: 1 }),
      border({ stroke: colours.line }),
      axisX(xTicks, { text: tick, fill: colours.soft, stroke: colours.line, tickSize: 4, label: of.x, labelArrow: "none", labelAnchor: "right", labelOffset: 34 }),
      axisY(yTicks, { text: tick, fill: colours.soft, stroke: colours.line, tickSize: 0, label: of.y, labelArrow: "none" }),
      text(titles, { fx: "fx", fy: "fy", text: "panel", frameAnchor: "top-left", dy: -15, fill: colours.ink, fontWeight: 600 }),
      of.series.flatMap((series) => ofSeries(points.filter((point) => point.key === series.key), series, colours)),
    ],
  });
  const ghost = points.some((point) => point.ghost) && {
    heading: `hollow: published, ${of.ghosts}`, colour: "ghost", symbol: "circle", ghost: true, dotsOnly: true,
  };
  return frame(context, drawing, { ...of, legend: legend(context, [...entries, ...(ghost ? [ghost] : [])]) });
}

function ofSeries(points, series, colours) {
  const [ghosts, own] = [points.filter((point) => point.ghost), points.filter((point) => !point.ghost)];
  const channels = { fx: "fx", fy: "fy", x: "x", y: "y" };
  const colour = colours[series.colour];
  return [
    line(ghosts, { ...channels, stroke: colour, strokeWidth: 1, strokeOpacity: 0.55, strokeDasharray: "2 3" }),
    dot(ghosts, { ...channels, r: 4, symbol: series.symbol, title: "title", ...filled({ ...series, ghost: true }, colours) }),
    line(own, {
      ...channels, z: "panel", stroke: colour, strokeWidth: series.width,
      strokeDasharray: series.dash ?? undefined, strokeLinejoin: "round", strokeLinecap: "round",
    }),
    dot(own, { ...channels, r: 3.8, symbol: series.symbol, title: "title", ...filled(series, colours) }),
  ];
}

/** The measured sizes, limited to the available width. */
function thinned(xs, width) {
  const most = Math.max(3, Math.floor(width / 46));
  if (xs.length <= most) return apart(xs, width);
  return ticks(domain(xs), most);
}

/** Removes sizes whose labels would overlap; powers of ten have priority. */
function apart(xs, width) {
  const whole = Math.log(xs[xs.length - 1] / xs[0]) || 1;
  const round = (x) => Number.isInteger(Math.log10(x));
  const kept = [];
  for (const x of [...xs.filter(round), ...xs.filter((x) => !round(x))]) {
    if (kept.every((other) => Math.abs(Math.log(x / other) / whole) * width > 36)) kept.push(x);
  }
  return kept;
}

function range(count) {
  return Array.from({ length: count }, (_, at) => at);
}
