/**
 * Colours, and the style of each configuration in all charts.
 *
 * The colours remain distinguishable with colour vision deficiency (after Okabe and Ito, darker on white). Charts use
 * their names: CSS variables on the page, values in standalone charts. A configuration has a colour, a dash pattern and a
 * symbol, so that configurations never differ by colour only.
 *
 * @typedef {{key: string, heading: string, colour: string, dash: string?, symbol: string, width: number}} Series
 */

import { heading, isFloor } from "../data.js";

const COLOURS = {
  light: {
    paper: "#ffffff",
    ink: "#1c2126",
    soft: "#5b6470",
    line: "#dfe3e8",
    ghost: "#7d8590",
    c0: "#1c2126",
    c1: "#0072b2",
    c2: "#2e95d3",
    c3: "#c44e00",
    c4: "#008561",
    c5: "#b07d00",
    c6: "#b5508c",
    c7: "#6a3fb5",
    floor: "#7d8590",
    part0: "#0072b2",
    part1: "#8fc1e3",
    part2: "#e0a458",
    part3: "#c44e00",
    part4: "#6a3fb5",
    part5: "#5fae94",
    part6: "#b5508c",
    part7: "#c3c9d1",
    heat0: "#8cbce0",
    heat1: "#b9d7ed",
    heat2: "#dfecf6",
    heat3: "#f2f3f5",
    heat4: "#fbe5d2",
    heat5: "#f6c79d",
    heat6: "#eda15f",
    none: "#ffffff",
  },
  dark: {
    paper: "#14181d",
    ink: "#e6e9ed",
    soft: "#a3acb7",
    line: "#2c333b",
    ghost: "#8d96a1",
    c0: "#f2f4f7",
    c1: "#4da3e0",
    c2: "#8fd0ff",
    c3: "#ff8a4c",
    c4: "#2bc79b",
    c5: "#efba3f",
    c6: "#e79ac8",
    c7: "#b79cf0",
    floor: "#8d96a1",
    part0: "#3d8fd1",
    part1: "#2b5475",
    part2: "#d99a45",
    part3: "#ef7b3c",
    part4: "#9d80dd",
    part5: "#3f9c80",
    part6: "#cf7fb0",
    part7: "#56606b",
    heat0: "#1f5f92",
    heat1: "#214d70",
    heat2: "#213a50",
    heat3: "#262c33",
    heat4: "#4a3524",
    heat5: "#6e451f",
    heat6: "#95541a",
    none: "#14181d",
  },
};

export const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";

/** Colours as values. @param {"light"|"dark"} name */
export function values(name) {
  return COLOURS[name];
}

/** Colours as variables of the page. */
export const VARIABLES = Object.fromEntries(Object.keys(COLOURS.light).map((name) => [name, `var(--${name})`]));

/** The colours as CSS declarations. @param {"light"|"dark"} name */
export function declarations(name) {
  return Object.entries(COLOURS[name])
    .map(([key, value]) => `--${key}:${value}`)
    .join(";");
}

/** Returns `true` if the page is dark: the system's preference, unless the reader has chosen. */
export function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

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
