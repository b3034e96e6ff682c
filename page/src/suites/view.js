/** The results files on the page: the conclusions, charts and tables of each, and where its figures come from. */

import { copyable, narrowed } from "../command.js";
import { about, casesOf, configurationsOf, heading, rulesOf, sections } from "../data.js";
import { fold, h, slug } from "../dom.js";
import { count, spaced, whole } from "../format.js";
import { numeric, sectionTable, sheetTable, table, textual } from "../tables.js";
import { pagesFigure, phasesFigure, spreadFigure, stackFigure } from "./costs.js";
import { ratiosFigure, sectionFigure } from "./sections.js";

/** With more sections than this, there is one chart for all, and a table for each. */
const MANY = 12;
/** Conclusions of one kind that are shown at once. */
const FIRST = 4;

/** One results file: its conclusions, then the charts and tables of each section. @param {import("../data.js").Report} report @returns {HTMLElement} */
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
  const made = sectionFigure(report, name, table);
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

/** The sources of the figures: versions, modules, settings, commands. @param {{reports: import("../data.js").Report[], tool: string}} data @returns {HTMLElement} */
export function provenance({ reports, tool }) {
  return h(
    "section",
    { id: "provenance", "aria-labelledby": "provenance-title" },
    h("h2", { id: "provenance-title" }, "Where the figures come from"),
    h("p", { class: "about" }, "Instructions are read from performance_counter(0) in the canister, before and after the work. ",
      "Nothing is subtracted."),
    reports.map(source),
    h("p", { class: "about" }, `This page was made by ${tool} from the files only.`),
  );
}

function source(report) {
  const { results } = report;
  const facts = [
    ["File", report.file],
    ["Suite", results.suite],
    ["Measured by", `stablebench ${results.stablebench}`],
    ["Revision", results.revision ?? "unknown"],
    ["Replica", `${results.replica.kind} ${results.replica.version}, ${results.replica.subnet} subnet`],
    ["Rule set", rulesOf(report)],
    ["Seed", String(results.seed)],
    ["Prices", `${whole(Number(results.prices.nodes))} nodes, $${results.prices.usd_per_trillion_cycles} per trillion cycles`],
    ["Published figures in charts", report.published?.source ?? "none"],
  ];
  return h(
    "section",
    { class: "part", "aria-label": `Source of ${report.title}` },
    fold(h("h3", {}, report.title), h("dl", {}, facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)))),
    report.rules && h("p", { class: "about" }, report.rules.charge),
    canisters(report),
    results.canisters.filter((of) => of.sqlite).map((of) =>
      h("details", { class: "bare" }, h("summary", {}, `SQLite ${of.sqlite.version} of ${of.name}: compile options`),
        h("p", { class: "options" }, of.sqlite.compile_options.join(" "))),
    ),
    report.settings && h("details", { class: "bare" }, h("summary", {}, report.settings.title), sheetTable(report.settings)),
    copyable(results.command, `the run of ${report.title}`)),
  );
}

function canisters(report) {
  return table({
    caption: `Canisters of ${report.title}`,
    rows: report.results.canisters,
    columns: [
      textual("Canister", (of) => of.name),
      { ...textual("SHA-256 of the module", (of) => of.sha256 || "unknown"), class: () => "hash" },
      numeric("Bytes", (of) => Number(of.bytes), whole),
      { ...textual("Crates", (of) => of.crates.map((one) => `${one.name} ${one.version}`).join(", ")), class: () => "wide" },
      textual("SQLite", (of) => of.sqlite?.version ?? "–"),
    ],
  });
}
