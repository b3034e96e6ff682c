/** The first thing to say about estimates that are too inexact for a decision: the command that replaces them. */

import { UNCERTAIN, errorSize, uncertain } from "./estimate.js";
import { copyable, exactly } from "../command.js";
import { h } from "../dom.js";
import { percent, whole } from "../format.js";

/**
 * @param {any} results
 * @param {Array<{heading: string, rank: number?, estimate: import("./estimate.js").Estimate}>} rows
 * @param {{n: number, payload: number, rows: number, place: string}} asked
 * @returns {HTMLElement?} `null` if no ranked figure is that inexact
 */
export function warning(results, rows, asked) {
  const ranked = rows.filter((row) => row.rank);
  const inexact = ranked.filter((row) => uncertain(row.estimate));
  if (!inexact.length) return null;
  const worst = Math.max(...inexact.map((row) => row.estimate.error));
  const which = inexact.length === ranked.length ? "All figures" : `${whole(inexact.length)} of ${whole(ranked.length)} figures`;
  return h(
    "div",
    { class: "warning" },
    h("p", {}, h("strong", {}, "Measure this."), ` ${which} for these sizes ${inexact.length === 1 ? "is an estimate that may be" : "are estimates that may be"} wrong by more than ${percent(UNCERTAIN)}, `,
      `${errorSize(worst)}. This command measures exactly these sizes:`),
    copyable(exactly(results, asked), "exactly these sizes", true),
  );
}
