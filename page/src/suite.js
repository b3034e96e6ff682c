/**
 * The part of the page about one results file: its conclusions, a chart and a table for each section, the figures of
 * single cases, and where all of them come from.
 *
 * The chart of a section has lines over a size that is part of the cases' names, or else dots, or is the heat map of
 * settings. That of ratios has one row per section.
 */

import { figure, series } from "./chart-parts.js";
import { dots, heatMap, lines, ofDots, ofHeat, ofLines, ofSpread, ofStack, spread, stack } from "./charts.js";
import { copyable, narrowed } from "./command.js";
import { means, ratios } from "./comparisons.js";
import {
  about, casesOf, chargeParts, configurationsOf, eachOperation, heading, inside, isFloor, measured, missing, rulesOf, sections, unique,
  workParts,
} from "./data.js";
import { choice, fold, h, slug } from "./dom.js";
import { count, spaced, times, whole } from "./format.js";
import * as names from "./names.js";
import { numeric, sectionTable, sheetTable, table, textual } from "./tables.js";

/** With more sections than this, there is one chart for all, and a table for each. */
const MANY_SECTIONS = 12;
/** Conclusions of one kind that are shown at once. */
const FIRST = 4;

/** One results file: its conclusions, then the charts and tables of each section. @param {import("./data.js").Report} report @returns {HTMLElement} */
export function suite(report) {
  const names = sections(report);
  const title = `${report.id}-title`;
  const ids = new Map(names.map((name) => [name, `${report.id}-${slug(name)}`]));
  const many = names.length > MANY_SECTIONS;
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

/** The sources of the figures: versions, modules, settings, commands. @param {{reports: import("./data.js").Report[], tool: string}} data @returns {HTMLElement} */
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

const COSTS = {
  instructions: ["instructions", (of) => Number(measured(of).instructions)],
  charge: ["charge", (of) => Number(inside(of)?.charge ?? NaN)],
  cycles: ["cycles", (of) => Number(measured(of).detail?.cost.cycles ?? NaN)],
};

/** Readers of sections: panel and size of a case, the label of the axis, and the unit. */
const READERS = {
  "users/insert": { read: ({ name }) => pick(names.insert(name), (of) => [of.place, of.n]), x: "new rows per message", unit: "row", title: "Cost of a new row, by rows per message" },
  "users/transactions": { read: ({ name }) => pick(names.transaction(name), (of) => [of.messages, of.size]), x: "rows per transaction", unit: "row", title: "Cost of a new row, by rows per transaction" },
  "users/curve": { read: ({ name }) => pick(names.curve(name), (of) => [of.work, of.rows]), x: "rows in the table", unit: "row", title: "Cost of a row, by rows in the table" },
  "users/payload": { read: ({ name }) => pick(names.payload(name), (of) => [of.work, of.bytes]), x: "bytes per row", unit: "row", title: "Cost of a row, by its length" },
  "vfs/transactions": { read: ({ name }) => pick(names.sized(name), (of) => [`${of.work}, ${of.state}`, of.n]), x: "rows per transaction", unit: "row", title: "Cost of a row written, by rows per transaction" },
  "vfs/reads": { read: ({ name }) => pick(names.sized(name), (of) => [`${of.work}, ${of.state}`, of.n]), x: "rows per transaction", unit: "row", title: "Cost of a row read, by rows read together" },
};
/** Sections with more cases than this are shown by kind. */
const MANY_CASES = 26;
/** Default configurations of the libraries. */
const DEFAULTS = [
  ["sqlite-vfs", /^sqlite-vfs(?:$|[,/])/],
  ["sqlite/persist", /^sqlite\//],
];

/** The chart of a section; `null` if nothing could be measured. @param {import("./data.js").Report} report @param {string} section @param {Node?} table */
function sectionFigure(report, section, table) {
  if (section === "settings" && report.results.suite === "users") return settingsFigure(report, section, table);
  return linesFigure(report, section, table) ?? dotsFigure(report, section, table);
}

function pick(found, of) {
  return found && of(found);
}

/** The data of a section's chart; `null` if its cases have no sizes. */
export function linesOf(report, section, cost = "instructions") {
  const reader = READERS[`${report.results.suite}/${section}`];
  if (!reader) return null;
  const cases = casesOf(report, section).filter(measured);
  const points = cases.flatMap((of) => {
    const found = reader.read(of);
    const value = COSTS[cost][1](of) / Math.max(1, Number(measured(of).operations));
    if (!found || !Number.isFinite(value)) return [];
    return [point(report, found, of.configuration, value, reader, cost)];
  });
  const ghosts = cost !== "instructions" ? [] : published(report, section).flatMap((of) => {
    const found = reader.read(of);
    const ours = points.some((own) => own.panel === found?.[0] && own.key === of.configuration);
    return found && ours ? [{ ...point(report, found, of.configuration, of.instructions / Math.max(1, of.operations), reader, "published instructions"), ghost: true }] : [];
  });
  if (new Set(points.map((of) => of.x)).size < 2) return null;
  return { reader, points: [...points, ...ghosts], series: series(report, configurationsOf(report, cases)) };
}

function point(report, [panel, x], key, y, reader, cost) {
  return { panel, x, key, y, title: `${heading(report, key)}, ${panel}, ${whole(x)} ${reader.x}: ${whole(y)} ${cost} per ${reader.unit}` };
}

/** Published figures for a section. */
function published(report, section) {
  return (report.published?.figures ?? []).filter((of) => of.section === section);
}

/** The figure; `null` if there are fewer than two sizes. */
function linesFigure(report, section, table) {
  const found = linesOf(report, section);
  if (!found) return null;
  const { reader } = found;
  let cost = "instructions";
  const known = Object.keys(COSTS).filter((key) => linesOf(report, section, key));
  const made = figure({
    title: reader.title,
    file: `${report.results.suite}-${slug(section)}`.replace(/[^\w-]/g, ""),
    command: narrowed(report.results, section),
    table,
    controls: known.length > 1 ? [choice("Cost", known.map((value) => ({ value, text: COSTS[value][0] })), cost, (value) => { cost = value; made.redraw(); })] : [],
    draw: (context) => lines(context, { ...linesContent(report, section, cost, linesOf(report, section, cost)), single: true }),
  });
  return made;
}

/** The arguments of the chart. */
export function linesContent(report, section, cost, { reader, points, series }) {
  const cases = casesOf(report, section);
  const same = cases.every((of) => of.rows === cases[0].rows && of.payload === cases[0].payload);
  return {
    title: reader.title,
    subtitle: `${about(report, section)}${same ? `; ${whole(cases[0].rows)} rows of ${whole(cases[0].payload)} bytes before` : ""}`,
    description: ofLines(points, series, `${COSTS[cost][0]} per ${reader.unit} over ${reader.x}, both axes logarithmic`),
    x: `${reader.x} →`,
    y: `↑ ${COSTS[cost][0]} per ${reader.unit}`,
    points, series, ghosts: report.published?.source,
  };
}

function dotsOf(report, section, kind) {
  const cases = casesOf(report, section).filter((of) => measured(of) && (!kind || kindOf(of.name) === kind));
  const capacity = cases.some((of) => measured(of).capacity);
  const value = capacity ? (of) => Number(measured(of).operations) : eachOperation;
  const unit = capacity ? "operations in one message" : "instructions per operation";
  const points = cases.map((of) => ({
    row: kind ? of.name.slice(0, -kind.length - 2) : of.name, key: of.configuration, x: value(of), title: `${of.name}, ${heading(report, of.configuration)}: ${whole(value(of))} ${unit}`,
  }));
  const ghosts = published(report, section).map((of) => {
    const x = of.instructions / Math.max(1, of.operations);
    return { row: of.name, key: of.configuration, x, ghost: true, title: `${of.name}, ${heading(report, of.configuration)}, published: ${whole(x)} ${unit}` };
  });
  const here = new Set(points.map((of) => of.row));
  return { unit, dots: [...points, ...ghosts.filter((of) => here.has(of.row))], series: series(report, configurationsOf(report, cases)) };
}

/** The last part of a name, for example warm or cold. */
function kindOf(name) {
  const at = name.lastIndexOf(", ");
  return at < 0 ? "" : name.slice(at + 2);
}

/** One row per case, one dot per configuration. @param {import("./data.js").Report} report @param {string} section @param {Node?} table */
function dotsFigure(report, section, table) {
  const names = new Set(casesOf(report, section).filter(measured).map((of) => of.name));
  if (!names.size) return null;
  const kinds = [...new Set([...names].map(kindOf))];
  let kind = names.size > MANY_CASES && kinds.length > 1 ? kinds[0] : null;
  const title = about(report, section);
  const made = figure({
    title: "Case by case",
    file: `${slug(report.results.suite)}-${slug(section)}-cases`,
    command: narrowed(report.results, section),
    table,
    controls: kind === null ? [] : [choice("Cases", kinds.map((value) => ({ value, text: value || "others" })), kind, (value) => { kind = value; made.redraw(); })],
    draw: (context) => {
      const found = dotsOf(report, section, kind);
      return dots(context, {
        title: `${title}${kind ? `: ${kind}` : ""}`,
        description: ofDots(found.dots, found.series, `${found.unit}, logarithmic`),
        x: `${found.unit} →`, ghosts: report.published?.source, ...found,
      });
    },
  });
  return made;
}

/**
 * Ratios of one or more configurations to a base, one row per section.
 * @param {import("./data.js").Report} report
 * @param {string} base
 * @param {string[]} others
 * @param {{title: string, table?: Node?, file: string, level?: number}} of
 */
function ratiosFigure(report, base, others, of) {
  const all = others.flatMap((other) => ratios(report, base, other).map((row) => ({ ...row, other })));
  if (!all.length) return null;
  const suiteRatios = report.published?.ratios ?? [];
  const rowOf = (section) => about(report, section);
  const points = all.map((row) => ({
    row: rowOf(row.section), key: row.other, x: row.ratio,
    title: `${row.name}, ${heading(report, row.other)} against ${heading(report, base)}: ${times(row.ratio)}`,
  }));
  const here = new Set(points.map((point) => point.row));
  const ghosts = suiteRatios
    .map((ratio) => ({ row: rowOf(ratio.section), key: "\0published", x: ratio.ratio, ghost: true, title: `published average, ${ratio.of}: ${times(ratio.ratio)}` }))
    .filter((ghost) => here.has(ghost.row));
  const averages = others.flatMap((other) =>
    means(all.filter((row) => row.other === other)).filter((mean) => mean.section !== null).map((mean) => ({
      row: rowOf(mean.section), key: other, x: mean.geometric, title: `geometric mean, ${heading(report, other)}: ${times(mean.geometric)}`,
    })),
  );
  const looks = [...series(report, others), { key: "\0published", heading: "published", colour: "ghost", symbol: "circle", dash: null, width: 1 }];
  return figure({
    ...of,
    command: report.results.command,
    draw: (context) =>
      dots(context, {
        title: of.title,
        description: ofDots(averages, looks, `Ratios to ${heading(report, base)}, logarithmic; geometric means`),
        x: "instructions / instructions of the base →",
        base: 1, series: looks, dots: [...points, ...ghosts], means: averages,
        ghosts: ghosts.length ? `average, ${suiteRatios[0].of}; ${report.published.source}` : undefined,
      }),
  });
}

/** The settings of the suite users, each compared with its library's default. @param {import("./data.js").Report} report @param {string} section @param {Node?} table */
function settingsFigure(report, section, table) {
  const cases = casesOf(report, section);
  const names = unique(cases.map((of) => of.name));
  const found = new Map(cases.map((of) => [`${of.name}\n${of.configuration}`, of]));
  const at = (name, key) => found.get(`${name}\n${key}`);
  const keys = configurationsOf(report, cases);
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

/**
 * @param {import("./data.js").Report} report
 * @param {{title: string, about: string, file: string, has: (of: import("./data.js").Case) => any,
 *   favourite: string[], columns: (report: import("./data.js").Report) => import("./tables.js").TableColumn[],
 *   draw: (context: import("./chart-parts.js").Context, cases: import("./data.js").Case[], label: string) => SVGElement,
 *   controls?: (update: () => void) => Node[]}} of `controls` are shown in addition to the choice of the case
 */
function ofCase(report, { title, about, file, has, favourite, draw, columns, controls }) {
  const cases = report.results.cases.filter(has);
  const names = unique(cases.map((of) => `${of.section}\n${of.name}`));
  if (!names.length) return null;
  let chosen = names.find((name) => favourite.includes(name)) ?? names[0];
  const own = () => cases.filter((of) => `${of.section}\n${of.name}` === chosen);
  const label = () => chosen.replace("\n", ": ");
  const figures = h("div");
  const fill = () => figures.replaceChildren(table({ caption: `${title}: ${label()}`, rows: own(), columns: columns(report) }));
  fill();
  const update = () => { fill(); made.redraw(); };
  const options = names.map((value) => ({ value, text: value.replace("\n", ": ") }));
  const made = figure({
    title, about, file: `${slug(report.results.suite)}-${file}`, command: report.results.command, table: figures,
    controls: [choice("Case", options, chosen, (value) => { chosen = value; update(); }), ...(controls?.(update) ?? [])],
    draw: (context) => draw(context, own(), label()),
  });
  return made;
}

/** Columns of a table: the engine, then numbers. */
function named(report, columns) {
  return [
    textual("Engine or mode", (of) => heading(report, of.configuration)),
    ...columns.map(([name, value]) => numeric(name, (of) => Number(value(of)), whole)),
  ];
}

/** The bars of a chart: floors only if there is nothing else. */
function barsOf(report, cases, parts) {
  const engines = cases.filter((of) => !isFloor(report, of.configuration));
  return (engines.length ? engines : cases).map((of) => ({ heading: heading(report, of.configuration), parts: parts(of) }));
}

const CHARGE_PARTS = ["the work", "around the work", "after the end"];
const PHASES = ["open", "prepare", "begin", "bind", "step", "copy", "commit", "rest"];

/** @param {import("./data.js").Report} report */
function stackFigure(report) {
  const partsOf = (of) => {
    const work = Number(measured(of).instructions);
    const { instructions, charge } = inside(of);
    return [work, Math.max(0, instructions - work), Math.max(0, charge - instructions)];
  };
  return ofCase(report, {
    title: "Where the charge of a message goes",
    about: `The counter shows the work. Around it, the canister reads its argument and checks the rows. Charges that the counter does not show follow after the end. ${report.rules?.charge ?? ""} Floors are in the table.`,
    file: "charge",
    has: inside,
    favourite: ["insert\nmiddle 100", "transactions\ninsert 1 000, warm", "integer autocommit writes\nupdate_index"],
    columns: (of) => named(of, CHARGE_PARTS.map((part, at) => [part, (one) => partsOf(one)[at]]).concat([["charge", (one) => inside(one).charge]])),
    draw: (context, cases, label) => {
      const bars = barsOf(report, cases, partsOf);
      return stack(context, { title: `Where the charge goes: ${label}`, description: ofStack(bars, CHARGE_PARTS), x: "instructions →", parts: CHARGE_PARTS, bars });
    },
  });
}

/** @param {import("./data.js").Report} report */
function phasesFigure(report) {
  const of = (one, phase) => measured(one).phases.find((cost) => cost.phase === phase)?.instructions ?? 0;
  return ofCase(report, {
    title: "Where the instructions of SQL go",
    about: "The same work, measured again in a fork, by phase: the connection is opened, statements are prepared, a transaction begins, parameters are bound, steps executed, values copied, and the transaction committed.",
    file: "phases",
    has: (one) => measured(one)?.phases,
    favourite: ["transactions\ninsert 1 000, warm"],
    columns: (own) => named(own, PHASES.map((phase) => [phase, (one) => of(one, phase)])),
    draw: (context, cases, label) => {
      const bars = cases.map((one) => ({ heading: heading(report, one.configuration), parts: PHASES.map((phase) => of(one, phase)) }));
      return stack(context, { title: `Where the instructions of SQL go: ${label}`, description: ofStack(bars, PHASES), x: "instructions →", parts: PHASES, bars });
    },
  });
}

/** @param {import("./data.js").Report} report */
function spreadFigure(report) {
  const keys = ["min", "p50", "p90", "p99", "max"];
  return ofCase(report, {
    title: "What single operations cost",
    about: "From the cheapest to the most expensive operation of a case, without the beginning and the end of transactions.",
    file: "operations",
    has: (of) => measured(of)?.each,
    favourite: ["insert\nmiddle 1 000", "benchmarks\nfillrandom"],
    columns: (of) => named(of, [...keys.map((key) => [key, (one) => measured(one).each[key]]), ["operations that allocated storage", (one) => measured(one).each.allocating]]),
    draw: (context, cases, label) => {
      const looks = series(report, cases.map((of) => of.configuration));
      const rows = cases.map((of, at) => ({ heading: looks[at].heading, colour: looks[at].colour, ...measured(of).each }));
      return spread(context, { title: `What single operations cost: ${label}`, description: ofSpread(rows), x: "instructions of one operation →", rows });
    },
  });
}

const PAGE_PARTS = ["compute", "heap pages", "stable pages"];

/** The totals that can be divided, and their page counts. */
const BASES = {
  charge: ["whole charge", chargeParts, (of) => inside(of)?.pages],
  work: ["instructions of the work", workParts, (of) => measured(of)?.detail?.pages],
};
const TOUCHED = [
  ["heap pages touched", "heap"],
  ["heap pages written", "heap_written"],
  ["stable pages touched", "stable"],
  ["stable pages written", "stable_written"],
];

/** @param {import("./data.js").Report} report */
function pagesFigure(report) {
  const { cases } = report.results;
  const bases = Object.keys(BASES).filter((basis) => cases.some(BASES[basis][1]));
  if (!bases.length) return null;
  let [basis] = bases;
  const partsOf = (of) => BASES[basis][1](of);
  const touched = (of) => BASES[basis][2](of)?.touched;
  const counted = cases.some((of) => bases.some((one) => BASES[one][2](of)?.touched));
  return ofCase(report, {
    title: "Compute and memory pages",
    about: `Compute is the charge without the cost of memory pages. ${report.rules?.charge ?? ""} Floors are in the table.`,
    file: "pages",
    has: (of) => bases.every((one) => BASES[one][1](of)),
    favourite: ["insert\nmiddle 100", "transactions\ninsert 1 000, warm"],
    columns: (of) => named(of, [
      ...PAGE_PARTS.map((part, at) => [part, (one) => partsOf(one)[at]]),
      ["total", (one) => partsOf(one).reduce((sum, part) => sum + part, 0)],
      ...(counted ? TOUCHED.map(([name, key]) => [name, (one) => touched(one)?.[key] ?? NaN]) : []),
    ]),
    controls: (update) =>
      bases.length > 1 ? [choice("Of the", bases.map((value) => ({ value, text: BASES[value][0] })), basis, (value) => { basis = value; update(); })] : [],
    draw: (context, own, label) => {
      const bars = barsOf(report, own, partsOf);
      return stack(context, { title: `Compute and memory pages: ${label}`, subtitle: BASES[basis][0], description: ofStack(bars, PAGE_PARTS), x: "instructions →", parts: PAGE_PARTS, bars });
    },
  });
}
