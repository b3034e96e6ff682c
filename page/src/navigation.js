/** The list of the page's parts, always in view; the part that is being read is marked. */

import { h } from "./dom.js";

/** @param {Array<[string, string]>} links addresses and texts @returns {HTMLElement} */
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
