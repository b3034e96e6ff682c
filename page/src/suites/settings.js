/** The heat map of the users suite's settings, each compared with its library's default. */

import { heatMap } from "../charts/heat.js";
import { narrowed } from "../command.js";
import { casesOf, columnsOf, eachOperation, heading, measured, missing, unique } from "../data.js";
import { figure } from "../figure.js";
import { times } from "../format.js";
import { ofHeat } from "./describe.js";

/** Default configurations of the libraries. */
const DEFAULTS = [
  ["sqlite-vfs", /^sqlite-vfs(?:$|[,/])/],
  ["sqlite/persist", /^sqlite\//],
];

/** @param {import("../data.js").Report} report @param {string} section @param {Node?} table */
export function settingsFigure(report, section, table) {
  const cases = casesOf(report, section);
  const names = unique(cases.map((of) => of.name));
  const found = new Map(cases.map((of) => [`${of.name}\n${of.column}`, of]));
  const at = (name, key) => found.get(`${name}\n${key}`);
  const keys = columnsOf(report, cases);
  const shown = keys.filter((key) => names.some((name) => measured(at(name, key))));
  const left = keys.length - shown.length;
  const groups = DEFAULTS.map(([base, pattern]) => ({ base, keys: shown.filter((key) => pattern.test(key)) }));
  const cells = groups.reverse().flatMap(({ base, keys: own }) =>
    own.flatMap((key) =>
      names.map((name) => {
        const ratio = eachOperation(at(name, key)) / eachOperation(at(name, base));
        const row = key === base ? `${heading(report, key)} (default)` : heading(report, key);
        const mark = missing(at(name, key))?.mark;
        return { row, column: name.replace(/, warm$/, ""), ratio, mark, title: `${row}, ${name}: ${mark ?? times(ratio)}` };
      }),
    ),
  );
  if (!cells.some((cell) => Number.isFinite(cell.ratio))) return null;
  return figure({
    title: "Settings against the default",
    about: `Instructions per operation, compared with the same work under the library's own settings. Blue is cheaper, orange more expensive.${left ? ` ${left} settings that the library does not accept are in the table, with the reason.` : ""}`,
    file: "users-settings",
    command: narrowed(report.results, section),
    table,
    draw: (context) => heatMap(context, { title: "Settings against the default", description: ofHeat(cells), cells }),
  });
}
