/** The page: unpacks its data, and builds itself of it. */

import { answer } from "./answer/view.js";
import { toggle } from "./appearance.js";
import { named } from "./data.js";
import { h } from "./dom.js";
import { multipliers } from "./multipliers.js";
import { navigation } from "./navigation.js";
import { provenance } from "./provenance.js";
import { suite } from "./suites/view.js";
import { unpack } from "./unpack.js";

async function start() {
  const place = document.getElementById("page");
  try {
    const data = await unpack(document.getElementById("data").textContent);
    show(place, { ...data, reports: named(data.reports) });
  } catch (error) {
    place.replaceChildren(h("p", { class: "plain", role: "alert" }, `The report cannot be shown: ${error.message}.`));
    throw error;
  }
}

function show(place, data) {
  const suites = data.reports.map((report) => report.title);
  const pairs = multipliers(data.reports);
  const links = [
    ["#answer", "What is cheapest?"],
    ...data.reports.map((report) => [`#${report.id}`, report.title]),
    ...(pairs ? [["#multipliers", "Multipliers"]] : []),
    ["#provenance", "Sources"],
  ];
  document.title = `stablebench: ${suites.join(", ")}`;
  place.replaceChildren(
    h("a", { class: "skip", href: "#answer" }, "Skip to the answer"),
    h("header", { class: "top" }, navigation(links), toggle()),
    h(
      "main",
      {},
      h("div", { class: "title" }, h("h1", {}, "What storing data in a canister costs"),
        h("p", { class: "lead" }, "Instructions, cycles and US dollars on the Internet Computer, measured by stablebench.")),
      answer(data),
      data.reports.map(suite),
      pairs,
      provenance(data),
    ),
    h("footer", {}, h("button", { type: "button", class: "quiet", onclick: openAll }, "Open all tables, for printing")),
  );
  if (location.hash.length > 1) document.getElementById(location.hash.slice(1))?.scrollIntoView();
}

function openAll() {
  for (const details of document.querySelectorAll("details")) details.open = true;
}

start();
