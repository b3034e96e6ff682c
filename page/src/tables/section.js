/** The table of a section: one row per case, one column per configuration, for a selected value. */

import { casesOf, columnsOf, heading, isFloor, measured, missing, unique } from "../data.js";
import { choice, h } from "../dom.js";
import { whole } from "../format.js";
import { available, isCost, usual } from "./measures.js";
import { table } from "./table.js";

/** With more configurations than this, they are rows. */
const MAX_COLUMNS = 12;

/** @param {import("../data.js").Report} report @param {string} section @param {string} title @returns {HTMLElement} */
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
  const keys = columnsOf(report, cases);
  const names = unique(cases.map((of) => of.name));
  const found = new Map(cases.map((of) => [`${of.name}\n${of.column}`, of]));
  const at = (name, key) => found.get(`${name}\n${key}`);
  const turned = keys.length > MAX_COLUMNS;
  const [rows, columns] = turned ? [keys, names] : [names, keys];
  const caseAt = (row, column) => (turned ? at(column, row) : at(row, column));
  const best = new Map(names.map((name) => [name, cheapest(report, keys.map((key) => at(name, key)), measure)]));
  const label = (key) => heading(report, key);
  return table({
    caption: `${title}: ${measure.text.toLowerCase()}`,
    hideCaption: false,
    rows,
    columns: [
      {
        heading: turned ? "Setting" : "Case",
        value: (row) => (turned ? label(row) : row),
        cell: (row) => (turned ? label(row) : row),
      },
      ...columns.map((column) => ({
        heading: turned ? column : label(column),
        floor: !turned && isFloor(report, column),
        numeric: true,
        value: (row) => measure.value(caseAt(row, column)),
        class: (row) => {
          const of = caseAt(row, column);
          return of && measure.value(of) === best.get(of.name) && !isFloor(report, of.column) ? "best" : null;
        },
        cell: (row) => content(caseAt(row, column), measure, reasons),
      })),
    ],
  });
}

function cheapest(report, cases, measure) {
  if (!isCost(measure.key)) return NaN;
  const values = cases.filter((of) => of && !isFloor(report, of.column)).map(measure.value).filter(Number.isFinite);
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
  return `${mark}\n${of.column}\n${reason}`;
}

/** Distinct reasons by configuration. */
function reasonsOf(report, cases) {
  const found = new Map();
  for (const of of cases) {
    const absent = missing(of);
    if (absent) found.set(keyOf(of, absent), { key: keyOf(of, absent), ...absent, heading: heading(report, of.column) });
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
