import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { before, test } from "node:test";
import { NEW, OLD, USERS } from "../results.js";
import { COMMITTED, committed, onPage, open, openAll, pathOf, reports } from "./support.js";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const PHONE = { viewport: { width: 390, height: 844 } };
/** Half of what the page of the users suite had. */
const TALLEST = 31_700 / 2;
let all;
let some;
let users;
let every;

before(() => {
  all = reports.make("all.html", COMMITTED);
  // Nearly every kind of part is in these; all six files would take a minute.
  const files = [OLD, NEW].map((rules) => reports.write(`users-${rules}.json`, committed(USERS[rules])));
  some = reports.make("some.html", files, ["--sections", "insert,work,settings"]);
  users = reports.make("users.html", [pathOf("users")]);
  every = reports.make("every.html", [...COMMITTED, pathOf("mix")]);
});

for (const colorScheme of ["light", "dark"]) {
  test(`axe reports no violations, ${colorScheme}`, async () => {
    // Its script is not the page's own, which the policy keeps out.
    const { page, close } = await open(some, { colorScheme, bypassCSP: true });
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
  const { page, close } = await open(all);
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
  const { page, close } = await open(all);
  for (const landmark of ["main", "nav[aria-label]", "header", "footer", "h1"]) assert.equal(await page.locator(landmark).count(), 1, landmark);
  assert.equal(await page.locator("#answer [aria-live=polite]").count(), 1);
  for (const image of await page.locator("svg[role=img]").all()) assert.ok((await image.getAttribute("aria-label")).length > 20);
  await close();
});

for (const width of [360, 768]) {
  test(`nothing is wider than ${width} pixels on a narrow screen`, async () => {
    const { page, close } = await open(all, { viewport: { width, height: 740 } });
    await openAll(page);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width);
    const wide = await page.evaluate((most) => [...document.querySelectorAll("main svg, main select, main input")]
      .filter((element) => element.getBoundingClientRect().right > most).map((element) => element.outerHTML.slice(0, 100)), width);
    assert.deepEqual(wide, []);
    await close();
  });
}

test("the reader chooses light or dark", async () => {
  const { page, close } = await open(all, { colorScheme: "light" });
  const paper = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  const light = await paper();
  await page.getByRole("button", { name: "Dark colours" }).click();
  assert.notEqual(await paper(), light);
  await page.getByRole("button", { name: "Light colours" }).click();
  assert.equal(await paper(), light);
  await close();
});

test("printed, the page is light and without controls", async () => {
  const { page, close } = await open(all, { colorScheme: "dark" });
  await page.emulateMedia({ media: "print" });
  assert.equal(await page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor), "rgb(255, 255, 255)");
  for (const gone of ["header.top", "footer", "figure button"]) assert.equal(await page.locator(gone).first().isVisible(), false, gone);
  assert.ok(await page.locator("#answer .answer").isVisible());
  await close();
});

const onPhone = (name, address, run, options = PHONE) => onPage(name, address, run, options);
const height = (page) => page.evaluate(() => document.documentElement.scrollHeight);

onPhone("the page is short: conclusions are open, tables and charts are folded", () => users, async (page) => {
  await page.waitForTimeout(500);
  assert.ok((await height(page)) <= TALLEST, `${await height(page)} pixels`);
  assert.ok(await page.locator(".advice li").first().isVisible());
  for (const folded of await page.locator("main table, main figure").all()) assert.equal(await folded.isVisible(), false);
  assert.ok(await page.locator("#answer .answer").isVisible());
});

onPhone("nothing is outside of the screen, folded or not", () => every, async (page) => {
  const width = () => page.evaluate(() => document.documentElement.scrollWidth);
  assert.equal(await width(), 390);
  await openAll(page);
  await page.waitForTimeout(500);
  assert.equal(await width(), 390);
});

onPhone("tables do not cut digits", () => every, async (page) => {
  await openAll(page);
  await page.waitForTimeout(500);
  const cut = await page.evaluate(() => {
    const range = document.createRange();
    return [...document.querySelectorAll("main td, main th")].filter((cell) => {
      range.selectNodeContents(cell);
      return [...range.getClientRects()].some(({ left, right }) => left < 0 || right > 390);
    }).map((cell) => cell.textContent.slice(0, 60));
  });
  assert.deepEqual(cut.slice(0, 5), []);
  for (const scroll of await page.locator(".scroll").all()) assert.ok(await scroll.evaluate((box) => box.scrollWidth <= box.clientWidth + 1));
  const [name, of] = await page.locator("#answer tbody td").first().evaluate((cell) => [getComputedStyle(cell, "::before").content, cell.textContent]);
  assert.equal(name, '"Compared with the cheapest"');
  assert.match(of, /^[\d.]+×$/);
});

onPhone("the navigation shows all entries, which say what they answer", () => every, async (page) => {
  const links = page.locator("nav a");
  assert.deepEqual(await links.allTextContents(), [
    "What is cheapest?", "What does a month cost?", "What do rows cost?", "Is a table without rowid cheaper?", "Which keys are cheap?", "What does each statement cost?",
    "How cheap can a read be?", "What does the file layer cost?", "What did my mix cost?", "One against the other", "Where is this from?",
  ]);
  for (const link of await links.all()) {
    const { x, y, width, height: tall } = await link.boundingBox();
    assert.ok(x >= 0 && x + width <= 390 && y >= 0 && y + tall <= 844, await link.textContent());
  }
});

onPhone("all entries are in view on a wide screen too", () => every, async (page) => {
  for (const link of await page.locator("nav a").all()) {
    const { x, width } = await link.boundingBox();
    assert.ok(x >= 0 && x + width <= 1280, await link.textContent());
  }
  assert.ok(await page.locator("#answer table").first().isVisible(), "tables are open");
}, {});

onPhone("a link opens the part that it leads to", () => every, async (page) => {
  await page.locator("#suite-users .contents a").first().click();
  await page.waitForFunction(() => document.querySelector("#suite-users-insert svg[role=img]"));
  assert.ok(await page.locator("#suite-users-insert figure").isVisible());
});

onPhone("tables are sorted by their headings", () => users, async (page) => {
  await page.locator("#answer .fold summary").first().click();
  const header = page.locator("#answer .fold thead button", { hasText: "Instructions" });
  await header.click();
  const values = await page.locator("#answer .fold tbody tr td:nth-child(3)").allTextContents();
  const numbers = values.map((text) => Number(text.replace(/\D/g, "")));
  assert.deepEqual(numbers, [...numbers].sort((one, other) => one - other));
});

onPhone("lines that coincide are labelled with all names", () => users, async (page) => {
  await page.locator("#suite-users-insert > .fold > summary").click();
  await page.waitForSelector("#suite-users-insert svg[role=img]");
  const text = await page.locator("#suite-users-insert svg").first().textContent();
  assert.match(text, /SQLite DELETE, PERSIST/);
  const right = await page.locator("#suite-users-insert svg text").evaluateAll((texts) => Math.max(...texts.map((of) => of.getBoundingClientRect().right)));
  assert.ok(right <= 390, String(right));
});
