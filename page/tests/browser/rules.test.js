import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { leading } from "../../src/format.js";
import { NEW, OLD, USERS, withoutParts } from "../fixtures/rules.js";
import { Reports, committed, launch, open } from "./support.js";

const reports = new Reports();
let browser;
let both;
let one;

before(async () => {
  const [old, now] = [OLD, NEW].map((rules) => {
    const users = committed(USERS[rules]);
    users.cases = users.cases.filter((of) => ["insert", "work", "curve", "payload"].includes(of.section));
    return reports.write(`users-${rules}.json`, users);
  });
  const keys = reports.write("keys.json", committed("keys"));
  both = reports.make("both.html", [old, now, keys]);
  one = reports.make("one.html", [now]);
  browser = await launch();
});

after(async () => {
  await browser?.close();
  reports.drop();
});

/** A page, which must report no errors. */
function onPage(name, address, run, options) {
  test(name, async () => {
    const { page, complaints, close } = await open(browser, address(), options);
    try {
      await run(page);
      assert.deepEqual(complaints, []);
      assert.equal(await page.locator("text=/undefined|NaN|\\[object/").count(), 0);
      assert.equal(await page.locator("svg [d*=NaN], svg [transform*=NaN]").count(), 0);
    } finally {
      await close();
    }
  });
}

const headings = (page) => page.locator("section.suite h2").allTextContents();
const pages = (page) => page.locator("#suite-users figure", { hasText: "Compute and memory pages" });

onPage("the newest rules are shown first, and the others on request", () => both, async (page) => {
  const rules = page.getByLabel("Rules", { exact: true });
  assert.equal(await rules.inputValue(), NEW);
  assert.deepEqual(await headings(page), ["What do rows cost?", "Which keys are cheap?"]);
  const source = page.locator("#provenance .part").first();
  assert.match(await source.textContent(), /Rule set2026-10/);
  const answer = await page.locator("#answer .answer").textContent();
  await page.locator("#bill input[name=perDay]").fill("5000");
  await rules.selectOption(OLD);
  assert.equal(await page.evaluate(() => document.activeElement.name), "rules");
  assert.deepEqual(await headings(page), ["What do rows cost?", "Which keys are cheap?"]);
  assert.match(await source.textContent(), /Rule set2025-10/);
  assert.notEqual(await page.locator("#answer .answer").textContent(), answer);
  assert.equal(await page.locator("#bill input[name=perDay]").inputValue(), "5000", "the choices are kept");
});

onPage("switching rules keeps the scroll position", () => both, async (page) => {
  await page.locator("#changes").scrollIntoViewIfNeeded();
  const top = () => page.evaluate(() => document.getElementById("changes").getBoundingClientRect().top);
  await page.evaluate(() => document.getElementById("changes").scrollIntoView({ behavior: "instant" }));
  await page.waitForTimeout(300);
  const before = await top();
  await page.getByLabel("Rules", { exact: true }).selectOption(OLD);
  await page.waitForTimeout(500);
  assert.ok(Math.abs((await top()) - before) < 3, `${before} → ${await top()}`);
});

onPage("a chart shows the changes by engine and case", () => both, async (page) => {
  const figure = page.locator("#changes figure");
  const label = () => figure.locator("svg[role=img]").getAttribute("aria-label");
  assert.match(await label(), /^2025-10 → 2026-10: .*middle 1: from .* [\d.]+× to .* [\d.]+×/);
  assert.equal(await figure.locator("figcaption code").textContent(), `stablebench compare users-${OLD}.json users-${NEW}.json`);
  await figure.locator("details").last().evaluate((inner) => { inner.open = true; });
  assert.match(await figure.locator("tbody td").first().textContent(), /^[\d.]+×$/);
  const before = await label();
  await figure.getByLabel("Cost").selectOption({ label: "instructions of the work" });
  assert.notEqual(await label(), before);
  await figure.getByLabel("Section").selectOption({ index: 1 });
  assert.equal(await figure.locator("tbody tr").count() > 12, true);
});

onPage("with one rule set there is no switch and no section on changes", () => one, async (page) => {
  assert.equal(await page.getByLabel("Rules", { exact: true }).count(), 0);
  assert.equal(await page.locator("#changes").count(), 0);
  assert.equal(await page.locator("#bill").count(), 1);
  assert.equal(await pages(page).count(), 1);
});

