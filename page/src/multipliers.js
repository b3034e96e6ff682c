/** Two configurations of a file compared: by section, then case by case. */

import { copyable } from "./command.js";
import { configurationsOf, heading, about, measured } from "./data.js";
import { choice, fold, h } from "./dom.js";
import { times, whole } from "./format.js";
import { means, ratios } from "./tables/ratios.js";
import { table } from "./tables/table.js";

/** @param {import("./data.js").Report[]} reports @returns {HTMLElement?} */
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
  const number = (name, value, text) => ({ heading: name, numeric: true, value, cell: (row) => text(value(row)) });
  const section = (row) => (row.section === null ? "All" : about(report, row.section));
  const command = `stablebench compare ${report.file} --configurations ${base} ${other}`;
  const all = means(rows);
  return [
    h("p", { class: "answer" }, h("strong", {}, times(all[all.length - 1].geometric)), ` is the geometric mean of ${whole(rows.length)} cases: ${title}.`),
    fold("By section", table({
      caption: `${title}, by section`,
      rows: all,
      columns: [
        { heading: "Section", value: section, cell: section },
        number("Cases", (row) => row.cases, whole),
        number("Geometric mean", (row) => row.geometric, times),
        number("Arithmetic mean", (row) => row.arithmetic, times),
        number("Least", (row) => row.least, times),
        number("Most", (row) => row.most, times),
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
          { heading: "Case", value: (row) => row.name, cell: (row) => row.name },
          { heading: "Section", value: (row) => row.section, cell: (row) => row.section },
          number(heading(report, base), (row) => row.base, whole),
          number(heading(report, other), (row) => row.other, whole),
          number("Ratio", (row) => row.ratio, times),
        ],
      }),
    ),
    copyable(command, title),
  ];
}
