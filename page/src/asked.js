/**
 * The reader's question: a mix, and what a month of it contains. It is in the page's address, after `?` in the part
 * behind `#`, because a page opened from a file may only change that part:
 *
 *     report.html#bill?insert=5&read=20&update=0&delete=0&scan=0&indexes=2&rows=200000&payload=300&at=random
 *
 * @typedef {{insert: number, read: number, update: number, delete: number, scan: number, indexes: number,
 *   rows: number, payload: number, place: string, nodes: number, usd: number, by: "cycles"|"message"|"instructions",
 *   perDay: number, gib: number?, from: string?, rules: string?}} Asked
 *   `gib` is the storage of all engines, or null to use the measured fixtures; `from` is the id of a report, `rules` a rule set
 */

/** Whole numbers, and their limits, which are those of the tool. */
export const LIMITS = {
  insert: [0, 100_000], read: [0, 100_000], update: [0, 100_000], delete: [0, 100_000], scan: [0, 100_000],
  indexes: [0, 8], rows: [4, 10_000_000], payload: [0, 100_000], nodes: [1, 1_000], perDay: [1, 1_000_000_000],
};
/** Numbers with decimals. */
const DECIMALS = { usd: [0.01, 1_000_000], gib: [0, 1_000_000] };
/** Names, and the values that exist. */
const NAMES = { place: ["middle", "end", "random"], by: ["cycles", "message", "instructions"] };
/** Texts, which mean nothing if the page does not have them. */
const TEXTS = ["from", "rules"];
/** Names in the address that differ from those here. */
const KEYS = { place: "at" };
/** The mix, which the address names completely, so that it does not depend on what a page shows first. */
const MIX = ["insert", "read", "update", "delete", "scan", "indexes", "rows", "payload", "place"];
const REST = ["nodes", "usd", "by", "perDay", "gib", ...TEXTS];

/** Returns `true` if two questions ask for the same mix. @param {Object} one @param {Object} other */
export function sameMix(one, other) {
  return MIX.every((name) => one[name] === other[name]);
}

/** The question as text; empty if it is the one that the page shows first. @param {Asked} asked @param {Asked} first */
export function written(asked, first) {
  const other = REST.filter((name) => asked[name] !== first[name] && asked[name] !== null && asked[name] !== undefined);
  const names = [...(sameMix(asked, first) ? [] : MIX), ...other];
  return new URLSearchParams(names.map((name) => [KEYS[name] ?? name, String(asked[name])])).toString();
}

/** What a text asks for. Whatever is not a question is ignored. @param {string} text @returns {Partial<Asked>} */
export function read(text) {
  const values = new URLSearchParams(text);
  const found = {};
  const take = (names, parse) => {
    for (const name of names) {
      const value = parse(name, values.get(KEYS[name] ?? name) ?? "");
      if (value !== undefined) found[name] = value;
    }
  };
  const within = (value, [least, most]) => (value >= least && value <= most ? value : undefined);
  take(Object.keys(LIMITS), (name, value) => (/^\d{1,10}$/.test(value) ? within(Number(value), LIMITS[name]) : undefined));
  take(Object.keys(DECIMALS), (name, value) => (/^\d{1,9}(\.\d{1,9})?$/.test(value) ? within(Number(value), DECIMALS[name]) : undefined));
  take(Object.keys(NAMES), (name, value) => (NAMES[name].includes(value) ? value : undefined));
  take(TEXTS, (_, value) => (value && value.length < 300 ? value : undefined));
  return found;
}

/** The parts of an address. @param {string} hash with `#` @returns {{part: string, question: Partial<Asked>?}} `question` is `null` if there is none */
export function split(hash) {
  const [part, ...rest] = hash.slice(1).split("?");
  return { part, question: rest.length ? read(rest.join("?")) : null };
}
