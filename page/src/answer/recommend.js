/** What to do: the PRAGMAs of the cheapest configuration, and of the cheapest SQLite if that is another one. */

import { snippet } from "../command.js";
import { h } from "../dom.js";
import { times } from "../format.js";
import { pragmas, settingsOf, undoes } from "../mix/settings.js";

/**
 * @param {import("../data.js").Report} report
 * @param {import("./rank.js").Ranked[]} rows as ranked
 * @param {"cycles"|"instructions"} by
 * @returns {HTMLElement}
 */
export function recommended(report, rows, by) {
  const all = rows.filter((row) => row.rank !== null).map((row) => ({ ...row, settings: settingsOf(report, row.key) }));
  const best = all.find((row) => undoes(row.settings));
  if (!best) return h("div");
  const sql = best.settings ? best : all.find((row) => row.settings && undoes(row.settings));
  const unsafe = all.find((row) => !undoes(row.settings));
  return h(
    "div",
    { class: "advised" },
    sql && sql !== best && h("p", {}, "If it must be SQL: ", h("strong", {}, sql.heading), ` takes ${times(sql[by] / best[by])} as much.`),
    sql && paste(sql),
    unsafe && unsafe.rank < best.rank && h("p", { class: "about" }, `${unsafe.heading} takes ${times(unsafe[by] / best[by])} as much, but cannot undo a transaction, so that it is not recommended.`),
  );
}

function paste({ heading, settings }) {
  const lines = pragmas(settings);
  if (!lines.length) return h("p", { class: "about" }, `${heading} is as its library ships it: no PRAGMA is needed.`);
  return h(
    "div",
    {},
    h("p", { class: "about" }, `PRAGMAs of ${heading}, to paste after the connection opens${"page_size" in settings ? ", before the first table" : ""}:`),
    snippet(lines.join("\n"), `PRAGMAs of ${heading}`),
  );
}
