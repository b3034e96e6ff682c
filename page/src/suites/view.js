/** One results file on the page: its conclusions, then the charts and tables of each section. */

import { about, casesOf, configurationsOf, heading, sections } from "../data.js";
import { copyable, narrowed } from "../command.js";
import { fold, h, slug } from "../dom.js";
import { count, spaced, whole } from "../format.js";
import { sectionTable } from "../tables/section.js";
import { sheetTable } from "../tables/table.js";
import { phasesFigure, spreadFigure, stackFigure, pagesFigure } from "./costs.js";
import { dotsFigure, ratiosFigure } from "./dots.js";
import { linesFigure } from "./lines.js";
import { settingsFigure } from "./settings.js";

/** With more sections than this, there is one chart for all, and a table for each. */
const MANY = 12;
/** Conclusions of one kind that are shown at once. */
const FIRST = 4;

/** @param {import("../data.js").Report} report @returns {HTMLElement} */
export function suite(report) {
  const names = sections(report);
  const title = `${report.id}-title`;
  const ids = new Map(names.map((name) => [name, `${report.id}-${slug(name)}`]));
  const many = names.length > MANY;
  return h(
    "section",
    { id: report.id, class: "suite", "aria-labelledby": title },
    h("h2", { id: title }, report.topic),
    report.question && h("p", { class: "question" }, report.question),
    incomplete(report.results),
    !many && names.length > 1 && h("p", { class: "contents" }, names.map((name) => h("a", { href: `#${ids.get(name)}` }, name))),
    advice(report),
    many && overview(report),
    many
      ? [h("h3", {}, "All sections"), names.map((name) => bare(report, name, ids.get(name)))]
      : names.map((name) => section(report, name, ids.get(name))),
    costs(report),
    sheets(report),
  );
}

/** How much of a run is missing, if it is not complete. */
function incomplete({ planned, cases }) {
  if (!planned) return null;
  return h("div", { class: "warning" }, h("p", {}, h("strong", {}, "Not complete."), ` ${whole(cases.length)} of ${whole(planned)} cases were measured. The others may change what is said here.`));
}

function advice(report) {
  if (!report.advice.length) return null;
  return h(
    "div",
    { class: "advice" },
    h("h3", {}, "Conclusions"),
    report.advice.map(({ title, sentences }) => [
      h("h4", {}, title),
      list(sentences.slice(0, FIRST)),
      sentences.length > FIRST && h("details", {}, h("summary", {}, `${count(sentences.length - FIRST, "more conclusion")}`, h("span", { class: "hidden" }, `: ${title}`)), list(sentences.slice(FIRST))),
    ]),
  );
}

function list(sentences) {
  return h("ul", {}, sentences.map((sentence) => h("li", {}, spaced(sentence))));
}

/** All configurations compared with the first, if there are many sections. */
function overview(report) {
  const [base, ...others] = configurationsOf(report, report.results.cases);
  const made = ratiosFigure(report, base, others, {
    title: `Against ${heading(report, base)}, section by section`,
    about: "One mark per workload; the vertical line is the geometric mean of the section. Right of 1 is more expensive.",
    file: `${slug(report.results.suite)}-ratios`,
    level: 3,
  });
  return made?.element;
}

function section(report, name, id) {
  const title = about(report, name);
  const table = sectionTable(report, name, title);
  const made =
    name === "settings" && report.results.suite === "users"
      ? settingsFigure(report, name, table)
      : (linesFigure(report, name, table) ?? dotsFigure(report, name, table));
  return h(
    "section",
    { id, class: "part", "aria-label": title },
    fold(h("h3", {}, title), made ? made.element : [h("p", { class: "about" }, "Nothing could be measured."), table]),
  );
}

/** A section as a table without a chart. */
function bare(report, name, id) {
  const title = about(report, name);
  return h(
    "details",
    { id, class: "bare" },
    h("summary", {}, title, h("span", { class: "count" }, ` ${casesOf(report, name).length}`)),
    sectionTable(report, name, title),
    copyable(narrowed(report.results, name), title),
  );
}

function costs(report) {
  const made = [pagesFigure(report), stackFigure(report), phasesFigure(report), spreadFigure(report)].filter(Boolean);
  return made.length > 0 && h("section", { class: "part", "aria-label": `Inside of messages, ${report.title}` }, fold(h("h3", {}, "Inside of messages"), made.map((of) => of.element)));
}

function sheets(report) {
  if (!report.sheets.length) return null;
  return h(
    "section",
    { class: "part", "aria-label": `More tables, ${report.title}` },
    fold(
      h("h3", {}, "More tables"),
      report.sheets.map((sheet) => h("details", { class: "bare" }, h("summary", {}, sheet.title), sheetTable(sheet))),
      copyable(report.results.command, `tables of ${report.title}`),
    ),
  );
}
