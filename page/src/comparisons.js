/** The sections that compare: what new rules changed, and one configuration against another. */

import { dots, ofDots } from "./charts/rows.js";
import { series } from "./charts/style.js";
import { copyable } from "./command.js";
import { about, configurationsOf, heading, isFloor, measured, rulesOf, unique } from "./data.js";
import { choice, fold, h, slug } from "./dom.js";
import { figure } from "./figure.js";
import { times, whole } from "./format.js";
import { COSTS, changes, means, ratios } from "./ratios.js";
import { numeric, table, textual } from "./tables.js";

/** The section on changes from one rule set to another: one row per case, one dot per engine. @param {import("./data.js").Pair[]} pairs @returns {HTMLElement?} */
export function changesSection(pairs) {
  const known = pairs.filter((pair) => costsOf(pair).length);
  if (!known.length) return null;
  const place = h("div");
  const show = (pair) => place.replaceChildren(...ofPair(pair));
  show(known[0]);
  return h(
    "section",
    { id: "changes", "aria-labelledby": "changes-title" },
    h("h2", { id: "changes-title" }, "What the new rules changed"),
    known.length > 1 && choice("Suite", known.map(({ suite }, at) => ({ value: String(at), text: suite })), "0", (value) => show(known[Number(value)])),
    place,
  );
}

/** Costs that both reports contain for some case. */
function costsOf(pair) {
  return Object.keys(COSTS).filter((cost) => changes(pair, cost).length);
}

function ofPair(pair) {
  const costs = costsOf(pair);
  const asked = { cost: costs[0], section: changes(pair, costs[0])[0].section };
  const from = rulesOf(pair.old);
  const to = rulesOf(pair.new);
  const rows = () => changes(pair, asked.cost).filter((row) => row.section === asked.section);
  const sections = () => unique(changes(pair, asked.cost).map((row) => row.section));
  const label = (section) => about(pair.new, section);
  const ratios = h("div");
  const change = () => {
    if (!sections().includes(asked.section)) [asked.section] = sections();
    ratios.replaceChildren(ratioTable(pair, rows(), `${from} → ${to}, ${COSTS[asked.cost][0]}: ${label(asked.section)}`));
    made.redraw();
  };
  const made = figure({
    title: `${from} → ${to}, case by case`,
    about: `The cost under the rules ${to}, divided by the cost under ${from}: a mark to the right of 1 means more expensive now. Only cases with the same sizes in both files are shown.`,
    level: 3,
    file: `${slug(pair.suite)}-rules`,
    command: `stablebench compare ${pair.old.file} ${pair.new.file}`,
    table: ratios,
    controls: [
      choice("Section", sections().map((value) => ({ value, text: label(value) })), asked.section, (value) => { asked.section = value; change(); }),
      costs.length > 1 && choice("Cost", costs.map((value) => ({ value, text: COSTS[value][0] })), asked.cost, (value) => { asked.cost = value; change(); }),
    ].filter(Boolean),
    draw: (context) => {
      const own = rows();
      const looks = series(pair.new, configurationsOf(pair.new, own));
      const points = own.map((row) => ({
        row: row.name, key: row.configuration, x: row.ratio,
        title: `${row.name}, ${heading(pair.new, row.configuration)}: ${whole(row.old)} → ${whole(row.new)}, ${times(row.ratio)}`,
      }));
      return dots(context, {
        title: `${from} → ${to}: ${label(asked.section)}`,
        description: ofDots(points, looks, `${COSTS[asked.cost][0]} under ${to} / under ${from}, logarithmic`, times),
        x: `${COSTS[asked.cost][0]}, ${to} / ${from} →`,
        base: 1, series: looks, dots: points,
      });
    },
  });
  change();
  return [made.element];
}

function ratioTable(pair, rows, caption) {
  const keys = configurationsOf(pair.new, rows);
  const found = new Map(rows.map((row) => [`${row.name}\n${row.configuration}`, row]));
  const ratio = (name, key) => found.get(`${name}\n${key}`)?.ratio ?? NaN;
  return table({
    caption,
    rows: unique(rows.map((row) => row.name)),
    columns: [
      textual("Case", (name) => name),
      ...keys.map((key) => ({ ...numeric(heading(pair.new, key), (name) => ratio(name, key), times), floor: isFloor(pair.new, key) })),
    ],
  });
}

/** The section that compares two configurations of a file: by section, then case by case. @param {import("./data.js").Report[]} reports @returns {HTMLElement?} */
export function multipliers(reports) {
  const comparable = reports.filter((report) => configurations(report).length > 1);
  if (!comparable.length) return null;
  const place = h("div", { class: "pair" });
  const show = (report) => place.replaceChildren(pair(report));
  show(comparable[0]);
  return h(
    "section",
    { id: "multipliers", "aria-labelledby": "multipliers-title" },
    h("h2", { id: "multipliers-title" }, "One against the other"),
    h("p", { class: "about" }, "The other's instructions divided by the base's: more than 1 is worse. For the number of operations that fit into a message, base / other."),
    comparable.length > 1 && choice("From", comparable.map((report, at) => ({ value: String(at), text: report.topic })), "0", (value) => show(comparable[Number(value)])),
    place,
  );
}

function configurations(report) {
  return configurationsOf(report, report.results.cases.filter(measured));
}

function pair(report) {
  const keys = configurations(report);
  const chosen = { base: keys[0], other: keys[1] };
  const place = h("div", { "aria-live": "off" });
  const options = keys.map((value) => ({ value, text: heading(report, value) }));
  const show = () => place.replaceChildren(...comparison(report, chosen));
  const select = (label, name) => choice(label, options, chosen[name], (value) => { chosen[name] = value; show(); });
  show();
  return h("div", {}, h("div", { class: "controls" }, select("Other", "other"), select("Base", "base")), place);
}

function comparison(report, { base, other }) {
  const rows = ratios(report, base, other);
  const title = `${heading(report, other)} / ${heading(report, base)}`;
  if (!rows.length) return [h("p", { class: "about" }, `${title}: no case was measured with both.`)];
  const section = (row) => (row.section === null ? "All" : about(report, row.section));
  const command = `stablebench compare ${report.file} --configurations ${base} ${other}`;
  const all = means(rows);
  return [
    h("p", { class: "answer" }, h("strong", {}, times(all[all.length - 1].geometric)), ` is the geometric mean of ${whole(rows.length)} cases: ${title}.`),
    fold("By section", table({
      caption: `${title}, by section`,
      rows: all,
      columns: [
        textual("Section", section),
        numeric("Cases", (row) => row.cases, whole),
        numeric("Geometric mean", (row) => row.geometric, times),
        numeric("Arithmetic mean", (row) => row.arithmetic, times),
        numeric("Least", (row) => row.least, times),
        numeric("Most", (row) => row.most, times),
      ],
    })),
    h(
      "details",
      {},
      h("summary", {}, `Case by case (${rows.length})`),
      table({
        caption: `${title}, case by case`,
        rows,
        columns: [
          textual("Case", (row) => row.name),
          textual("Section", (row) => row.section),
          numeric(heading(report, base), (row) => row.base, whole),
          numeric(heading(report, other), (row) => row.other, whole),
          numeric("Ratio", (row) => row.ratio, times),
        ],
      }),
    ),
    copyable(command, title),
  ];
}
