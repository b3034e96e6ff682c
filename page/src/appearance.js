/** Light or dark: as the system says, until the reader says otherwise. Printed, always light. */

import { h } from "./dom.js";

const prefers = () => matchMedia("(prefers-color-scheme: dark)").matches;

/** Whether the page is dark now. */
export function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : prefers();
}

/** The button that turns it. */
export function toggle() {
  const button = h("button", { type: "button", class: "quiet theme" });
  const label = () => {
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", isDark() ? "Light colours" : "Dark colours");
  };
  button.addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    label();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", label);
  label();
  return button;
}
