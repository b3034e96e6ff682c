/** A figure about one case, with a choice of all that have what it shows. */

import { heading, unique } from "../data.js";
import { choice, h, slug } from "../dom.js";
import { figure } from "../figure.js";
import { whole } from "../format.js";
import { table } from "../tables/table.js";

/**
 * @param {import("../data.js").Report} report
 * @param {{title: string, about: string, file: string, has: (of: import("../data.js").Case) => any,
 *   favourite: string[], columns: (report: import("../data.js").Report) => import("../tables/table.js").TableColumn[],
 *   draw: (context: import("../charts/frame.js").Context, cases: import("../data.js").Case[], label: string) => SVGElement,
 *   controls?: (update: () => void) => Node[]}} of `controls` are more than the choice of the case
 */
export function ofCase(report, { title, about, file, has, favourite, draw, columns, controls }) {
  const cases = report.results.cases.filter(has);
  const names = unique(cases.map((of) => `${of.section}\n${of.name}`));
  if (!names.length) return null;
  let chosen = names.find((name) => favourite.includes(name)) ?? names[0];
  const own = () => cases.filter((of) => `${of.section}\n${of.name}` === chosen);
  const label = () => chosen.replace("\n", ": ");
  const figures = h("div");
  const fill = () => figures.replaceChildren(table({ caption: `${title}: ${label()}`, rows: own(), columns: columns(report) }));
  fill();
  const update = () => { fill(); made.redraw(); };
  const options = names.map((value) => ({ value, text: value.replace("\n", ": ") }));
  const made = figure({
    title, about, file: `${slug(report.results.suite)}-${file}`, command: report.results.command, table: figures,
    controls: [choice("Case", options, chosen, (value) => { chosen = value; update(); }), ...(controls?.(update) ?? [])],
    draw: (context) => draw(context, own(), label()),
  });
  return made;
}

/** Columns of a table: the engine, then numbers. */
export function named(report, columns) {
  return [
    { heading: "Engine or mode", value: (of) => heading(report, of.column), cell: (of) => heading(report, of.column) },
    ...columns.map(([name, value]) => ({ heading: name, numeric: true, value: (of) => Number(value(of)), cell: (of) => whole(Number(value(of))) })),
  ];
}
