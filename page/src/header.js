/** The header's controls: the button for light or dark colours, and the list of the page's parts. */

import { h } from "./dom.js";

const prefers = () => matchMedia("(prefers-color-scheme: dark)").matches;

/** Returns `true` if the page is dark: the system's preference, unless the reader has chosen. */
export function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : prefers();
}

/** The button that switches between light and dark. */
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

/** The list of the page's parts; the part in view is marked. @param {Array<[string, string]>} links addresses and texts @returns {HTMLElement} */
export function navigation(links) {
  const anchors = links.map(([href, text]) => h("a", { href }, text));
  const mark = (id) => {
    for (const anchor of anchors) {
      if (anchor.getAttribute("href") === `#${id}`) anchor.setAttribute("aria-current", "true");
      else anchor.removeAttribute("aria-current");
    }
  };
  const observer = new IntersectionObserver(
    (entries) => {
      const seen = entries.filter((entry) => entry.isIntersecting);
      if (seen.length) mark(seen[seen.length - 1].target.id);
    },
    { rootMargin: "-80px 0px -75% 0px" },
  );
  queueMicrotask(() => {
    for (const [href] of links) {
      const target = document.getElementById(href.slice(1));
      if (target) observer.observe(target);
    }
  });
  return h("nav", { "aria-label": "Parts of the page" }, h("ul", {}, anchors.map((anchor) => h("li", {}, anchor))));
}
