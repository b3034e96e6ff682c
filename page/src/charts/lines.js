/**
 * Line chart over a size, with logarithmic axes: one panel per kind of work, one line per configuration. Where lines
 * coincide, a panel draws them once, and the legend has all their names.
 *
 * @typedef {import("./style.js").Series} Series
 * @typedef {{panel: string, key: string, x: number, y: number, title: string, ghost?: boolean}} LinePoint
 */

import { plot, line, dot, text, frame as border, gridX, gridY, axisX, axisY } from "@observablehq/plot";
import { unique } from "../data.js";
import { tick } from "../format.js";
import { common, domain, extremes, filled, frame, legend, ticks } from "./frame.js";

/** The least width of a panel, in pixels. */
const NARROWEST = 290;
/** Lines that are nowhere further apart than this, in pixels, look like one. */
const APART = 1.5;

/**
 * @param {import("./frame.js").Context} context
 * @param {{title: string, subtitle?: string, description: string, x: string, y: string,
 *   series: Series[], points: LinePoint[], ghosts?: string, single?: boolean}} of
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

/**
 * Lines that coincide are one.
 * @param {Series[]} series
 * @param {LinePoint[]} points
 * @param {number} scale pixels of a factor of e
 * @returns {{points: LinePoint[], entries: Series[]}} the points to draw, and the legend: lines that coincide in all
 *   panels have one entry, and those that coincide in some have one more for each of these panels
 */
export function together(series, points, scale) {
  const own = points.filter((point) => !point.ghost);
  const used = series.filter((of) => own.some((point) => point.key === of.key));
  const panels = [...new Set(own.map((point) => point.panel))];
  const everywhere = groups(used, own, scale);
  const firsts = everywhere.map(([first]) => first);
  const entries = everywhere.map((group) => ({ ...group[0], heading: names(group) }));
  const drawn = new Map();
  for (const panel of panels) {
    const here = own.filter((point) => point.panel === panel);
    const found = groups(firsts.filter((of) => here.some((point) => point.key === of.key)), here, scale);
    for (const group of found) {
      const all = group.flatMap((of) => everywhere.find(([first]) => first === of));
      drawn.set(`${panel}\n${group[0].key}`, all);
      if (group.length > 1) entries.push({ ...group[0], heading: `${panel}: ${names(all)}` });
    }
  }
  const kept = points.flatMap((point) => {
    const all = drawn.get(`${point.panel}\n${point.key}`);
    if (point.ghost || !all) return point.ghost ? [point] : [];
    const others = all.slice(1).map((of) => of.heading);
    return [others.length ? { ...point, title: `${point.title}; the same line: ${others.join(", ")}` } : point];
  });
  return { points: kept, entries };
}

/** Series in groups whose lines coincide with that of the first. */
function groups(series, points, scale) {
  const found = [];
  for (const of of series) {
    const group = found.find(([first]) => coincide(points, first.key, of.key, scale));
    if (group) group.push(of);
    else found.push([of]);
  }
  return found;
}

function coincide(points, key, other, scale) {
  const at = (of) => new Map(points.filter((point) => point.key === of && point.y > 0).map((point) => [`${point.panel}\n${point.x}`, point.y]));
  const [one, two] = [at(key), at(other)];
  return one.size === two.size && [...one].every(([where, y]) => two.has(where) && Math.abs(Math.log(y / two.get(where))) * scale <= APART);
}

/** Headings without repeating a common first word: `SQLite DELETE, PERSIST`. @param {Series[]} group */
function names(group) {
  const [first, ...rest] = group.map((of) => of.heading);
  const word = `${first.split(" ")[0]} `;
  return [first, ...rest.map((heading) => (heading.startsWith(word) ? heading.slice(word.length) : heading))].join(", ");
}

/** The chart in words. @param {LinePoint[]} points @param {Series[]} series @param {string} of */
export function ofLines(points, series, of) {
  const own = points.filter((point) => !point.ghost);
  const texts = unique(own.map((point) => point.panel)).map((panel) => {
    const here = own.filter((point) => point.panel === panel);
    const last = Math.max(...here.map((point) => point.x));
    return `${panel}, at ${tick(last)}: ${extremes(here.filter((point) => point.x === last), series, (point) => point.y)}`;
  });
  return `${of}. ${texts.join(". ")}.`;
}
