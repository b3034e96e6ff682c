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

/** Options of a run of the suite users that do not choose its sizes, and the number of their values. */
const KEPT = {
  "--engines": 1, "--journal-modes": 1, "--check-around": 0, "--seed": 1, "--nodes": 1, "--usd-per-trillion-cycles": 1, "--rules": 1,
  "--replica": 1, "--subnet": 1,
};

/**
 * The command that measures exactly one message with new rows, with the engines and rules of a run.
 * @param {any} results of the suite users
 * @param {{n: number, payload: number, rows: number, place: string}} asked
 */
export function exactly(results, { n, payload, rows, place }) {
  const words = String(results.command).split(" ");
  const kept = words.flatMap((word, at) => {
    const name = word.split("=")[0];
    if (!Object.hasOwn(KEPT, name)) return [];
    return word.includes("=") ? [word] : words.slice(at, at + 1 + KEPT[name]);
  });
  return ["stablebench run users", `--rows ${rows}`, `--payload ${payload}`, `--batches ${n}`, `--at ${place}`, ...kept].join(" ");
}

/**
 * A command with a button that copies it.
 * @param {string} command
 * @param {string} what the command measures
 * @param {boolean} [open] shows the command from the beginning
 */
export function copyable(command, what, open = false) {
  const code = h("code", {}, command);
  const button = h("button", { type: "button", class: "quiet" }, "Copy command", h("span", { class: "hidden" }, `: ${what}`));
  const label = button.firstChild;
  button.addEventListener("click", async () => {
    label.textContent = (await copied(command, code)) ? "Copied" : "Select and copy it";
    setTimeout(() => {
      label.textContent = "Copy command";
    }, 2_000);
  });
  return h(
    "div",
    { class: "command" },
    h("details", { class: "code", open }, h("summary", {}, "Command"), code),
    button,
  );
}

async function copied(text, code) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Some browsers do not allow this from a file: select the text, so that the reader can copy it.
    code.closest("details").open = true;
    getSelection().selectAllChildren(code);
    return false;
  }
}
