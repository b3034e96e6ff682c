/** How far measured points are missed if each is left out and estimated from the others. */

import { leaveOneOut } from "./estimate.js";
import { heading } from "../data.js";
import { percent, whole } from "../format.js";
import { leaveOneOut as operationsLeftOut } from "../mix/estimate.js";
import { table } from "../tables/table.js";

const SIZES = { n: "Over rows per message", rows: "Over rows in the table", payload: "Over bytes per row" };
const OPERATIONS = { read: "Reads", update: "Updates", delete: "Deletions", scan: "Scans" };

/** @param {import("../mix/sources.js").Source} source @param {string} place @returns {HTMLElement[]} */
export function errorTables({ report, measurements: all }, place) {
  if (!all) return [];
  const rows = (errors) => all.engines.map((engine) => ({ heading: heading(report, engine.key), errors: errors(engine) }));
  const inserts = all.places.includes(place) ? [errorTable(`new rows (${place})`, SIZES, rows((engine) => leaveOneOut(all.inserts, engine.inserts, place)))] : [];
  return [...inserts, errorTable("other operations", OPERATIONS, rows((engine) => operationsLeftOut(all, engine)))];
}

function errorTable(what, columns, rows) {
  return table({
    caption: `Error of a measured point estimated from the others, ${what}: worst / typical, and how many are within the stated range`,
    rows,
    columns: [
      { heading: "Engine", value: (row) => row.heading, cell: (row) => row.heading },
      ...Object.entries(columns).map(([key, name]) => ({
        heading: name,
        numeric: true,
        value: (row) => row.errors[key].errors.at(-1) ?? NaN,
        cell: (row) => words(row.errors[key]),
      })),
    ],
  });
}

function words({ errors, within }) {
  if (errors.length === 0) return "too few points";
  return `${percent(errors.at(-1))} / ${percent(errors[errors.length >> 1])}, ${whole(within)} of ${whole(errors.length)}`;
}
