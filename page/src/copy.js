/** A command that can be copied. */

import { h } from "./dom.js";

/** @param {string} command @param {string} what it makes once more */
export function copyable(command, what) {
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
    h("details", { class: "code" }, h("summary", {}, "Command"), code),
    button,
  );
}

async function copied(text, code) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Not allowed from a file in some browsers: the text is selected, to be copied by hand.
    code.closest("details").open = true;
    getSelection().selectAllChildren(code);
    return false;
  }
}
