/** The question as sentences with fields. */

import { LIMITS } from "../asked.js";
import { choice, h, numberField } from "../dom.js";

/**
 * @param {import("../asked.js").Asked} asked is updated
 * @param {() => void} change
 * @returns {HTMLElement[]}
 */
export function controls(asked, change) {
  const field = (name, label, digits = 3) => {
    const [min, max] = LIMITS[name];
    return numberField({ name, label, value: asked[name], min, max, step: 1, digits, change: (value) => { asked[name] = value; change(); } });
  };
  const price = numberField({
    name: "usd", label: "US dollars for a trillion cycles", value: asked.usd, min: 0.01, step: 0.01, digits: 5,
    change: (value) => { asked.usd = value; change(); },
  });
  return [
    h("p", { class: "sentence" },
      "A message inserts ", field("insert", "Rows that a message inserts"), " rows, reads ", field("read", "Rows that a message reads"),
      ", updates ", field("update", "Rows that a message updates"), ", deletes ", field("delete", "Rows that a message deletes"),
      " and scans ", field("scan", "Ranges of 100 rows that a message scans"), " ranges of 100, ", places(asked, change),
      ". The table has ", field("rows", "Rows in the table", 8), " rows of ", field("payload", "Bytes per row", 6), " bytes and ",
      field("indexes", "Secondary indexes", 2), " secondary indexes."),
    h("p", { class: "sentence small" },
      "The subnet has ", field("nodes", "Nodes of the subnet"), " nodes, and a trillion cycles cost ", price, " US dollars."),
  ];
}

/** The choice of the place. */
function places(asked, change) {
  const select = h(
    "select",
    { "aria-label": "Where the rows are", name: "place", onchange: () => { asked.place = select.value; change(); } },
    Object.entries(PLACES).map(([value, text]) => h("option", { value, selected: value === asked.place }, text)),
  );
  return select;
}

/** The place in words. */
export const PLACES = { middle: "in the middle", end: "at the end", random: "at random places" };

const ORDERS = [
  { value: "cycles", text: "cycles, without this canister's own checks" },
  { value: "message", text: "cycles of the whole message, as measured" },
  { value: "instructions", text: "instructions of the work" },
];

/** The choice of what counts. @param {import("../asked.js").Asked} asked is updated @param {() => void} change */
export function orders(asked, change) {
  return choice("Ranked by", ORDERS, asked.by, (value) => { asked.by = value; change(); });
}
