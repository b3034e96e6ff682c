/** How far off interpolation is, column by column: the table below the answer. */

import { heading } from "../data.js";
import { percent } from "../format.js";
import { table } from "../tables/table.js";
import { AXES, ascending, lengthRatios } from "./axes.js";
import { leaveOneOut } from "./interpolate.js";

/** @type {Array<[string, string, (all: any, here: any[]) => Array<{x: number, y: number}>]>} */
const SIZES = [
  ["n", "rows a message", (all, here) => work(here, "insert", "n")],
  ["rows", "rows in the table", (all, here) => work(here, "curve", "rows")],
  ["payload", "bytes a row", (all, here) => lengthRatios(all, here, "work")],
];

function work(here, section, axis) {
  return ascending(here.filter((of) => of.section === section), axis).map((of) => ({ x: of[axis], y: of.parts.work }));
}

/**
 * @param {import("../data.js").Report} report
 * @param {import("./points.js").Points} all
 * @param {string} place
 */
export function errorTable(report, all, place) {
  const rows = all.columns.map((column) => {
    const here = column.points.filter((of) => of.place === place);
    const errors = SIZES.map(([axis, , read]) => {
      const points = read(all, here);
      return { ...leaveOneOut(points, AXES[axis]), measured: points.length };
    });
    return { heading: heading(report, column.key), errors };
  });
  return table({
    caption: `Error where a measured point is left out and taken from its neighbours (${place}): worst / typical`,
    rows,
    columns: [
      { heading: "Engine", value: (row) => row.heading, cell: (row) => row.heading },
      ...SIZES.map(([, name], at) => ({
        heading: `Over ${name}`,
        numeric: true,
        value: (row) => row.errors[at].worst,
        cell: (row) => words(row.errors[at]),
      })),
    ],
  });
}

function words({ worst, typical, measured }) {
  if (measured === 0) return "not measured";
  if (worst === undefined) return measured === 1 ? "one point" : "two points";
  return `${percent(worst)} / ${percent(typical)}`;
}
