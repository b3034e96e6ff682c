/** The fields of the bill, as sentences. */

import { places } from "../answer/controls.js";
import { h, numberField } from "../dom.js";

/**
 * @param {{asked: import("./ranked.js").Asked, all: import("../answer/points.js").Points,
 *   ranges: Object<string, [number, number]>, change: () => void}} of `asked` is written to
 * @returns {HTMLElement[]}
 */
export function controls({ asked, all, ranges, change }) {
  const field = (name, label, digits, of = {}) =>
    numberField({ name, label, value: asked[name], min: 1, step: 1, digits, ...of, change: (value) => { asked[name] = value; change(); } });
  const measured = (name, label) => {
    const [min, max] = ranges[name];
    return field(name, label, String(max).length + 2, { min, max, readonly: min === max });
  };
  const storage = numberField({
    name: "gib", label: "Storage in GiB, as measured where empty", value: asked.gib ?? "", min: 0, step: "any", digits: 6, optional: true,
    change: (value) => { asked.gib = value; change(); },
  });
  return [
    h("p", { class: "sentence" },
      field("perDay", "Messages a day", 9), " messages a day insert ", measured("n", "Rows a message"), " rows of ",
      measured("payload", "Bytes a row"), " bytes each, ", places(asked, all.places, change), ", and ",
      field("rows", "Rows stored", 12), " rows are stored."),
    h("p", { class: "sentence small" },
      "The subnet has ", field("nodes", "Nodes of the subnet", 6), " nodes. A trillion cycles cost ",
      field("usd", "US dollars for a trillion cycles", 6, { min: 0.01, step: 0.01 }), " US dollars. Storage: ", storage,
      " GiB for every engine; empty for each engine's own, as measured."),
  ];
}
