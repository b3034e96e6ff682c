/** Dot charts: of any section, one row per case and one dot per configuration; of ratios, one row per section. */

import { dots } from "../charts/dots.js";
import { series } from "../charts/series.js";
import { narrowed } from "../command.js";
import { about, casesOf, columnsOf, eachOperation, heading, measured } from "../data.js";
import { choice, slug } from "../dom.js";
import { figure } from "../figure.js";
import { times, whole } from "../format.js";
import { means, ratios } from "../tables/ratios.js";
import { ofDots } from "./describe.js";
import { published } from "./lines.js";

/** Sections with more cases than this are shown by kind. */
const MANY = 26;

function dotsOf(report, section, kind) {
  const cases = casesOf(report, section).filter((of) => measured(of) && (!kind || kindOf(of.name) === kind));
  const capacity = cases.some((of) => measured(of).capacity);
  const value = capacity ? (of) => Number(measured(of).operations) : eachOperation;
  const unit = capacity ? "operations in one message" : "instructions per operation";
  const points = cases.map((of) => ({
    row: kind ? of.name.slice(0, -kind.length - 2) : of.name, key: of.column, x: value(of), title: `${of.name}, ${heading(report, of.column)}: ${whole(value(of))} ${unit}`,
  }));
  const ghosts = published(report, section).map((of) => {
    const x = of.instructions / Math.max(1, of.operations);
    return { row: of.name, key: of.column, x, ghost: true, title: `${of.name}, ${heading(report, of.column)}, published: ${whole(x)} ${unit}` };
  });
  const here = new Set(points.map((of) => of.row));
  return { unit, dots: [...points, ...ghosts.filter((of) => here.has(of.row))], series: series(report, columnsOf(report, cases)) };
}

/** The last part of a name, for example warm or cold. */
function kindOf(name) {
  const at = name.lastIndexOf(", ");
  return at < 0 ? "" : name.slice(at + 2);
}

/** @param {import("../data.js").Report} report @param {string} section @param {Node?} table */
export function dotsFigure(report, section, table) {
  const names = new Set(casesOf(report, section).filter(measured).map((of) => of.name));
  if (!names.size) return null;
  const kinds = [...new Set([...names].map(kindOf))];
  let kind = names.size > MANY && kinds.length > 1 ? kinds[0] : null;
  const title = about(report, section);
  const made = figure({
    title: "Case by case",
    file: `${slug(report.results.suite)}-${slug(section)}-cases`,
    command: narrowed(report.results, section),
    table,
    controls: kind === null ? [] : [choice("Cases", kinds.map((value) => ({ value, text: value || "others" })), kind, (value) => { kind = value; made.redraw(); })],
    draw: (context) => {
      const found = dotsOf(report, section, kind);
      return dots(context, {
        title: `${title}${kind ? `: ${kind}` : ""}`,
        description: ofDots(found.dots, found.series, `${found.unit}, logarithmic`),
        x: `${found.unit} →`, ghosts: report.published?.source, ...found,
      });
    },
  });
  return made;
}

/**
 * Ratios of one or more configurations to a base, one row per section.
 * @param {import("../data.js").Report} report
 * @param {string} base
 * @param {string[]} others
 * @param {{title: string, table?: Node?, file: string, level?: number}} of
 */
export function ratiosFigure(report, base, others, of) {
  const all = others.flatMap((other) => ratios(report, base, other).map((row) => ({ ...row, other })));
  if (!all.length) return null;
  const suiteRatios = report.published?.ratios ?? [];
  const rowOf = (section) => about(report, section);
  const points = all.map((row) => ({
    row: rowOf(row.section), key: row.other, x: row.ratio,
    title: `${row.name}, ${heading(report, row.other)} against ${heading(report, base)}: ${times(row.ratio)}`,
  }));
  const here = new Set(points.map((point) => point.row));
  const ghosts = suiteRatios
    .map((ratio) => ({ row: rowOf(ratio.section), key: "\0published", x: ratio.ratio, ghost: true, title: `published average, ${ratio.of}: ${times(ratio.ratio)}` }))
    .filter((ghost) => here.has(ghost.row));
  const averages = others.flatMap((other) =>
    means(all.filter((row) => row.other === other)).filter((mean) => mean.section !== null).map((mean) => ({
      row: rowOf(mean.section), key: other, x: mean.geometric, title: `geometric mean, ${heading(report, other)}: ${times(mean.geometric)}`,
    })),
  );
  const looks = [...series(report, others), { key: "\0published", heading: "published", colour: "ghost", symbol: "circle", dash: null, width: 1 }];
  return figure({
    ...of,
    command: report.results.command,
    draw: (context) =>
      dots(context, {
        title: of.title,
        description: ofDots(averages, looks, `Ratios to ${heading(report, base)}, logarithmic; geometric means`),
        x: "instructions / instructions of the base →",
        base: 1, series: looks, dots: [...points, ...ghosts], means: averages,
        ghosts: ghosts.length ? `average, ${suiteRatios[0].of}; ${report.published.source}` : undefined,
      }),
  });
}
