/**
 * Tables: sortable ones of any rows, those whose cells come as texts, and the table of a section, which has one row per
 * case, one column per configuration, and a selected value. Roles are written out, because on a phone rows are not laid out
 * as a table.
 *
 * @typedef {{heading: string, numeric?: boolean, floor?: boolean, value: (row: any) => number|string,
 *   cell: (row: any) => (string|Node|Array), class?: (row: any) => string?}} TableColumn
 * @typedef {{key: string, text: string, value: (of: import("./data.js").Case) => number}} Measure
 */

import { casesOf, chargeParts, configurationsOf, eachOperation, heading, inside, isFloor, measured, missing, unique, workParts } from "./data.js";
import { choice, h } from "./dom.js";
import { leading, spaced, whole } from "./format.js";

/** With more configurations than this, they are rows. */
const MAX_COLUMNS = 12;

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

/** A column of texts. @param {string} heading @param {(row: any) => string} value @returns {TableColumn} */
export function textual(heading, value) {
  return { heading, value, cell: value };
}

/** A column of numbers. @param {string} heading @param {(row: any) => number} value @param {(value: number) => string} text @returns {TableColumn} */
export function numeric(heading, value, text) {
  return { heading, numeric: true, value, cell: (row) => text(value(row)) };
}

/** A column of numbers of ranked rows. The parameters are those of `numeric`. */
export function rankedColumn(...of) {
  return { ...numeric(...of), class: (row) => (row.rank === 1 ? "best" : null) };
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

const detail = (of) => measured(of)?.detail;
const each = (of) => measured(of)?.each;

/** @param {any} value @returns {number} NaN where there is none */
function number(value) {
  return value === null || value === undefined ? NaN : Number(value);
}

/** All numeric values of a case. @type {Measure[]} */
const MEASURES = [
  ["each", "Instructions per operation", eachOperation],
  ["instructions", "Instructions of the work", (of) => number(measured(of)?.instructions)],
  ["operations", "Operations", (of) => number(measured(of)?.operations)],
  ["charge", "Charge: instructions paid for", (of) => number(inside(of)?.charge)],
  ["cycles", "Cycles (13 nodes)", (of) => number(detail(of)?.cost.cycles)],
  ["end", "Instructions when the messages end", (of) => number(inside(of)?.instructions)],
  ["message", "Instructions after the work, checks included", (of) => number(detail(of)?.message_instructions)],
  ["messages", "Messages", (of) => number(detail(of)?.messages)],
  ["overhead", "Instructions of reading the counter twice", (of) => number(detail(of)?.counter_overhead)],
  ["rows", "Rows written, found or removed", (of) => number(detail(of)?.rows)],
  ["bytes", "Bytes of their texts", (of) => number(detail(of)?.bytes)],
  ["workCompute", "Work: compute", (of) => number(workParts(of)?.[0])],
  ["workHeap", "Work: heap pages, instructions", (of) => number(workParts(of)?.[1])],
  ["workStable", "Work: stable pages, instructions", (of) => number(workParts(of)?.[2])],
  ["chargeCompute", "Charge: compute", (of) => number(chargeParts(of)?.[0])],
  ["chargeHeap", "Charge: heap pages, instructions", (of) => number(chargeParts(of)?.[1])],
  ["chargeStable", "Charge: stable pages, instructions", (of) => number(chargeParts(of)?.[2])],
  ["heapTouched", "Heap touched (64 KiB)", (of) => number(inside(of)?.pages?.touched?.heap)],
  ["heapWritten", "Heap written (64 KiB)", (of) => number(inside(of)?.pages?.touched?.heap_written)],
  ["stableTouched", "Stable memory touched (64 KiB)", (of) => number(inside(of)?.pages?.touched?.stable)],
  ["stableWritten", "Stable memory written (64 KiB)", (of) => number(inside(of)?.pages?.touched?.stable_written)],
  ["heap", "Heap pages changed (4 KiB)", (of) => number(inside(of)?.heap_pages_changed)],
  ["accessed", "Stable pages accessed (4 KiB)", (of) => number(inside(of)?.stable_pages_accessed)],
  ["written", "Stable pages written (4 KiB)", (of) => number(inside(of)?.stable_pages_written)],
  ["reads", "Reads of stable memory", (of) => number(inside(of)?.stable_calls?.reads)],
  ["bytesRead", "Bytes read", (of) => number(inside(of)?.stable_calls?.bytes_read)],
  ["writes", "Writes of stable memory", (of) => number(inside(of)?.stable_calls?.writes)],
  ["bytesWritten", "Bytes written", (of) => number(inside(of)?.stable_calls?.bytes_written)],
  ["min", "Cheapest operation", (of) => number(each(of)?.min)],
  ["p50", "Operation, p50", (of) => number(each(of)?.p50)],
  ["p90", "Operation, p90", (of) => number(each(of)?.p90)],
  ["p99", "Operation, p99", (of) => number(each(of)?.p99)],
  ["max", "Most expensive operation", (of) => number(each(of)?.max)],
  ["stored", "Bytes stored afterwards", (of) => number(detail(of)?.stored?.bytes)],
  ["heapBefore", "Heap before (64 KiB)", (of) => number(detail(of)?.heap_pages_before)],
  ["heapAfter", "Heap after (64 KiB)", (of) => number(detail(of)?.heap_pages_after)],
  ["stableBefore", "Stable memory before (64 KiB)", (of) => number(detail(of)?.stable_pages_before)],
  ["stableAfter", "Stable memory after (64 KiB)", (of) => number(detail(of)?.stable_pages_after)],
  ["capacity", "Operations that exceed the limit", (of) => number(measured(of)?.capacity?.exceeds)],
  ["limit", "Limit of a message, instructions", (of) => number(measured(of)?.capacity?.limit)],
].map(([key, text, value]) => ({ key, text, value }));

/** The measures that some of the cases have. @param {import("./data.js").Case[]} cases */
export function available(cases) {
  return MEASURES.filter((measure) => cases.some((of) => Number.isFinite(measure.value(of))));
}

/** The default measure of a section. @param {string} section @param {import("./data.js").Case[]} cases */
function usual(section, cases) {
  if (cases.some((of) => measured(of)?.capacity)) return "operations";
  return section === "insert" ? "instructions" : "each";
}

/** Returns `true` if less is better. @param {string} key */
function isCost(key) {
  return !["operations", "messages", "rows", "bytes", "capacity", "limit", "overhead"].includes(key);
}

/** The table of a section. @param {import("./data.js").Report} report @param {string} section @param {string} title @returns {HTMLElement} */
export function sectionTable(report, section, title) {
  const cases = casesOf(report, section);
  const measures = available(cases);
  const reasons = reasonsOf(report, cases);
  const place = h("div");
  const show = (key) => {
    const measure = measures.find((of) => of.key === key) ?? measures[0];
    place.replaceChildren(measure ? grid(report, cases, measure, reasons, title) : unmeasured(report, cases, reasons, title));
  };
  const first = usual(section, cases);
  show(first);
  return h(
    "div",
    { class: "section-table" },
    measures.length > 1 && choice("Value", measures.map(({ key, text }) => ({ value: key, text })), first, show),
    place,
    notes(cases, reasons),
  );
}

/** The table of a section in which nothing could be measured. */
function unmeasured(report, cases, reasons, title) {
  return grid(report, cases, { text: "Instructions", value: () => NaN, key: "none" }, reasons, title);
}

function grid(report, cases, measure, reasons, title) {
  const keys = configurationsOf(report, cases);
  const names = unique(cases.map((of) => of.name));
  const found = new Map(cases.map((of) => [`${of.name}\n${of.configuration}`, of]));
  const at = (name, key) => found.get(`${name}\n${key}`);
  const turned = keys.length > MAX_COLUMNS;
  const [rows, columns] = turned ? [keys, names] : [names, keys];
  const caseAt = (row, column) => (turned ? at(column, row) : at(row, column));
  const best = new Map(names.map((name) => [name, cheapest(report, keys.map((key) => at(name, key)), measure)]));
  const label = (key) => heading(report, key);
  return table({
    caption: `${title}: ${measure.text.toLowerCase()}`,
    rows,
    columns: [
      textual(turned ? "Setting" : "Case", (row) => (turned ? label(row) : row)),
      ...columns.map((column) => ({
        heading: turned ? column : label(column),
        floor: !turned && isFloor(report, column),
        numeric: true,
        value: (row) => measure.value(caseAt(row, column)),
        class: (row) => {
          const of = caseAt(row, column);
          return of && measure.value(of) === best.get(of.name) && !isFloor(report, of.configuration) ? "best" : null;
        },
        cell: (row) => content(caseAt(row, column), measure, reasons),
      })),
    ],
  });
}

function cheapest(report, cases, measure) {
  if (!isCost(measure.key)) return NaN;
  const values = cases.filter((of) => of && !isFloor(report, of.configuration)).map(measure.value).filter(Number.isFinite);
  return values.length > 1 && new Set(values).size > 1 ? Math.min(...values) : NaN;
}

function content(of, measure, reasons) {
  if (!of) return "–";
  const absent = missing(of);
  if (absent) {
    const number = reasons.findIndex((known) => known.key === keyOf(of, absent)) + 1;
    return [h("abbr", { class: "absent", title: absent.reason }, absent.mark), h("sup", {}, String(number))];
  }
  const value = measure.value(of);
  const unbounded = measure.key === "operations" && measured(of).capacity && measured(of).capacity.exceeds === null;
  return Number.isFinite(value) ? `${unbounded ? "≥ " : ""}${whole(value)}` : "–";
}

function keyOf(of, { mark, reason }) {
  return `${mark}\n${of.configuration}\n${reason}`;
}

/** Distinct reasons by configuration. */
function reasonsOf(report, cases) {
  const found = new Map();
  for (const of of cases) {
    const absent = missing(of);
    if (absent) found.set(keyOf(of, absent), { key: keyOf(of, absent), ...absent, heading: heading(report, of.configuration) });
  }
  return [...found.values()];
}

function notes(cases, reasons) {
  const list = h(
    "ol",
    { class: "reasons" },
    reasons.map(({ mark, heading, reason }) => h("li", {}, `${mark}: ${heading}: ${reason}`)),
  );
  const unbounded = cases.some((of) => measured(of)?.capacity && measured(of).capacity.exceeds === null);
  return h(
    "div",
    { class: "notes" },
    unbounded && h("p", {}, "≥: the largest possible request fitted."),
    reasons.length > 6
      ? h("details", {}, h("summary", {}, `${reasons.length} reasons for missing figures`), list)
      : reasons.length > 0 && list,
  );
}
