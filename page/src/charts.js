/**
 * The charts, one function for each kind, with a description for readers who do not see it.
 *
 *     lines     costs over a size, both axes logarithmic: one panel per kind of work, one line per configuration. Where
 *               lines coincide, a panel draws them once, and the legend has all their names
 *     dots      one row per case, one dot per configuration
 *     stack     stacked bars
 *     spread    the spread of single operations
 *     heatMap   the costs of settings
 *
 * @typedef {import("./chart-parts.js").Series} Series
 * @typedef {{panel: string, key: string, x: number, y: number, title: string, ghost?: boolean}} LinePoint
 * @typedef {{row: string, key: string, x: number, title: string, ghost?: boolean}} Dot
 * @typedef {{heading: string, parts: number[]}} Bar
 * @typedef {{heading: string, colour: string, min: number, p50: number, p90: number, p99: number, max: number}} SpreadRow
 * @typedef {{row: string, column: string, ratio: number, mark: string?, title: string}} HeatCell
 */

import {
  plot, line, barX, cell, dot, link, ruleX, text, tickX, frame as border, gridX, gridY, axisX, axisY,
} from "@observablehq/plot";
import { common, domain, extremes, filled, frame, legend, ticks } from "./chart-parts.js";
import { unique } from "./data.js";
import { short, spaced, tick, times, whole } from "./format.js";

/** The least width of a panel, in pixels. */
const NARROWEST = 290;
/** Lines that are nowhere further apart than this, in pixels, look like one. */
const APART = 1.5;

/**
 * @param {import("./chart-parts.js").Context} context
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

/** The percentiles of a spread. */
const MARKS = [
  ["min", "times", 3.2, "cheapest"],
  ["p50", "circle", 5.5, "half are cheaper (p50)"],
  ["p90", "square", 4.6, "p90"],
  ["p99", "triangle", 4.6, "p99"],
  ["max", "diamond", 4.6, "most expensive"],
];
/** Upper ends of the classes of a heat map; the seventh has none. */
const ENDS = [0.5, 0.8, 0.95, 1.05, 1.25, 2];
const NAMES = ["≤ 0.5×", "0.5 to 0.8", "0.8 to 0.95", "as the default", "1.05 to 1.25", "1.25 to 2", "≥ 2×"];
/** Columns of a heat map beside each other on a phone. */
const NARROW = 4;

/** A label of at most `most` letters. */
function shortened(label, most) {
  return label.length > most ? `${label.slice(0, most - 1)}…` : label;
}

/** The labels of rows, shortened to the available width, and their room. */
function labelled(rows, width) {
  const shorten = (label) => shortened(label, Math.max(12, Math.floor((width * 0.4) / 7)));
  return { shorten, marginLeft: Math.max(60, ...rows.map(({ heading }) => shorten(heading).length * 7 + 14)) };
}

/**
 * Dot chart for any section: one row per case, one dot per configuration, the cost on a logarithmic axis.
 * @param {import("./chart-parts.js").Context} context
 * @param {{title: string, subtitle?: string, description: string, x: string, base?: number,
 *   series: Series[], dots: Dot[], ghosts?: string,
 *   means?: Array<{row: string, key: string, x: number, title: string}>}} of
 * @returns {SVGElement}
 */
export function dots(context, of) {
  const { colours, width } = context;
  const rows = unique(of.dots.map((one) => one.row));
  const shown = of.dots.filter((one) => one.x > 0);
  const across = domain([...shown.map((one) => one.x), ...(of.base ? [of.base] : [])]);
  const labels = new Map(rows.map((row) => [row, shortened(row, Math.max(14, Math.floor((width * 0.42) / 7)))]));
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

/**
 * The dot chart in words.
 * @param {Dot[]} dots
 * @param {Series[]} series
 * @param {string} of
 * @param {(value: number) => string} [text] of a value
 */
export function ofDots(dots, series, of, text = whole) {
  const own = dots.filter((one) => !one.ghost);
  const rows = unique(own.map((one) => one.row));
  const texts = rows.slice(0, 12).map((row) => `${row}: ${extremes(own.filter((one) => one.row === row), series, (one) => one.x, text)}`);
  const more = rows.length > 12 ? ` And ${rows.length - 12} more rows, in the table.` : "";
  return `${of}. ${texts.join(". ")}.${more}`;
}

/**
 * Stacked bars: the parts of the instructions of one case, one bar per configuration.
 * @param {import("./chart-parts.js").Context} context
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
  const { shorten, marginLeft } = labelled(of.bars, width);
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

/** The bars in words. @param {Bar[]} bars @param {string[]} parts */
export function ofStack(bars, parts) {
  const texts = bars.map((bar) => {
    const texts = parts.flatMap((part, at) => (bar.parts[at] > 0 ? [`${part} ${whole(bar.parts[at])}`] : []));
    return `${bar.heading}: ${texts.join(", ")}`;
  });
  return `Stacked bars. ${texts.join(". ")}.`;
}

/**
 * Costs of single operations: one row per configuration, from the cheapest to the most expensive, with percentiles.
 * @param {import("./chart-parts.js").Context} context
 * @param {{title: string, subtitle?: string, description: string, x: string, rows: SpreadRow[]}} of
 * @returns {SVGElement}
 */
export function spread(context, of) {
  const { colours, width } = context;
  const across = domain(of.rows.flatMap((row) => MARKS.map(([key]) => row[key])));
  const { shorten, marginLeft } = labelled(of.rows, width);
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

/** The costs of single operations in words. @param {SpreadRow[]} rows */
export function ofSpread(rows) {
  return rows.map((row) => `${row.heading}: half below ${whole(row.p50)}, 99 % below ${whole(row.p99)}, most expensive ${whole(row.max)}`).join(". ");
}

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
 * Heat map of ratios: one row per setting, one column per kind of work; blue cells are cheaper than the default, orange
 * ones more expensive. Each cell shows its ratio.
 * @param {import("./chart-parts.js").Context} context
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

/** The heat map in words. @param {HeatCell[]} cells */
export function ofHeat(cells) {
  const known = cells.filter((cell) => Number.isFinite(cell.ratio)).sort((one, other) => one.ratio - other.ratio);
  if (!known.length) return "No ratio is known.";
  const [low, high] = [known[0], known[known.length - 1]];
  return `Ratios to the default. The smallest is ${times(low.ratio)}: ${low.row}, ${low.column}. The largest is ${times(high.ratio)}: ${high.row}, ${high.column}.`;
}
