/** The page: unpacks its data, and builds itself of it. */

import { follow } from "./address.js";
import { answer } from "./answer/view.js";
import { toggle, navigation } from "./header.js";
import { bill } from "./bill/view.js";
import { changesSection } from "./changes.js";
import { named, unpack } from "./data.js";
import { h } from "./dom.js";
import { multipliers } from "./multipliers.js";
import { provenance } from "./provenance.js";
import { firstOf, question } from "./question.js";
import * as rules from "./rules.js";
import { suite } from "./suites/view.js";
import { sources } from "./mix/sources.js";

async function start() {
  const place = document.getElementById("page");
  try {
    const data = await unpack(document.getElementById("data").textContent);
    const names = rules.choices(data.reports);
    // The newest set contains today's prices.
    const newest = names[names.length - 1] ?? null;
    const shown = named(rules.visible(data.reports, newest), data.rules);
    const address = follow({ ...firstOf(sources(shown)), rules: newest }, (asked) => show(place, data, names, address, asked));
    show(place, data, names, address, address.asked());
    address.reveal();
  } catch (error) {
    place.replaceChildren(h("p", { class: "plain", role: "alert" }, `The report cannot be shown: ${error.message}.`));
    throw error;
  }
}

/**
 * @param {HTMLElement} place
 * @param {any} all
 * @param {string[]} names rule sets to choose from
 * @param {import("./address.js").Address} address
 * @param {Partial<import("./asked.js").Asked>} reader what the reader asks
 */
function show(place, all, names, address, reader) {
  const chosen = names.includes(reader.rules) ? reader.rules : names[names.length - 1] ?? null;
  const reports = named(rules.visible(all.reports, chosen), all.rules);
  const again = (focus, asked) => {
    const restore = position();
    address.write(asked);
    show(place, all, names, address, asked);
    place.querySelector(focus)?.focus({ preventScroll: true });
    restore();
  };
  const asked = question(reports, { ...reader, rules: chosen }, { changed: address.changed, again: (next) => again("#answer .choice select", next) });
  const data = { ...all, reports };
  const monthly = bill(asked, data.charged_nodes);
  const changed = changesSection(rules.pairs(named(all.reports, all.rules)));
  const pairs = multipliers(reports);
  const links = [
    ["#answer", "What is cheapest?"],
    ...(monthly ? [["#bill", "What does a month cost?"]] : []),
    ...(changed ? [["#changes", "What did the rules change?"]] : []),
    ...reports.map((report) => [`#${report.id}`, report.topic]),
    ...(pairs ? [["#multipliers", "One against the other"]] : []),
    ["#provenance", "Where is this from?"],
  ];
  document.title = `stablebench: ${reports.map((report) => report.title).join(", ")}`;
  place.replaceChildren(
    h("a", { class: "skip", href: "#answer" }, "Skip to the answer"),
    h("header", { class: "top" }, navigation(links),
      names.length > 0 && rules.switcher(names, chosen, (name) => again("select[name=rules]", { ...asked.asked, rules: name })), toggle()),
    h(
      "main",
      {},
      h("div", { class: "title" }, h("h1", {}, "What storing data in a canister costs"),
        h("p", { class: "lead" }, "Instructions, cycles and US dollars on the Internet Computer, measured by stablebench.")),
      answer(asked, data.charged_nodes),
      monthly,
      changed,
      reports.map(suite),
      pairs,
      provenance(data),
    ),
    h("footer", {}, h("button", { type: "button", class: "quiet", onclick: openAll }, "Open all tables, for printing")),
  );
}

/** Remembers the part in view; the returned function scrolls back to it. */
function position() {
  const parts = [...document.querySelectorAll("main section[id]")];
  const part = parts.filter((of) => of.getBoundingClientRect().top <= 100).pop();
  const before = part?.getBoundingClientRect().top;
  return () => {
    const again = part && document.getElementById(part.id);
    if (!again) return;
    const scroll = () => scrollBy({ top: again.getBoundingClientRect().top - before, behavior: "instant" });
    // Charts are drawn, and have their heights, in the frame after the first.
    scroll();
    requestAnimationFrame(() => requestAnimationFrame(scroll));
  };
}

function openAll() {
  for (const details of document.querySelectorAll("details")) details.open = true;
}

start();
