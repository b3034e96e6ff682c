/** The page: unpacks its data, and builds itself of it. */

import { answer } from "./answer/view.js";
import { toggle, navigation } from "./header.js";
import { bill } from "./bill/view.js";
import { changesSection } from "./changes.js";
import { named, unpack } from "./data.js";
import { h } from "./dom.js";
import { multipliers } from "./multipliers.js";
import { provenance } from "./provenance.js";
import * as rules from "./rules.js";
import { suite } from "./suites/view.js";

async function start() {
  const place = document.getElementById("page");
  try {
    const data = await unpack(document.getElementById("data").textContent);
    const names = rules.choices(data.reports);
    // The newest set contains today's prices.
    show(place, data, { names, chosen: names[names.length - 1] ?? null, kept: { answer: {}, bill: {} } });
    if (location.hash.length > 1) document.getElementById(location.hash.slice(1))?.scrollIntoView();
  } catch (error) {
    place.replaceChildren(h("p", { class: "plain", role: "alert" }, `The report cannot be shown: ${error.message}.`));
    throw error;
  }
}

/**
 * @param {HTMLElement} place
 * @param {any} all
 * @param {{names: string[], chosen: string?, kept: {answer: Object, bill: Object}}} state rule sets
 *   to choose from, the chosen one, and what the reader has asked for
 */
function show(place, all, state) {
  const reports = named(rules.visible(all.reports, state.chosen), all.rules);
  const data = { ...all, reports };
  const monthly = bill(data, state.kept.bill);
  const changed = changesSection(rules.pairs(named(all.reports, all.rules)));
  const pairs = multipliers(reports);
  const links = [
    ["#answer", "What is cheapest?"],
    ...(monthly ? [["#bill", "Monthly bill"]] : []),
    ...(changed ? [["#changes", "What changed"]] : []),
    ...reports.map((report) => [`#${report.id}`, report.title]),
    ...(pairs ? [["#multipliers", "Multipliers"]] : []),
    ["#provenance", "Sources"],
  ];
  const choose = (chosen) => {
    const restore = position();
    show(place, all, { ...state, chosen });
    place.querySelector("select[name=rules]").focus({ preventScroll: true });
    restore();
  };
  document.title = `stablebench: ${reports.map((report) => report.title).join(", ")}`;
  place.replaceChildren(
    h("a", { class: "skip", href: "#answer" }, "Skip to the answer"),
    h("header", { class: "top" }, navigation(links),
      state.names.length > 0 && rules.switcher(state.names, state.chosen, choose), toggle()),
    h(
      "main",
      {},
      h("div", { class: "title" }, h("h1", {}, "What storing data in a canister costs"),
        h("p", { class: "lead" }, "Instructions, cycles and US dollars on the Internet Computer, measured by stablebench.")),
      answer(data, state.kept.answer),
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
