/** The first part of the page: the reader's mix, one recommendation, and the origin and errors of the figures. */

import { PLACES, controls, orders } from "./controls.js";
import { errorSize, errorText, uncertain } from "./estimate.js";
import { errorTables } from "./errors.js";
import { compared, ranked } from "./rank.js";
import { recommended } from "./recommend.js";
import { warning } from "./warning.js";
import { copyable, exactly, measuredWith } from "../command.js";
import { choice, fold, h } from "../dom.js";
import { count, dollars, short, times, whole } from "../format.js";
import { settingsOf, undoes } from "../mix/settings.js";
import { sourceOf } from "../mix/sources.js";
import { table } from "../tables/table.js";

/** The number of messages for which a price is shown. */
const MESSAGES = 1e6;
/** Milliseconds without input after which screen readers announce the answer. */
const PAUSE = 350;

/**
 * @param {import("../question.js").Question} question
 * @param {number} chargedNodes the subnet size of the prices
 * @returns {HTMLElement}
 */
export function answer(question, chargedNodes) {
  const { sources } = question;
  const section = h("section", { id: "answer", "aria-labelledby": "answer-title" }, h("h2", { id: "answer-title" }, "What is cheapest for my mix?"));
  if (!sources.length) {
    section.append(h("p", { class: "about" }, "None of these files answers this. ", h("code", {}, "stablebench run mix"), " measures a mix of your own, ",
      h("code", {}, "stablebench run users"), " what many mixes can be estimated from."));
    return section;
  }
  if (sources.length > 1) section.append(from(question));
  section.append(...content(question, chargedNodes));
  return section;
}

/** The choice of a file, with its own question. */
function from(question) {
  const { sources, asked } = question;
  const options = sources.map(({ report, mix }, at) => ({ value: String(at), text: mix ? `${report.title}: ${describe(mix)}` : `${report.title}: estimates` }));
  return choice("From", options, String(sources.indexOf(sourceOf(sources, asked))), (value) => question.start(sources[Number(value)]));
}

/** A mix in words. @param {import("../mix/estimate.js").Mix} mix */
function describe(mix) {
  const kinds = [["insert", "insert"], ["read", "read"], ["update", "update"], ["delete", "delete"], ["scan", "scan"]];
  const done = kinds.filter(([name]) => mix[name] > 0).map(([name, noun]) => count(mix[name], noun));
  const indexes = mix.indexes ? `, ${mix.indexes} ${mix.indexes === 1 ? "index" : "indexes"}` : "";
  return `${done.join(", ") || "nothing"} ${PLACES[mix.place]} in ${whole(mix.rows)} rows of ${whole(mix.payload)} bytes${indexes}`;
}

function content(question, chargedNodes) {
  const { asked, sources } = question;
  const spoken = h("div", { class: "answer", "aria-live": "polite", "aria-atomic": "true" });
  const warned = h("div");
  const advised = h("div");
  const list = h("div");
  const origin = h("div");
  const errors = h("div");
  const fill = (source) => errors.replaceChildren(...errorTables(source, asked.place));
  // The tables take a while to compute, and few readers open them.
  const details = h("details", { class: "method", ontoggle: () => details.open && !errors.hasChildNodes() && fill(sourceOf(sources, asked)) },
    h("summary", {}, "Origin and error of these figures"), origin, errors);
  let timer = 0;
  let shown = null;
  const update = (now) => {
    const source = sourceOf(sources, asked);
    const found = ranked(source.report, source, asked, chargedNodes, source.cost);
    const command = exactly(source.report.results, asked, found.rows);
    const more = measuredWith(source.report.results, found.rows).filter((key) => !found.rows.some((row) => row.key === key));
    const also = more.length > 0 && h("p", { class: "about" }, "The command also measures ", more.flatMap((key, at) => [at ? ", " : "", h("code", {}, key)]), ", which this file has not.");
    const warn = warning(found.rows, command, also);
    warned.replaceChildren(warn ?? "");
    advised.replaceChildren(recommended(source.report, found.rows, found.by), ...(warn ? [] : [copyable(command, "exactly this mix", { open: true, title: "Command that measures exactly this mix" }), also].filter(Boolean)));
    list.replaceChildren(answerTable(found, asked));
    const say = () => spoken.replaceChildren(h("p", {}, ...sentence(source.report, found)));
    clearTimeout(timer);
    if (now === true) say();
    else timer = setTimeout(say, PAUSE);
    const key = `${source.report.file} ${asked.place} ${Boolean(source.mix)}`;
    if (shown !== key) {
      shown = key;
      origin.replaceChildren(...method(source));
      if (details.open) fill(source);
      else errors.replaceChildren();
    }
  };
  question.listen(update);
  update(true);
  const change = () => question.change();
  return [
    ...controls(asked, change), orders(asked, () => question.change(true)), warned, spoken, advised,
    fold("All engines", list),
    details,
  ];
}

