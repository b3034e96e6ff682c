/**
 * Sortable tables. Roles are written out, because on a phone rows are not laid out as a table.
 *
 * @typedef {{heading: string, numeric?: boolean, floor?: boolean, value: (row: any) => number|string,
 *   cell: (row: any) => (string|Node|Array), class?: (row: any) => string?}} TableColumn
 */

import { h } from "../dom.js";
import { leading, spaced } from "../format.js";

/**
 * @param {{caption: string, columns: TableColumn[], rows: any[], hideCaption?: boolean}} of
 * @returns {HTMLElement} the table in a box that scrolls sideways
 */
export function table({ caption, columns, rows, hideCaption }) {
  const body = h("tbody", { role: "rowgroup" });
  const line = (row) =>
    h(
      "tr",
      { role: "row" },
      columns.map((column, at) =>
        h(at === 0 ? "th" : "td", {
          scope: at === 0 ? "row" : null,
          role: at === 0 ? "rowheader" : "cell",
          "data-label": at === 0 ? null : column.heading,
          class: [column.numeric && "number", column.floor && "floor", column.class?.(row)].filter(Boolean).join(" ") || null,
        }, column.cell(row)),
      ),
    );
  const show = (ordered) => body.replaceChildren(...ordered.map(line));
  const headers = columns.map((column, at) => {
    const button = h("button", { type: "button", class: "sort" }, column.heading, h("span", { class: "arrow", "aria-hidden": "true" }));
    const header = h("th", { scope: "col", role: "columnheader", class: [column.numeric && "number", column.floor && "floor"].filter(Boolean).join(" ") || null }, button);
    button.addEventListener("click", () => {
      const next = header.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
      headers.forEach((other) => other.removeAttribute("aria-sort"));
      header.setAttribute("aria-sort", next);
      show(sorted(rows, columns[at].value, next === "descending"));
    });
    return header;
  });
  show(rows);
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "group", "aria-label": caption },
    h("table", { role: "table" }, h("caption", { class: hideCaption ? "hidden" : null }, caption), h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, headers)), body),
  );
}

/**
 * Sorts rows, stably. Rows without a value come last in both directions.
 * @template T
 * @param {T[]} rows
 * @param {(row: T) => number|string} value
 * @param {boolean} descending
 * @returns {T[]}
 */
export function sorted(rows, value, descending) {
  const absent = (of) => of === null || of === undefined || of === "" || Number.isNaN(of);
  const keyed = rows.map((row) => ({ row, of: value(row) }));
  const known = keyed.filter(({ of }) => !absent(of));
  known.sort((one, other) => compare(one.of, other.of) * (descending ? -1 : 1));
  return [...known, ...keyed.filter(({ of }) => absent(of))].map(({ row }) => row);
}

function compare(one, other) {
  if (typeof one === "number" && typeof other === "number") return one - other;
  return String(one).localeCompare(String(other), "en", { numeric: true });
}

/** A table whose cells come as texts. @param {{title: string, header: string[], rows: string[][], notes: string[]}} sheet @returns {HTMLElement} */
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
