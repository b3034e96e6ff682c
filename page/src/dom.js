/** Elements. Texts are set as text nodes: nothing from the data is ever parsed as HTML. */

/**
 * @param {string} tag
 * @param {Object<string, any>} [attributes] Functions are listeners, `style` is an object,
 *   `true` is an attribute without a value; `null` and `false` omit it.
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

/** A unique id. @param {string} prefix */
export function id(prefix) {
  last += 1;
  return `${prefix}-${last}`;
}

/** Text as part of an id: only letters, digits and hyphens. @param {string} text */
export function slug(text) {
  return text.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 40) || "x";
}

/**
 * A field for a number. Other input, and numbers outside of the limits, are ignored.
 * @param {{name: string, label: string, value: number|string, min: number, max?: number,
 *   step: number|string, digits: number, readonly?: boolean, optional?: boolean,
 *   change: (value: number?) => void}} of `digits` is its width; an empty optional field gives
 *   `null`
 */
export function numberField({ name, label, value, min, max, step, digits, readonly, optional, change }) {
  const input = h("input", {
    type: "number", inputmode: "decimal", name, value, min, max, step, readonly, "aria-label": label, class: "sized",
    style: { "--digits": String(digits) },
    oninput: () => {
      const typed = Number(input.value);
      if (input.value === "") {
        // Incomplete numbers are empty too.
        if (optional && !input.validity.badInput) change(null);
      } else if (Number.isFinite(typed) && typed >= min && typed <= (max ?? Infinity) && (step !== 1 || Number.isInteger(typed))) change(typed);
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

/** Milliseconds without input after which screen readers announce a change. */
const PAUSE = 350;

/**
 * Shows what screen readers announce.
 * @param {HTMLElement} element
 * @returns {(now: boolean, content: () => Array<Node|string>) => void} without `now`, after a pause
 */
export function announcer(element) {
  let timer = 0;
  return (now, content) => {
    const say = () => element.replaceChildren(...content());
    clearTimeout(timer);
    if (now === true) say();
    else timer = setTimeout(say, PAUSE);
  };
}

const WIDE = "(min-width: 40.01rem)";

/**
 * A part that is open on a wide screen and folded on a phone.
 * @param {string|Node} title
 * @param {...(Node|Array)} children
 * @returns {HTMLElement}
 */
export function fold(title, ...children) {
  return h("details", { class: "fold", open: matchMedia(WIDE).matches }, h("summary", {}, title), children);
}
