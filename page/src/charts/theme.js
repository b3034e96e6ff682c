/**
 * Colours that remain distinguishable with colour vision deficiency (after Okabe and Ito, darker on
 * white). Charts use their names: CSS variables on the page, values in standalone charts.
 */

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
