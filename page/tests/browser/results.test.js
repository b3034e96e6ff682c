import assert from "node:assert/strict";
import { before, test } from "node:test";
import { leading } from "../../src/format.js";
import { NEW, OLD, USERS, withoutParts } from "../results.js";
import { browser, committed, onComplete, open, openAll, reports } from "./support.js";

const HOSTILE = [
  "</script><script>canary = 1</script>",
  "<img src=x onerror=\"canary = 1\">",
  "\"><svg onload=canary=1>",
  "javascript:canary=1",
  "__proto__",
  "constructor",
  "{{script}}${canary=1}",
  "<style>*{display:none}</style>",
];
let both;
let one;

before(() => {
  const [old, now] = [OLD, NEW].map((rules) => {
    const users = committed(USERS[rules]);
    users.cases = users.cases.filter((of) => ["insert", "work", "curve", "payload"].includes(of.section));
    return reports.write(`users-${rules}.json`, users);
  });
  const keys = reports.write("keys.json", committed("keys"));
  both = reports.make("both.html", [old, now, keys]);
  one = reports.make("one.html", [now]);
});

test("texts of a hostile file are shown and not executed", async () => {
  const results = committed("users");
  results.cases = results.cases.filter((of) => of.section === "insert" || of.section === "settings");
  const evil = (at) => HOSTILE[at % HOSTILE.length];
  const renamed = new Map(results.configurations.map(({ key }, at) => [key, at < 4 ? key : `${evil(at)} ${at}`]));
  for (const configuration of results.configurations) configuration.key = renamed.get(configuration.key);
  for (const fixture of results.fixtures) fixture.configuration = renamed.get(fixture.configuration);
  results.cases.forEach((of, at) => {
    of.configuration = renamed.get(of.configuration);
    if (of.section === "settings") of.name = `${of.name} ${evil(at % 7)}`;
    if (of.outcome.not_applicable) of.outcome.not_applicable.reason = evil(at);
  });
  results.cases[0].outcome = { failed: { reason: evil(1) } };
  for (const name of ["__proto__", "constructor", evil(0)]) {
    results.cases.push({ ...structuredClone(results.cases[5]), section: name });
  }
  for (const key of ["stablebench", "revision", "command"]) results[key] = evil(0);
  results.replica.version = evil(1);
  for (const canister of results.canisters) {
    canister.name = evil(2);
    canister.sha256 = evil(3);
    canister.crates[0].name = evil(1);
    if (canister.sqlite) canister.sqlite.version = evil(0);
  }
  const file = reports.write("</script><b>users.json".replace(/\//g, "∕"), results);
  const { page, complaints, close } = await open(reports.make("hostile.html", [file]));
  await openAll(page);
  await page.locator("#answer input[name=insert]").fill("20");
  await page.waitForTimeout(500);
  assert.deepEqual(complaints, []);
  assert.equal(await page.evaluate(() => typeof globalThis.canary), "undefined");
  assert.equal(await page.evaluate(() => ({}).polluted ?? document.querySelectorAll("main img, main script, main style").length), 0);
  assert.ok((await page.locator("#provenance").textContent()).includes(HOSTILE[0]));
  assert.ok((await page.locator("figure").count()) > 1);
  await close();
});

test("a file with one section works, and has a reason for missing figures", async () => {
  const file = reports.write("users.json", committed("users"));
  const address = reports.make("insert.html", [file], ["--sections", "insert"]);
  const { page, complaints, close } = await open(address);
  assert.match(await page.locator("#answer .answer").textContent(), /is cheapest/);
  await page.locator("#answer input[name=payload]").fill("300");
  await page.waitForFunction(() => /measured with 100 bytes per row only/.test(document.querySelector("#answer .answer").textContent));
  await page.locator("#answer input[name=rows]").fill("200000");
  await page.waitForFunction(() => /measured with 1\u202f000\u202f000 rows in the table only/.test(document.querySelector("#answer .answer").textContent));
  await page.locator("#answer input[name=payload]").fill("100");
  await page.locator("#answer input[name=rows]").fill("1000000");
  await page.locator("#answer input[name=read]").fill("5");
  await page.waitForFunction(() => /reads were not measured there/.test(document.querySelector("#answer .answer").textContent));
  assert.ok(await page.locator("#answer .warning code").first().isVisible());
  assert.deepEqual(complaints, []);
  await close();
});

test("published figures are shown with the run that repeats them", async () => {
  const results = committed("users");
  results.published = "users";
  const address = reports.make("published.html", [reports.write("as-published.json", results)], ["--sections", "insert"]);
  const { page, complaints, close } = await open(address);
  assert.match(await page.locator("#suite-users-insert figure").first().textContent(), /hollow: published/);
  assert.match(await page.locator("#provenance").textContent(), /developer forum post/);
  assert.deepEqual(complaints, []);
  await close();
});

test("published figures, two runs of one suite, and a run without cases are shown", async () => {
  const empty = { ...committed("keys"), cases: [], fixtures: [] };
  const one = reports.write("one.json", committed("cuckoo"));
  const other = reports.write("other.json", committed("cuckoo"));
  const address = reports.make("several.html", ["published:users", one, other, reports.write("empty.json", empty)]);
  const { page, complaints, close } = await open(address);
  assert.deepEqual(await page.locator("section.suite h2").allTextContents(), ["What do rows cost?", "How cheap can a read be? (one.json)", "How cheap can a read be? (other.json)", "Which keys are cheap?"]);
  assert.match(await page.locator("#answer .answer").textContent(), /is cheapest/);
  assert.deepEqual(complaints, []);
  await close();
});

test("without scripts the page names the alternative", async () => {
  const address = reports.make("plain.html", [reports.write("cuckoo.json", committed("cuckoo"))]);
  const context = await browser.newContext({ javaScriptEnabled: false });
  const page = await context.newPage();
  await page.goto(address);
  assert.match(await page.locator("body").innerText(), /needs JavaScript.*stablebench report --format markdown/s);
  await context.close();
});

test("a run that is not complete says so first", async () => {
  const results = committed("users");
  results.planned = results.cases.length;
  results.cases = results.cases.filter((of) => of.section === "insert");
  const { page, complaints, close } = await open(reports.make("incomplete.html", [reports.write("incomplete.json", results)]));
  const said = await page.locator(".suite > .warning").textContent();
  assert.match(said, /^Not complete\. \d+ of [\d\s]+ cases were measured\./);
  assert.deepEqual(complaints, []);
  await close();
});

const headings = (page) => page.locator("section.suite h2").allTextContents();
const pages = (page) => page.locator("#suite-users figure", { hasText: "Compute and memory pages" });

onComplete("the newest rules are shown first, and the others on request", () => both, async (page) => {
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

onComplete("switching rules keeps the scroll position", () => both, async (page) => {
  await page.locator("#changes").scrollIntoViewIfNeeded();
  const top = () => page.evaluate(() => document.getElementById("changes").getBoundingClientRect().top);
  await page.evaluate(() => document.getElementById("changes").scrollIntoView({ behavior: "instant" }));
  await page.waitForTimeout(300);
  const before = await top();
  await page.getByLabel("Rules", { exact: true }).selectOption(OLD);
  await page.waitForTimeout(500);
  assert.ok(Math.abs((await top()) - before) < 3, `${before} → ${await top()}`);
});

onComplete("a chart shows the changes by engine and case", () => both, async (page) => {
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

onComplete("with one rule set there is no switch and no section on changes", () => one, async (page) => {
  assert.equal(await page.getByLabel("Rules", { exact: true }).count(), 0);
  assert.equal(await page.locator("#changes").count(), 0);
  assert.equal(await page.locator("#bill").count(), 1);
  assert.equal(await pages(page).count(), 1);
});

onComplete("compute and pages of each engine add up in chart and table", () => one, async (page) => {
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

onComplete("the bill depends on its fields and states its assumptions", () => one, async (page) => {
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
  onComplete(`nothing is wider than ${width} pixels, ${colorScheme}`, () => both, async (page) => {
    await openAll(page);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width);
  }, { viewport: { width, height: 800 }, colorScheme });
}

test("results without the parts of a charge are shown without them", async () => {
  const address = reports.make("older.html", [reports.write("older.json", withoutParts(committed("users-2025-10")))], ["--sections", "insert"]);
  const { page, complaints, close } = await open(address);
  assert.equal(await pages(page).count(), 0);
  assert.match(await page.locator("#bill .assumed").textContent(), /no base fee for a canister/);
  assert.deepEqual(complaints, []);
  await close();
});

test("there is no bill if the rule set is unknown", async () => {
  const results = committed(USERS[OLD]);
  results.replica.rules = "unknown";
  const address = reports.make("unknown.html", [reports.write("unknown.json", results)], ["--sections", "insert"]);
  const { page, complaints, close } = await open(address);
  assert.equal(await page.locator("#bill").count(), 0);
  assert.match(await page.locator("#answer .answer").textContent(), /is cheapest/);
  assert.deepEqual(complaints, []);
  await close();
});
