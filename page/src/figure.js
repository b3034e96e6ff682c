/**
 * A chart on the page: heading, description, drawing, command, a button that saves it, and the
 * table of its figures. It is drawn again when its width changes.
 *
 * @typedef {{title: string, about?: string, command?: string, file: string,
 *   draw: (context: import("./chart-parts.js").Context) => SVGElement,
 *   controls?: Node[], table?: Node?, tableTitle?: string, level?: number}} Figure
 */

import { VARIABLES, isDark, values } from "./chart-parts.js";
import { copyable } from "./command.js";
import { h, id } from "./dom.js";

/** Width of a saved chart. */
const SAVED = 960;

/** Functions that redraw the figures, by canvas. @type {WeakMap<Element, () => void>} */
const redraws = new WeakMap();
const observer =
  typeof ResizeObserver === "undefined"
    ? null
    : new ResizeObserver((entries) => {
        for (const { target } of entries) redraws.get(target)?.();
      });

/** @param {Figure} of @returns {{element: HTMLElement, redraw: () => void}} */
export function figure(of) {
  const heading = id("figure");
  const canvas = h("div", { class: "canvas" });
  let drawn = 0;
  const draw = (width) => {
    drawn = width;
    canvas.replaceChildren(of.draw({ document, colours: VARIABLES, width, alone: false }));
  };
  redraws.set(canvas, () => {
    const width = Math.floor(canvas.clientWidth);
    if (width > 0 && width !== drawn) draw(width);
  });
  observer?.observe(canvas);
  const element = h(
    "figure",
    { class: "figure", "aria-labelledby": heading },
    h(`h${of.level ?? 4}`, { id: heading }, of.title),
    of.about && h("p", { class: "about" }, of.about),
    of.controls?.length ? h("div", { class: "controls" }, of.controls) : null,
    canvas,
    h(
      "figcaption",
      { class: "below" },
      h("button", { type: "button", class: "quiet", onclick: () => save(of) }, "Save as SVG",
        h("span", { class: "hidden" }, `: ${of.title}`)),
      of.command && copyable(of.command, of.title),
    ),
    of.table && h("details", {}, h("summary", {}, of.tableTitle ?? "The figures"), of.table),
  );
  return { element, redraw: () => drawn > 0 && draw(drawn) };
}

/** Downloads the chart as a file, with the current colours as values. */
function save(of) {
  const svg = of.draw({ document, colours: values(isDark() ? "dark" : "light"), width: SAVED, alone: true });
  const text = `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(svg)}\n`;
  const address = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  h("a", { href: address, download: `${of.file}.svg` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
