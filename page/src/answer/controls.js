/**
 * The question as a sentence with fields, and a slider for each size that can be varied.
 *
 * @typedef {{n: number, payload: number, rows: number, place: string, nodes: number, usd: number,
 *   by: "cycles"|"message"|"instructions"}} Asked
 */

import { h, id, numberField } from "../dom.js";
import { whole } from "../format.js";

const STEPS = 300;

/**
 * @param {{asked: Asked, places: string[], ranges: Object<string, [number, number]>, change: () => void}} of
 *   `asked` is updated
 * @returns {HTMLElement[]}
 */
export function controls({ asked, places: known, ranges, change }) {
  const fields = {};
  const sliders = {};
  const size = (name, label) => {
    const [low, high] = ranges[name];
    const fixed = low === high;
    const input = h("input", {
      type: "number", inputmode: "numeric", min: low, max: high, step: 1, value: asked[name], "aria-label": label, name,
      readonly: fixed, class: "sized", style: { "--digits": String(String(high).length + 2) },
      oninput: () => set(name, Math.round(Number(input.value)), input),
    });
    fields[name] = input;
    if (!fixed) sliders[name] = slider(name, label, low, high);
    return input;
  };
  const slider = (name, label, low, high) => {
    const own = id("slider");
    const input = h("input", {
      type: "range", id: own, min: 0, max: STEPS, step: 1, value: position(asked[name], low, high),
      "aria-valuetext": whole(asked[name]),
      oninput: () => set(name, rounded(low * (high / low) ** (Number(input.value) / STEPS), low, high), input),
    });
    input.range = [low, high];
    const box = h("div", { class: "slider" }, h("label", { for: own }, label), input,
      h("span", { class: "ends" }, h("span", {}, whole(low)), h("span", {}, whole(high))));
    box.input = input;
    return box;
  };
  const set = (name, value, from) => {
    if (!(value > 0)) return;
    asked[name] = value;
    if (fields[name] !== from) fields[name].value = String(value);
    const input = sliders[name]?.input;
    if (input) {
      if (input !== from) input.value = String(position(value, ...input.range));
      input.setAttribute("aria-valuetext", whole(value));
    }
    change();
  };
  const price = (name, label, step) =>
    numberField({ name, label, value: asked[name], min: step, step, digits: 6, change: (value) => { asked[name] = value; change(); } });
  const sentence = h(
    "p",
    { class: "sentence" },
    "I insert ", size("n", "New rows per message"), " rows of ", size("payload", "Bytes per row"), " bytes per message into ",
    size("rows", "Rows in the table"), " rows, ", places(asked, known, change), ".",
  );
  const prices = h(
    "p",
    { class: "sentence small" },
    "The subnet has ", price("nodes", "Nodes of the subnet", 1), " nodes, and a trillion cycles cost ",
    price("usd", "US dollars for a trillion cycles", 0.01), " US dollars.",
  );
  return [sentence, h("div", { class: "sliders" }, Object.values(sliders)), prices];
}

/** The choice of the place of new rows. @param {{place: string}} asked is updated @param {string[]} known @param {() => void} change */
export function places(asked, known, change) {
  const select = h(
    "select",
    { "aria-label": "Where the rows go", name: "place", onchange: () => { asked.place = select.value; change(); } },
    known.map((of) => h("option", { value: of, selected: of === asked.place }, PLACES[of] ?? of)),
  );
  return select;
}

const PLACES = { middle: "in the middle", end: "at the end", random: "at random places" };

function position(value, low, high) {
  return Math.round((Math.log(Math.min(Math.max(value, low), high) / low) / Math.log(high / low)) * STEPS);
}

/** A size rounded to two digits, limited to the range. */
function rounded(value, low, high) {
  const round = Number(value.toPrecision(2));
  return Math.round(Math.min(Math.max(round, low), high));
}
