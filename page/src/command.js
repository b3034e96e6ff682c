/** The command that measures a chart or a table again, and its button. */

import { h } from "./dom.js";

/** The value of `--sections` that measures a section, for suites that have this option. */
const SECTIONS = {
  users: (section) => section,
  vfs: (section) => (section === "as published" || section === "equal" ? "published" : section),
};

/**
 * The command of a run, limited to one section if the command names its sections.
 * @param {any} results
 * @param {string} section
 */
export function narrowed(results, section) {
  const command = String(results.command);
  const option = Object.hasOwn(SECTIONS, results.suite) ? SECTIONS[results.suite](section) : null;
  if (!option || !/^[a-z]+$/.test(option)) return command;
  return command.replace(/ --sections [a-z,]+(?= |$)/, ` --sections ${option}`);
}

/** Options of a run that do not choose its work, and the number of their values. */
const KEPT = { "--seed": 1, "--nodes": 1, "--usd-per-trillion-cycles": 1, "--rules": 1, "--replica": 1, "--subnet": 1 };
/** Configurations that a mix is measured with, if the answer has no others: each engine as it should be set. */
const ENGINES = ["btree", "sqlite/persist,cache_size=1000", "sqlite/wal,cache_size=1000", "sqlite/memory,cache_size=1000", "sqlite-vfs"];
/** Configurations that the suite mix accepts. */
const ACCEPTED = /^(btree|(sqlite|sqlite-vfs|doltlite)([/,][\w,=-]+)?)$/;

/**
 * The command that measures exactly one mix, under the rules of a run.
 * @param {any} results
 * @param {import("./question.js").Asked} asked
 * @param {Array<{key: string, rank: number?}>} ranked of which the cheapest is measured too; all, if this is a mix
 */
export function exactly(results, asked, ranked = []) {
  const words = String(results.command).split(" ");
  const kept = words.flatMap((word, at) => {
    const name = word.split("=")[0];
    if (!Object.hasOwn(KEPT, name)) return [];
    return word.includes("=") ? [word] : words.slice(at, at + 1 + KEPT[name]);
  });
  const engines = measuredWith(results, ranked);
  const operations = ["insert", "read", "update", "delete", "scan", "indexes", "rows", "payload"].map((name) => `--${name} ${asked[name]}`);
  return ["stablebench run mix", ...operations, `--at ${asked.place}`, `--engines ${engines.join(",")}`, ...kept].join(" ");
}

/**
 * The configurations that this command measures.
 * @param {any} results
 * @param {Array<{key: string, rank: number?}>} ranked
 * @returns {string[]}
 */
export function measuredWith(results, ranked) {
  const keys = ranked.map((row) => row.key).filter((key) => ACCEPTED.test(key));
  if (results.suite === "mix") return results.configurations.map((of) => of.key).filter((key) => keys.includes(key));
  const cheapest = ranked.find((row) => row.rank === 1)?.key;
  return [...ENGINES, ...keys.filter((key) => key === cheapest && !ENGINES.includes(key))];
}

/**
 * A command with a button that copies it.
 * @param {string} command
 * @param {string} what the command measures
 * @param {{open?: boolean, title?: string}} [of] `open` shows the command from the beginning
 */
export function copyable(command, what, { open = false, title = "Command" } = {}) {
  // Lines are broken between options, or after commas.
  const words = command.split(" ").flatMap((word, at) => [at ? " " : "", h("span", { class: "word" }, word.split(/(?<=,)/).flatMap((part, of) => [of ? h("wbr") : "", part]))]);
  const code = h("code", {}, words);
  return h(
    "div",
    { class: "command" },
    h("details", { class: "code", open }, h("summary", {}, title), code),
    copies("Copy command", command, what, code),
  );
}

/** Text to paste, with a button that copies it. @param {string} text @param {string} what */
export function snippet(text, what) {
  const code = h("code", { class: "lines" }, text);
  return h("div", { class: "command" }, code, copies("Copy", text, what, code));
}

function copies(name, text, what, code) {
  const button = h("button", { type: "button", class: "quiet" }, name, h("span", { class: "hidden" }, `: ${what}`));
  const label = button.firstChild;
  button.addEventListener("click", async () => {
    label.textContent = (await copied(text, code)) ? "Copied" : "Select and copy it";
    setTimeout(() => {
      label.textContent = name;
    }, 2_000);
  });
  return button;
}

async function copied(text, code) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Some browsers do not allow this from a file: select the text, so that the reader can copy it.
    const folded = code.closest("details.code");
    if (folded) folded.open = true;
    getSelection().selectAllChildren(code);
    return false;
  }
}