/** The recommendation in words. */
function sentence(report, { rows, by }) {
  const all = rows.filter((row) => row.rank !== null);
  const best = all.find((row) => undoes(settingsOf(report, row.key)));
  if (!best) return [`There is no figure for this mix: ${reason(rows)}. The command measures it.`];
  const cost = [`${whole(best.instructions)} instructions`];
  if (Number.isFinite(best.charge) && best.charge !== best.instructions) cost.push(`${whole(best.charge)} with heap pages`);
  if (Number.isFinite(best.cycles)) cost.push(`${short(best.cycles)} cycles, ${dollars(best.usd * MESSAGES)} for a million messages`);
  const inexact = all.some((row) => uncertain(row.estimate)) ? "By inexact estimates, " : "";
  const parts = [inexact, h("strong", {}, best.heading), ` is cheapest: ${cost.join("; ")}.`];
  const kinds = { measured: "This was measured", interpolated: "This is interpolated", estimated: "This is estimated" };
  const error = best.estimate.error === null ? "" : `, and may be wrong by ${errorSize(best.estimate.error)}`;
  parts.push(` ${[`${kinds[best.estimate.kind]}${error}`, best.estimate.how].filter(Boolean).join(": ")}.`);
  const noun = by === "cycles" ? "cycles" : "instructions";
  const others = compared(rows).filter(({ row }) => row !== best);
  const takes = others.map(({ row, name }, at) => `${name}${at ? "" : " takes"} ${times(row[by] / best[by])}${at ? "" : ` the ${noun}`}`);
  if (takes.length) parts.push(` ${takes.join("; ")}.`);
  const close = all.filter((row) => row !== best && row.estimate.low <= best.estimate.high && (row.estimate.error !== null || best.estimate.error !== null));
  if (close.length) parts.push(` ${count(close.length, "other")} may be as cheap: the difference is within the error.`);
  return parts;
}

/** Why there is no figure: what most of the engines lack. */
function reason(rows) {
  const reasons = rows.filter((row) => !row.floor).map((row) => (row.estimate.cost ? "it is more than one message can do" : row.estimate.how));
  const times = (of) => reasons.filter((other) => other === of).length;
  return reasons.sort((one, other) => times(other) - times(one))[0] ?? "nothing was measured";
}

function answerTable({ rows, by }, asked) {
  const most = Math.max(...rows.filter((row) => row.rank).map((row) => row[by]));
  const best = rows.find((row) => row.rank === 1);
  const numeric = (heading, value, text) => ({
    heading, numeric: true, value, cell: (row) => (Number.isFinite(value(row)) ? text(value(row)) : "–"),
    class: (row) => (row.rank === 1 ? "best" : null),
  });
  const bar = (row) => h("span", { class: row.floor ? "bar floor" : "bar", "aria-hidden": "true",
    style: { width: `${Number.isFinite(row[by]) ? Math.min(100, (row[by] / most) * 100) : 0}%` } });
  return table({
    caption: `A message with ${describe(asked)}, the cheapest first`,
    hideCaption: true,
    rows,
    columns: [
      {
        heading: "Engine or mode",
        value: (row) => row.heading,
        class: () => "ranked",
        cell: (row) => [h("span", { class: "rank" }, row.rank ? String(row.rank) : row.floor ? "" : "–"), row.heading, h("span", { class: "track" }, bar(row))],
      },
      numeric("Compared with the cheapest", (row) => (row.fits ? row[by] / (best?.[by] ?? NaN) : NaN), times),
      numeric("Instructions", (row) => row.instructions, whole),
      numeric("Charge", (row) => row.charge, whole),
      numeric("Cycles", (row) => row.cycles, whole),
      numeric("USD per million messages", (row) => row.usd * MESSAGES, dollars),
      { heading: "How it is known", value: (row) => row.estimate.kind, class: () => "how", cell: how },
    ],
  });
}

const KINDS = { measured: "measured", interpolated: "interpolated", estimated: "estimated", none: "no figure" };

function how(row) {
  const { estimate } = row;
  const facts = [estimate.kind === "none" ? estimate.how : errorText(estimate)];
  if (!row.fits) facts.unshift("more than one message can do");
  return [h("span", { class: `badge ${estimate.kind}` }, KINDS[estimate.kind]), h("span", { class: "facts" }, facts.filter(Boolean).join("; "))];
}

function method({ report, mix }) {
  const cycles = h("p", {}, report.rules && `${report.rules.charge} `, "The charge excludes what is around the work; cycles are the charge and the fee for submitting the message, ",
    "for the given number of nodes. Around the work, this canister decodes its argument and checks the ids; other canisters do something else. ",
    "The whole message, as measured, includes that part.");
  if (mix) return [h("p", {}, "These figures are the mean of messages that were measured one after the other, and raw. The same file has no figure for another mix."), cycles];
  return [
    h("p", {}, "Measured figures are raw, and of one message. Others are estimated from the measured sizes that surround the question, compute and pages apart. ",
      "A message pays its fixed part once. Compute is added for each operation; what longer rows add is added for each row. ",
      "A page that several operations touch is paid once: at random places they meet by chance, elsewhere they work on the same pages. There is no figure beyond the measured sizes."),
    cycles,
    h("p", {}, "The stated range contains what different ways of estimating give, and is extended by what measured points are missed by if they are left out. Where something begins between two measured sizes, as when SQLite goes through its whole cache after pages have split, it contains both sides. ",
      "The tables show how far measured points are missed if they are left out and estimated from the others, which are then further apart than in use. Floors store the same bytes in bare stable memory and do nothing else: they have no rank."),
  ];
}
