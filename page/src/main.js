/** The page: unpacks its data, and builds itself of it. */

import { answer } from "./answer.js";
import { bill } from "./bill.js";
import { isDark } from "./chart-parts.js";
import { changesSection, multipliers } from "./comparisons.js";
import { named, rulePairs, ruleChoices, unpack, visible } from "./data.js";
import { h, id } from "./dom.js";
import { firstOf, follow, question, sources } from "./question.js";
import { provenance, suite } from "./suite.js";

async function start() {
  const place = document.getElementById("page");
  try {
    const data = await unpack(document.getElementById("data").textContent);
    const names = ruleChoices(data.reports);
    // The newest set contains today's prices.
    const newest = names[names.length - 1] ?? null;
    const shown = named(visible(data.reports, newest), data.rules);
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
 * @param {import("./question.js").Address} address
 * @param {Partial<import("./question.js").Asked>} reader what the reader asks
 */
function show(place, all, names, address, reader) {
  const chosen = names.includes(reader.rules) ? reader.rules : names[names.length - 1] ?? null;
  const reports = named(visible(all.reports, chosen), all.rules);
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
  const changed = changesSection(rulePairs(named(all.reports, all.rules)));
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
      names.length > 0 && switcher(names, chosen, (name) => again("select[name=rules]", { ...asked.asked, rules: name })), toggle()),
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

/** The control that selects a rule set. @param {string[]} names @param {string} chosen @param {(name: string) => void} change */
function switcher(names, chosen, change) {
  const own = id("rules");
  const select = h(
    "select",
    { id: own, name: "rules", onchange: () => change(select.value) },
    names.map((name) => h("option", { value: name, selected: name === chosen }, name)),
  );
  return h("div", { class: "switch" }, h("label", { for: own }, "Rules"), select);
}

/** The button that switches between light and dark. */
function toggle() {
  const button = h("button", { type: "button", class: "quiet theme" });
  const label = () => {
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", isDark() ? "Light colours" : "Dark colours");
  };
  button.addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    label();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", label);
  label();
  return button;
}

/** The list of the page's parts; the part in view is marked. @param {Array<[string, string]>} links addresses and texts @returns {HTMLElement} */
function navigation(links) {
  const anchors = links.map(([href, text]) => h("a", { href }, text));
  const mark = (id) => {
    for (const anchor of anchors) {
      if (anchor.getAttribute("href") === `#${id}`) anchor.setAttribute("aria-current", "true");
      else anchor.removeAttribute("aria-current");
    }
  };
  const observer = new IntersectionObserver(
    (entries) => {
      const seen = entries.filter((entry) => entry.isIntersecting);
      if (seen.length) mark(seen[seen.length - 1].target.id);
    },
    { rootMargin: "-80px 0px -75% 0px" },
  );
  queueMicrotask(() => {
    for (const [href] of links) {
      const target = document.getElementById(href.slice(1));
      if (target) observer.observe(target);
    }
  });
  return h("nav", { "aria-label": "Parts of the page" }, h("ul", {}, anchors.map((anchor) => h("li", {}, anchor))));
}

start();
