import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { NEW, OLD, USERS } from "../fixtures/rules.js";
import { COMMITTED, Reports, committed, launch, open } from "./support.js";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const reports = new Reports();
let browser;
let all;
let some;

before(async () => {
  all = reports.make("all.html", COMMITTED);
  // Nearly every kind of part is in these; all six files would take a minute.
  const files = [OLD, NEW].map((rules) => reports.write(`users-${rules}.json`, committed(USERS[rules])));
  some = reports.make("some.html", files, ["--sections", "insert,work,settings"]);
  browser = await launch();
});

after(async () => {
  await browser?.close();
  reports.drop();
});

for (const colorScheme of ["light", "dark"]) {
  test(`axe reports no violations, ${colorScheme}`, async () => {
    // Its script is not the page's own, which the policy keeps out.
    const { page, close } = await open(browser, some, { colorScheme, bypassCSP: true });
    await page.evaluate(() => {
      for (const part of document.querySelectorAll("section.part, #answer, #bill, #changes, #multipliers, #provenance, .advice")) {
        const details = part.querySelectorAll("details");
        for (const one of [...details].slice(0, 4)) one.open = true;
      }
    });
    await page.evaluate(AXE);
    const { violations } = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
    const problems = violations.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map((node) => `${node.html.slice(0, 160)} ${node.failureSummary}`).join(" | ")}`);
    assert.deepEqual(problems, []);
    await close();
  });
}

test("the tab order is navigation, fields, table headings", async () => {
  const { page, close } = await open(browser, all);
  const seen = [];
  for (let press = 0; press < 30; press += 1) {
    await page.keyboard.press("Tab");
    seen.push(await page.evaluate(() => {
      const { tagName, name, textContent } = document.activeElement;
      return name || `${tagName} ${textContent.slice(0, 20)}`;
    }));
  }
  assert.equal(seen[0], "A Skip to the answer");
  const order = ["A What is cheapest?", "A What do rows cost?", "BUTTON Dark", "insert", "read", "update", "delete", "scan", "place", "rows", "payload", "indexes"];
  const places = order.map((one) => seen.indexOf(one));
  assert.ok(places.every((at, before) => at > (places[before - 1] ?? 0)), seen.join(", "));
  await close();
});

test("each part has one heading, and the page has landmarks", async () => {
  const { page, close } = await open(browser, all);
  for (const landmark of ["main", "nav[aria-label]", "header", "footer", "h1"]) assert.equal(await page.locator(landmark).count(), 1, landmark);
  assert.equal(await page.locator("#answer [aria-live=polite]").count(), 1);
  for (const image of await page.locator("svg[role=img]").all()) assert.ok((await image.getAttribute("aria-label")).length > 20);
  await close();
});

for (const width of [360, 768]) {
  test(`nothing is wider than ${width} pixels on a narrow screen`, async () => {
    const { page, close } = await open(browser, all, { viewport: { width, height: 740 } });
    await page.evaluate(() => { for (const details of document.querySelectorAll("details")) details.open = true; });
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width);
    const wide = await page.evaluate((most) => [...document.querySelectorAll("main svg, main select, main input")]
      .filter((element) => element.getBoundingClientRect().right > most).map((element) => element.outerHTML.slice(0, 100)), width);
    assert.deepEqual(wide, []);
    await close();
  });
}

test("the reader chooses light or dark", async () => {
  const { page, close } = await open(browser, all, { colorScheme: "light" });
  const paper = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  const light = await paper();
  await page.getByRole("button", { name: "Dark colours" }).click();
  assert.notEqual(await paper(), light);
  await page.getByRole("button", { name: "Light colours" }).click();
  assert.equal(await paper(), light);
  await close();
});

test("printed, the page is light and without controls", async () => {
  const { page, close } = await open(browser, all, { colorScheme: "dark" });
  await page.emulateMedia({ media: "print" });
  assert.equal(await page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor), "rgb(255, 255, 255)");
  for (const gone of ["header.top", "footer", "figure button"]) assert.equal(await page.locator(gone).first().isVisible(), false, gone);
  assert.ok(await page.locator("#answer .answer").isVisible());
  await close();
});
