import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { fileOf } from "../unit/results.js";
import { COMMITTED, Reports, launch, open } from "./support.js";

const reports = new Reports();
const PHONE = { viewport: { width: 390, height: 844 } };
/** Half of what the page of the users suite had. */
const TALLEST = 31_700 / 2;
let browser;
let users;
let all;

before(async () => {
  users = reports.make("users.html", [fileURLToPath(fileOf("users"))]);
  all = reports.make("all.html", [...COMMITTED, fileURLToPath(fileOf("mix"))]);
  browser = await launch();
});

after(async () => {
  await browser?.close();
  reports.drop();
});

/** A page on a phone, which must report no errors. */
function onPhone(name, address, run, options = PHONE) {
  test(name, async () => {
    const { page, complaints, close } = await open(browser, address(), options);
    try {
      await run(page);
      assert.deepEqual(complaints, []);
    } finally {
      await close();
    }
  });
}

const openAll = (page) => page.evaluate(() => { for (const details of document.querySelectorAll("details")) details.open = true; });
const height = (page) => page.evaluate(() => document.documentElement.scrollHeight);

onPhone("the page is short: conclusions are open, tables and charts are folded", () => users, async (page) => {
  await page.waitForTimeout(500);
  assert.ok((await height(page)) <= TALLEST, `${await height(page)} pixels`);
  assert.ok(await page.locator(".advice li").first().isVisible());
  for (const folded of await page.locator("main table, main figure").all()) assert.equal(await folded.isVisible(), false);
  assert.ok(await page.locator("#answer .answer").isVisible());
});

onPhone("nothing is outside of the screen, folded or not", () => all, async (page) => {
  const width = () => page.evaluate(() => document.documentElement.scrollWidth);
  assert.equal(await width(), 390);
  await openAll(page);
  await page.waitForTimeout(500);
  assert.equal(await width(), 390);
});

onPhone("tables do not cut digits", () => all, async (page) => {
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

onPhone("the navigation shows all entries, which say what they answer", () => all, async (page) => {
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

onPhone("all entries are in view on a wide screen too", () => all, async (page) => {
  for (const link of await page.locator("nav a").all()) {
    const { x, width } = await link.boundingBox();
    assert.ok(x >= 0 && x + width <= 1280, await link.textContent());
  }
  assert.ok(await page.locator("#answer table").first().isVisible(), "tables are open");
}, {});

onPhone("a link opens the part that it leads to", () => all, async (page) => {
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
