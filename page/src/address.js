/**
 * The page's address follows the reader's question, and the page follows the address: an answer can be shared,
 * bookmarked and reloaded.
 *
 * @typedef {{asked: () => Partial<import("./asked.js").Asked>, changed: (asked: Object) => void, write: (asked: Object) => void, reveal: () => void}} Address
 *   `changed` writes after a pause, because browsers limit how often an address changes
 */

import { split, written } from "./asked.js";

/** Milliseconds without input after which the address is written. */
const PAUSE = 350;

/**
 * @param {Object} first the question that the page shows if the address has none
 * @param {(asked: Object) => void} show shows another question
 * @returns {Address}
 */
export function follow(first, show) {
  let asked = split(location.hash).question ?? {};
  let timer = 0;
  const write = (now) => {
    clearTimeout(timer);
    asked = { ...now };
    const text = written({ ...first, ...asked }, first);
    const { part } = split(location.hash);
    const hash = `${part}${text && `?${text}`}`;
    if (hash === location.hash.slice(1)) return;
    try {
      history.replaceState(history.state, "", `#${hash}`);
    } catch {
      // A frame without an address of its own may not change it. The page works without.
    }
  };
  addEventListener("hashchange", () => {
    const { question } = split(location.hash);
    const known = written({ ...first, ...asked }, first);
    // A link inside of the page names a part only: the question stays.
    if (!question) write(asked);
    else if (written({ ...first, ...question }, first) !== known) {
      asked = question;
      show(asked);
    }
    reveal();
  });
  return {
    asked: () => asked,
    changed: (now) => {
      asked = { ...now };
      clearTimeout(timer);
      timer = setTimeout(() => write(asked), PAUSE);
    },
    write,
    reveal,
  };
}

/** Opens the part of the page that the address names, and scrolls to it. */
function reveal() {
  const { part } = split(location.hash);
  const target = part && document.getElementById(part);
  if (!target) return;
  for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  const folded = target.querySelector(":scope > details.fold");
  if (folded) folded.open = true;
  target.scrollIntoView();
}
