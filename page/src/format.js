/** Formatting of all numbers on the page. */

/** A thin, non-breaking space. */
const THIN = "\u202f";
const FIXED = "\u00a0";

/** @param {string} digits @returns {string} */
function grouped(digits) {
  return digits.replace(/\B(?=(\d{3})+$)/g, THIN);
}

/** An integer with grouped thousands. @param {number} value */
export function whole(value) {
  if (!Number.isFinite(value)) return "–";
  const rounded = Math.round(value);
  return (rounded < 0 ? "−" : "") + grouped(String(Math.abs(rounded)));
}

/** A number with a fixed number of decimals. @param {number} value @param {number} decimals */
export function fixed(value, decimals) {
  if (!Number.isFinite(value)) return "–";
  const [before, after] = Math.abs(value).toFixed(decimals).split(".");
  return (value < 0 ? "−" : "") + grouped(before) + (after ? `.${after}` : "");
}

const UNITS = [
  [1e12, "T"],
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
];

/** A large number with three digits: `74.4 G`. @param {number} value */
export function short(value) {
  if (!Number.isFinite(value)) return "–";
  for (const [unit, name] of UNITS) {
    if (value >= unit) {
      const scaled = value / unit;
      return `${scaled.toFixed(scaled < 10 ? 2 : scaled < 100 ? 1 : 0)}${FIXED}${name}`;
    }
  }
  return whole(value);
}

/** The label of an axis tick: `10 k`, `500`. @param {number} value */
export function tick(value) {
  for (const [unit, name] of UNITS) {
    if (value >= unit) return `${Number((value / unit).toPrecision(3))}${FIXED}${name}`;
  }
  return String(Number(value.toPrecision(3)));
}

/** A ratio: `0.36×`. @param {number} value */
export function times(value) {
  if (!Number.isFinite(value)) return "–";
  const decimals = value < 0.1 ? 3 : value < 10 ? 2 : value < 100 ? 1 : 0;
  return `${fixed(value, decimals)}×`;
}

/** A share as a percentage: `4 %`, `0.3 %`. @param {number} share */
export function percent(share) {
  const value = share * 100;
  if (!Number.isFinite(value)) return "–";
  return `${fixed(value, value < 0.95 ? 1 : 0)}${FIXED}%`;
}

/** US dollars with three digits: `$12.30`, `$0.000 0105`. @param {number} value */
export function dollars(value) {
  if (!Number.isFinite(value)) return "–";
  if (value === 0) return "$0";
  if (value >= 100) return `$${fixed(value, 0)}`;
  if (value >= 1) return `$${fixed(value, 2)}`;
  const decimals = Math.min(12, 2 - Math.floor(Math.log10(value)));
  return `$${value.toFixed(decimals)}`;
}

/** Replaces the spaces within numbers by thin ones. @param {string} text */
export function spaced(text) {
  return text.replace(/(\d) (?=\d{3}(?!\d))/g, `$1${THIN}`);
}

/** A number with its noun: `1 other`, `2 others`. @param {number} count @param {string} noun */
export function count(count, noun) {
  return `${whole(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/** The number at the start of a text: 1234 for `1 234 0.36×`. @param {string} text */
export function leading(text) {
  const first = String(text).split("\n")[0].trim();
  const match = /^[≥$+]?\s*(−|-)?(\d[\d \u202f]*(?:\.\d+)?)\s*(T|G|M|k)?/.exec(first);
  if (!match) return NaN;
  const unit = UNITS.find(([, name]) => name === match[3])?.[0] ?? 1;
  return Number(match[2].replace(/[ \u202f]/g, "")) * unit * (match[1] ? -1 : 1);
}