onPage("compute and pages of each engine add up in chart and table", () => one, async (page) => {
  const figure = pages(page);
  const label = () => figure.locator("svg[role=img]").getAttribute("aria-label");
  assert.match(await label(), /StableBTreeMap: compute [\d\u202f]+, heap pages [\d\u202f]+, stable pages [\d\u202f]+/);
  await figure.locator("details").last().evaluate((inner) => { inner.open = true; });
  const rows = async () => {
    const texts = await Promise.all((await figure.locator("tbody tr").all()).map((row) => row.locator("td").allTextContents()));
    return texts.map((row) => row.map((text) => Number(text.replace(/\D/g, ""))));
  };
  for (const [compute, heap, stable, total, ...touched] of await rows()) {
    assert.equal(compute + heap + stable, total);
    assert.equal(80_000 * (touched[0] + touched[1]), heap);
    assert.equal(80_000 * (touched[2] + touched[3]), stable);
  }
  const [[, heap]] = await rows();
  await figure.getByLabel("Of the").selectOption({ label: "instructions of the work" });
  assert.ok((await rows())[0][1] < heap, "around the work there are pages too");
});

onPage("the bill depends on its fields and states its assumptions", () => one, async (page) => {
  const bill = page.locator("#bill");
  const spoken = bill.locator(".answer");
  const first = await spoken.textContent();
  assert.match(first, / costs least: [\d.]+\u00a0[TG] cycles or \$[\d.]+ a month \(instructions \d+\u00a0%, message fees \d+\u00a0%, storage \d+\u00a0%, base fee \d+\u00a0%\)\./);
  const cell = async (at) => leading(await bill.locator("tbody tr").first().locator("td").nth(at).textContent());
  const dollars = await cell(0);
  await page.locator("#answer input[name=usd]").fill("2.72");
  assert.ok(Math.abs((await cell(0)) / dollars - 2) < 0.02);
  const messages = await cell(3);
  await bill.locator("input[name=perDay]").fill("2000");
  assert.ok(Math.abs((await cell(3)) / messages - 2) < 0.02);
  await page.waitForFunction((before) => document.querySelector("#bill .answer").textContent !== before, first);
  const label = () => bill.locator("svg[role=img]").getAttribute("aria-label");
  const before = await label();
  await bill.locator("input[name=gib]").fill("100");
  assert.notEqual(await label(), before);
  assert.equal(await cell(7), 100);
  await bill.locator("input[name=gib]").fill("");
  assert.notEqual(await cell(7), 100);
  await page.locator("#answer input[name=insert]").fill("99999");
  await page.waitForFunction(() => document.querySelector("#bill .answer").textContent.startsWith("There is no bill"));
  assert.match(await bill.locator(".assumed").textContent(), /317\u202f500 for a GiB and second, 10\u202f000 for a canister and second/);
});

for (const [width, colorScheme] of [[390, "light"], [1280, "dark"]]) {
  onPage(`nothing is wider than ${width} pixels, ${colorScheme}`, () => both, async (page) => {
    await page.evaluate(() => { for (const details of document.querySelectorAll("details")) details.open = true; });
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width);
  }, { viewport: { width, height: 800 }, colorScheme });
}

test("results without the parts of a charge are shown without them", async () => {
  const address = reports.make("older.html", [reports.write("older.json", withoutParts(committed("users-2025-10")))], ["--sections", "insert"]);
  const { page, complaints, close } = await open(browser, address);
  assert.equal(await pages(page).count(), 0);
  assert.match(await page.locator("#bill .assumed").textContent(), /no base fee for a canister/);
  assert.deepEqual(complaints, []);
  await close();
});

test("there is no bill if the rule set is unknown", async () => {
  const results = committed(USERS[OLD]);
  results.replica.rules = "unknown";
  const address = reports.make("unknown.html", [reports.write("unknown.json", results)], ["--sections", "insert"]);
  const { page, complaints, close } = await open(browser, address);
  assert.equal(await page.locator("#bill").count(), 0);
  assert.match(await page.locator("#answer .answer").textContent(), /is cheapest/);
  assert.deepEqual(complaints, []);
  await close();
});
