/** How a configuration is set: the PRAGMAs of SQLite, to be pasted. */

/** Settings that come before the first table, then the others. */
const FIRST = ["page_size", "journal_mode"];

/**
 * @param {import("../data.js").Report} report
 * @param {string} key
 * @returns {Object<string, string>?} `null` if it is no SQLite, empty if it is as the library ships it
 */
export function settingsOf(report, key) {
  return report.results.configurations.find((of) => of.key === key)?.settings ?? null;
}

/** @param {Object<string, string>} settings @returns {string[]} one PRAGMA a line */
export function pragmas(settings) {
  const known = Object.keys(settings).filter((name) => /^[a-z_]+$/.test(name) && /^-?\w+$/.test(String(settings[name])));
  const ordered = [...FIRST.filter((name) => known.includes(name)), ...known.filter((name) => !FIRST.includes(name))];
  return ordered.map((name) => `PRAGMA ${name} = ${name === "journal_mode" ? String(settings[name]).toUpperCase() : settings[name]};`);
}

/** Returns `true` if a transaction can be rolled back. Without a journal, SQLite cannot undo one. @param {Object<string, string>?} settings */
export function undoes(settings) {
  return settings?.journal_mode !== "off";
}
