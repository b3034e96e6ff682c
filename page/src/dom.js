/** Elements. Texts are set as texts: nothing that comes with the data is ever read as HTML. */

/**
 * @param {string} tag
 * @param {Object<string, any>} [attributes] Functions are listeners, `style` is an object,
 *   true is an attribute without value; null and false leave it away.
 * @param {...(Node|string|number|null|undefined|false|Array)} children
 * @returns {HTMLElement}
 */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (name === "style") {
      for (const [property, of] of Object.entries(value)) element.style.setProperty(property, of);
    } else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

let last = 0;

/** An id that no other element has. @param {string} prefix */
export function id(prefix) {
  last += 1;
  return `${prefix}-${last}`;
}

/** Text as part of an id: letters, digits and hyphens alone. @param {string} text */
export function slug(text) {
  return text.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 40) || "x";
}

/**
 * A field for a number; what is no number, or less than `min`, changes nothing.
 * @param {{name: string, label: string, value: number|string, min: number, max?: number,
 *   step: number|string, digits: number, readonly?: boolean, optional?: boolean,
 *   change: (value: number?) => void}} of `digits` is its width; an optional field that is empty
 *   is null
 */
export function numberField({ name, label, value, min, max, step, digits, readonly, optional, change }) {
  const input = h("input", {
    type: "number", inputmode: "decimal", name, value, min, max, step, readonly, "aria-label": label, class: "sized",
    style: { "--digits": String(digits) },
    oninput: () => {
      const typed = Number(input.value);
      if (input.value === "") {
        // Half-typed numbers are empty as well.
        if (optional && !input.validity.badInput) change(null);
      } else if (Number.isFinite(typed) && typed >= min) change(typed);
    },
  });
  return input;
}

/**
 * A labelled choice.
 * @param {string} label
 * @param {Array<{value: string, text: string}>} options
 * @param {string} chosen
 * @param {(value: string) => void} change
 */
export function choice(label, options, chosen, change) {
  const own = id("choice");
  const select = h(
    "select",
    { id: own, onchange: () => change(select.value) },
    options.map(({ value, text }) => h("option", { value, selected: value === chosen }, text)),
  );
  return h("div", { class: "choice" }, h("label", { for: own }, label), select);
}
