/** The first thing to say where there is no figure, or none that is exact enough for a decision: the command that measures it. */

import { UNCERTAIN, errorSize, uncertain } from "./estimate.js";
import { copyable } from "../command.js";
import { h } from "../dom.js";
import { percent, whole } from "../format.js";

/**
 * @param {Array<{heading: string, rank: number?, estimate: import("./estimate.js").Estimate}>} rows
 * @param {string} command that measures exactly what is asked
 * @param {Node|false} also what else it measures
 * @returns {HTMLElement?} `null` if all ranked figures are exact enough
 */
export function warning(rows, command, also) {
  const ranked = rows.filter((row) => row.rank);
  const inexact = ranked.filter((row) => uncertain(row.estimate));
  if (ranked.length && !inexact.length) return null;
  return h(
    "div",
    { class: "warning" },
    h("p", {}, h("strong", {}, "Measure this."), ` ${ranked.length ? estimates(ranked, inexact) : "These files have no figure for this mix."} This command measures exactly this mix:`),
    copyable(command, "exactly this mix", { open: true }),
    also,
  );
}

function estimates(ranked, inexact) {
  const worst = Math.max(...inexact.map((row) => row.estimate.error));
  const which = inexact.length === ranked.length ? "All figures" : `${whole(inexact.length)} of ${whole(ranked.length)} figures`;
  return `${which} for this mix ${inexact.length === 1 ? "is an estimate that may be" : "are estimates that may be"} wrong by more than ${percent(UNCERTAIN)}, ${errorSize(worst)}.`;
}
