/** Tables that come ready made, as texts: published figures, what is kept, settings read back. */

import { h } from "../dom.js";
import { leading, spaced } from "../format.js";
import { table } from "./table.js";

/** @param {{title: string, header: string[], rows: string[][], notes: string[]}} sheet @returns {HTMLElement} */
export function sheetTable(sheet) {
  const numeric = sheet.header.map(
    (_, at) => at > 0 && sheet.rows.some((row) => Number.isFinite(leading(row[at] ?? ""))),
  );
  const columns = sheet.header.map((heading, at) => ({
    heading: heading.replace(/\n/g, " ") || "Case",
    numeric: numeric[at],
    value: (row) => (numeric[at] ? leading(row[at] ?? "") : (row[at] ?? "")),
    cell: (row) => h("span", { class: "lines" }, spaced(row[at] ?? "–")),
  }));
  return h(
    "div",
    {},
    table({ caption: sheet.title, columns, rows: sheet.rows }),
    sheet.notes.length > 0 && h("ul", { class: "notes" }, sheet.notes.map((note) => h("li", {}, note))),
  );
}
