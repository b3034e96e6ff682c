import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Reports, committed, launch, open } from "./support.js";

const reports = new Reports();
let browser;

before(async () => {
  browser = await launch();
});

after(async () => {
  await browser?.close();
  reports.drop();
});

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
  const { page, complaints, close } = await open(browser, reports.make("hostile.html", [file]));
  await page.evaluate(() => { for (const details of document.querySelectorAll("details")) details.open = true; });
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
  const { page, complaints, close } = await open(browser, address);
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
  const { page, complaints, close } = await open(browser, address);
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
  const { page, complaints, close } = await open(browser, address);
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
  const { page, complaints, close } = await open(browser, reports.make("incomplete.html", [reports.write("incomplete.json", results)]));
  const said = await page.locator(".suite > .warning").textContent();
  assert.match(said, /^Not complete\. \d+ of [\d\s]+ cases were measured\./);
  assert.deepEqual(complaints, []);
  await close();
});
