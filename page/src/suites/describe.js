/** Descriptions of charts for readers who do not see them. */

import { tick, whole, times } from "../format.js";
import { unique } from "../data.js";

/** @param {import("../charts/lines.js").LinePoint[]} points @param {import("../charts/series.js").Series[]} series @param {string} of */
export function ofLines(points, series, of) {
  const own = points.filter((point) => !point.ghost);
  const texts = unique(own.map((point) => point.panel)).map((panel) => {
    const here = own.filter((point) => point.panel === panel);
    const last = Math.max(...here.map((point) => point.x));
    return `${panel}, at ${tick(last)}: ${extremes(here.filter((point) => point.x === last), series, (point) => point.y)}`;
  });
  return `${of}. ${texts.join(". ")}.`;
}

/**
 * @param {import("../charts/dots.js").Dot[]} dots
 * @param {import("../charts/series.js").Series[]} series
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

function extremes(points, series, value, text = whole) {
  const name = (point) => series.find((of) => of.key === point.key)?.heading ?? point.key;
  const ordered = [...points].sort((one, other) => value(one) - value(other));
  if (!ordered.length) return "nothing";
  const [low, high] = [ordered[0], ordered[ordered.length - 1]];
  if (low === high) return `${name(low)} ${text(value(low))}`;
  return `from ${name(low)} ${text(value(low))} to ${name(high)} ${text(value(high))}`;
}

/** @param {import("../charts/heat.js").HeatCell[]} cells */
export function ofHeat(cells) {
  const known = cells.filter((cell) => Number.isFinite(cell.ratio)).sort((one, other) => one.ratio - other.ratio);
  if (!known.length) return "No ratio is known.";
  const [low, high] = [known[0], known[known.length - 1]];
  return `Ratios to the default. The smallest is ${times(low.ratio)}: ${low.row}, ${low.column}. The largest is ${times(high.ratio)}: ${high.row}, ${high.column}.`;
}

/** @param {import("../charts/stack.js").Bar[]} bars @param {string[]} parts */
export function ofStack(bars, parts) {
  const texts = bars.map((bar) => {
    const texts = parts.flatMap((part, at) => (bar.parts[at] > 0 ? [`${part} ${whole(bar.parts[at])}`] : []));
    return `${bar.heading}: ${texts.join(", ")}`;
  });
  return `Stacked bars. ${texts.join(". ")}.`;
}

/** @param {import("../charts/spread.js").SpreadRow[]} rows */
export function ofSpread(rows) {
  return rows.map((row) => `${row.heading}: half below ${whole(row.p50)}, 99 % below ${whole(row.p99)}, most expensive ${whole(row.max)}`).join(". ");
}
