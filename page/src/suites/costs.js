/** Figures of single cases, chosen by the reader: where instructions go, what operations cost. */

import { series } from "../charts/series.js";
import { spread } from "../charts/spread.js";
import { stack } from "../charts/stack.js";
import { heading, inside, isFloor, measured } from "../data.js";
import { ofSpread, ofStack } from "./describe.js";
import { named, ofCase } from "./of-case.js";

const PARTS = ["the work", "around the work", "after the end"];
const PHASES = ["open", "prepare", "begin", "bind", "step", "copy", "commit", "rest"];

/** @param {import("../data.js").Report} report */
export function stackFigure(report) {
  const partsOf = (of) => {
    const work = Number(measured(of).instructions);
    const { instructions, charge } = inside(of);
    return [work, Math.max(0, instructions - work), Math.max(0, charge - instructions)];
  };
  return ofCase(report, {
    title: "Where the charge of a message goes",
    about: `The work is what the counter shows. Around it the canister reads its argument and checks the rows. What the counter does not show comes after the end. ${report.rules?.charge ?? ""} Floors are in the table.`,
    file: "charge",
    has: inside,
    favourite: ["insert\nmiddle 100", "transactions\ninsert 1 000, warm", "integer autocommit writes\nupdate_index"],
    columns: (of) => named(of, PARTS.map((part, at) => [part, (one) => partsOf(one)[at]]).concat([["charge", (one) => inside(one).charge]])),
    draw: (context, cases, label) => {
      const engines = cases.filter((of) => !isFloor(report, of.column));
      const bars = (engines.length ? engines : cases).map((of) => ({ heading: heading(report, of.column), parts: partsOf(of) }));
      return stack(context, { title: `Where the charge goes: ${label}`, description: ofStack(bars, PARTS), x: "instructions →", parts: PARTS, bars });
    },
  });
}

/** @param {import("../data.js").Report} report */
export function phasesFigure(report) {
  const of = (one, phase) => measured(one).phases.find((cost) => cost.phase === phase)?.instructions ?? 0;
  return ofCase(report, {
    title: "Where the instructions of SQL go",
    about: "The same work measured once more in a fork, phase by phase: the connection is opened, statements prepared, a transaction begun, parameters bound, steps executed, values copied, committed.",
    file: "phases",
    has: (one) => measured(one)?.phases,
    favourite: ["transactions\ninsert 1 000, warm"],
    columns: (own) => named(own, PHASES.map((phase) => [phase, (one) => of(one, phase)])),
    draw: (context, cases, label) => {
      const bars = cases.map((one) => ({ heading: heading(report, one.column), parts: PHASES.map((phase) => of(one, phase)) }));
      return stack(context, { title: `Where the instructions of SQL go: ${label}`, description: ofStack(bars, PHASES), x: "instructions →", parts: PHASES, bars });
    },
  });
}

/** @param {import("../data.js").Report} report */
export function spreadFigure(report) {
  const keys = ["min", "p50", "p90", "p99", "max"];
  return ofCase(report, {
    title: "What single operations cost",
    about: "From the cheapest operation of a case to the dearest, without the beginning and the end of transactions.",
    file: "operations",
    has: (of) => measured(of)?.each,
    favourite: ["insert\nmiddle 1 000", "benchmarks\nfillrandom"],
    columns: (of) => named(of, [...keys.map((key) => [key, (one) => measured(one).each[key]]), ["operations that took storage", (one) => measured(one).each.allocating]]),
    draw: (context, cases, label) => {
      const looks = series(report, cases.map((of) => of.column));
      const rows = cases.map((of, at) => ({ heading: looks[at].heading, colour: looks[at].colour, ...measured(of).each }));
      return spread(context, { title: `What single operations cost: ${label}`, description: ofSpread(rows), x: "instructions of one operation →", rows });
    },
  });
}
