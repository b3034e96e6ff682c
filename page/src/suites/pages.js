/** What of a message's instructions is compute, and what is for pages of heap and stable memory. */

import { stack } from "../charts/stack.js";
import { chargeParts, heading, inside, isFloor, measured, workParts } from "../data.js";
import { choice } from "../dom.js";
import { ofStack } from "./describe.js";
import { named, ofCase } from "./of-case.js";

const PARTS = ["compute", "heap pages", "stable pages"];

/** What is taken apart, and where its pages stand. */
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

/** @param {import("../data.js").Report} report */
export function pagesFigure(report) {
  const { cases } = report.results;
  const bases = Object.keys(BASES).filter((basis) => cases.some(BASES[basis][1]));
  if (!bases.length) return null;
  let [basis] = bases;
  const partsOf = (of) => BASES[basis][1](of);
  const touched = (of) => BASES[basis][2](of)?.touched;
  const counted = cases.some((of) => bases.some((one) => BASES[one][2](of)?.touched));
  return ofCase(report, {
    title: "Compute and memory pages",
    about: `Compute is what is not for memory pages. ${report.rules?.charge ?? ""} Floors are in the table.`,
    file: "pages",
    has: (of) => bases.every((one) => BASES[one][1](of)),
    favourite: ["insert\nmiddle 100", "transactions\ninsert 1 000, warm"],
    columns: (of) => named(of, [
      ...PARTS.map((part, at) => [part, (one) => partsOf(one)[at]]),
      ["total", (one) => partsOf(one).reduce((sum, part) => sum + part, 0)],
      ...(counted ? TOUCHED.map(([name, key]) => [name, (one) => touched(one)?.[key] ?? NaN]) : []),
    ]),
    controls: (update) =>
      bases.length > 1 ? [choice("Of the", bases.map((value) => ({ value, text: BASES[value][0] })), basis, (value) => { basis = value; update(); })] : [],
    draw: (context, own, label) => {
      const engines = own.filter((of) => !isFloor(report, of.column));
      const bars = (engines.length ? engines : own).map((of) => ({ heading: heading(report, of.column), parts: partsOf(of) }));
      return stack(context, { title: `Compute and memory pages: ${label}`, subtitle: BASES[basis][0], description: ofStack(bars, PARTS), x: "instructions →", parts: PARTS, bars });
    },
  });
}
