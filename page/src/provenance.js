/** The sources of the figures: versions, modules, settings, commands. */

import { copyable } from "./command.js";
import { fold, h } from "./dom.js";
import { nameOf } from "./rules.js";
import { whole } from "./format.js";
import { sheetTable, table } from "./tables/table.js";

/** @param {{reports: import("./data.js").Report[], tool: string}} data @returns {HTMLElement} */
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
    ["Rule set", nameOf(report)],
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
  const text = (heading, value, name) => ({ heading, value, cell: value, class: () => name });
  return table({
    caption: `Canisters of ${report.title}`,
    rows: report.results.canisters,
    columns: [
      text("Canister", (of) => of.name),
      text("SHA-256 of the module", (of) => of.sha256 || "unknown", "hash"),
      { heading: "Bytes", numeric: true, value: (of) => of.bytes, cell: (of) => whole(Number(of.bytes)) },
      text("Crates", (of) => of.crates.map((one) => `${one.name} ${one.version}`).join(", "), "wide"),
      text("SQLite", (of) => of.sqlite?.version ?? "–"),
    ],
  });
}
