/**
 * The style of each configuration in all charts: a colour, a dash pattern and a symbol, so that
 * configurations never differ by colour only.
 *
 * @typedef {{key: string, heading: string, colour: string, dash: string?, symbol: string, width: number}} Series
 */

import { heading, isFloor } from "../data.js";

const KNOWN = {
  btree: ["c0", null, "circle", 2.6],
  "sqlite/delete": ["c1", "7 3", "square", 1.8],
  "sqlite/truncate": ["c2", "2 3", "triangle", 1.8],
  "sqlite/persist": ["c3", null, "diamond", 1.8],
  "sqlite/persist,cache_size=1000": ["c3", null, "circle", 2.6],
  "sqlite/memory": ["c4", "9 3 2 3", "star", 1.8],
  "sqlite/off": ["c5", null, "square", 1.8],
  "sqlite/wal": ["c6", "4 3", "wye", 1.8],
  "sqlite-vfs": ["c7", null, "triangle", 2.6],
  append: ["floor", "1 3", "times", 1.4],
  array: ["floor", "4 4", "plus", 1.4],
};

/** Styles of other configurations, in order. Once all are taken, symbols come again in other colours. */
const OTHERS = [
  ["c1", null, "circle", 1.8],
  ["c3", "7 3", "square", 1.8],
  ["c4", "2 3", "triangle", 1.8],
  ["c6", "9 3 2 3", "diamond", 1.8],
  ["c7", null, "star", 1.8],
  ["c5", "4 3", "wye", 1.8],
  ["c2", null, "times", 1.8],
  ["c0", "5 2 1 2", "plus", 1.8],
];

/** @param {import("../data.js").Report} report @param {string[]} keys @returns {Series[]} */
export function series(report, keys) {
  const known = keys.filter((key) => Object.hasOwn(KNOWN, key)).map((key) => KNOWN[key]);
  const taken = new Set(known.map(([colour]) => colour));
  const free = OTHERS.filter(([colour]) => !taken.has(colour));
  const styles = others(free.length ? free : OTHERS, known);
  return keys.map((key) => {
    let style = Object.hasOwn(KNOWN, key) ? KNOWN[key] : null;
    if (!style) style = isFloor(report, key) ? KNOWN.array : styles.next().value;
    const [colour, dash, symbol, width] = style;
    return { key, heading: heading(report, key), colour, dash, symbol, width };
  });
}

/** Styles in their order, then their symbols in other colours, and all again. Those of `known` are left out. */
function* others(pool, known) {
  const look = ([colour, , symbol]) => `${colour} ${symbol}`;
  const looks = new Set(known.map(look));
  for (let number = 0; ; number += 1) {
    const round = Math.floor(number / pool.length);
    const [colour] = pool[(number + round) % pool.length];
    const [, dash, symbol, width] = pool[number % pool.length];
    const style = [colour, dash, symbol, width];
    if (!looks.has(look(style))) yield style;
  }
}
