/** How far off interpolation is, column by column: the table below the answer. */

import { heading } from "../data.js";
import { percent } from "../format.js";
import { table } from "../tables/table.js";
import { leaveOneOut } from "./interpolate.js";

const AXES = [
  ["insert", "n", "rows a message"],
  ["curve", "rows", "rows in the table"],
  ["payload", "payload", "bytes a row"],
];

/**
 * @param {import("../data.js").Report} report
 * @param {import("./points.js").Points} all
 * @param {string} place
 */
export function errorTable(report, all, place) {
  const rows = all.columns.map((column) => {
    const errors = AXES.map(([section, axis]) => {
      const points = column.points
        .filter((of) => of.section === section && of.place === place)
        .map((of) => ({ x: of[axis], y: perRow(all, column, of) }))
        .sort((one, other) => one.x - other.x);
      return { ...leaveOneOut(points), measured: points.length };
    });
    return { heading: heading(report, column.key), errors };
  });
  return table({
    caption: `Error where a measured point is left out and taken from its neighbours (${place}): worst / typical`,
    rows,
    columns: [
      { heading: "Engine", value: (row) => row.heading, cell: (row) => row.heading },
      ...AXES.map(([, , name], at) => ({
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

/** Stores of long rows hold fewer: what is interpolated there is the ratio to the same store's. */
function perRow(all, column, point) {
  if (point.section !== "payload") return point.parts.work;
  const beside = column.points.find(
    (of) => of.section === "curve" && of.place === point.place && of.rows === point.rows,
  );
  return point.parts.work / (beside?.parts.work ?? 1);
}
