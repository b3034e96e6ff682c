import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { before } from "node:test";
import { whole } from "../../src/format.js";
import { NEW, OLD, USERS } from "../results.js";
import { COMMITTED, committed, complete, onComplete, onPage, pathOf, reports } from "./support.js";

let all;

before(() => {
  all = reports.make("all.html", COMMITTED);
});

const onAll = (name, run) => onPage(name, () => all, run);

onAll("all suites have charts and tables, without errors", async (page) => {
  assert.match(await page.title(), /^stablebench: users, db-bench, keys, sysbench, cuckoo, vfs$/);
  assert.equal(await page.locator("section.suite").count(), 6);
  for (const suite of await page.locator("section.suite").all()) {
    assert.ok((await suite.locator("svg[role=img]").count()) > 0);
    assert.ok((await suite.locator("table").count()) > 0);
  }
  await complete(page);
});

onAll("the controls change the answer and its origin", async (page) => {
  const answer = page.locator("#answer .answer");
  const first = await answer.textContent();
  assert.match(first, /is cheapest: .* instructions; .*This was measured\./);
  const field = (name) => page.locator(`#answer input[name=${name}]`);
  const rows = page.locator("#answer .scroll").first().locator("tbody tr");
  await field("insert").fill("700");
  await page.waitForFunction((before) => document.querySelector("#answer .answer").textContent !== before, first);
  assert.match(await answer.textContent(), /This is interpolated, and may be wrong by up to \d+\u00a0%: between 100 and 1\u202f000 rows per message\./);
  assert.match(await rows.first().textContent(), /instructions: wrong by up to/);
  await field("payload").fill("500");
  await page.waitForFunction(() => document.querySelector("#answer .answer").textContent.includes("This is estimated, and may be wrong by up to"));
  assert.match(await answer.textContent(), /between 100 and 1\u202f000 bytes per row/);
  await field("insert").fill("20000");
  await page.waitForFunction(() => document.querySelector("#answer .answer").textContent.includes("There is no figure for this mix"));
  assert.match(await rows.first().textContent(), /20\u202f000 rows per message is outside of the measured range: 1 to 10\u202f000/);
});

onAll("inexact answers say so first, with the command that measures exactly this mix", async (page) => {
  const warning = page.locator("#answer .warning");
  assert.equal(await warning.count(), 0, "the first answer was measured");
  const ask = async (of) => { for (const [name, value] of Object.entries(of)) await page.locator(`#answer input[name=${name}]`).fill(value); };
  await ask({ insert: "5", read: "20", payload: "300", rows: "200000" });
  await page.locator("#answer select[name=place]").selectOption("random");
  assert.match(await warning.textContent(), /^Measure this\. .*wrong by more than 25/);
  const engines = "btree,sqlite/persist,cache_size=1000,sqlite/wal,cache_size=1000,sqlite/memory,cache_size=1000,sqlite-vfs";
  const command = (indexes) => `stablebench run mix --insert 5 --read 20 --update 0 --delete 0 --scan 0 --indexes ${indexes} --rows 200000 --payload 300 --at random --engines ${engines} --rules 2026-10`;
  assert.equal(await warning.locator("code").first().textContent(), command(0));
  assert.ok(await warning.locator("code").first().isVisible());
  assert.match(await warning.textContent(), /also measures sqlite\/wal,cache_size=1000, .*which this file has not/);
  const top = async (locator) => (await locator.boundingBox()).y;
  assert.ok((await top(warning)) < (await top(page.locator("#answer .answer"))), "before the answer");
  await page.waitForFunction(() => document.querySelector("#answer .answer").textContent.startsWith("By inexact estimates, "));
  await ask({ indexes: "2" });
  assert.match(await warning.textContent(), /^Measure this\. These files have no figure for this mix\./);
  assert.equal(await warning.locator("code").first().textContent(), command(2));
  await page.waitForFunction(() => document.querySelector("#answer .answer").textContent.startsWith("There is no figure for this mix: secondary indexes are not in these measurements."));
});

onAll("the answer is one recommendation, with PRAGMAs to paste and the command", async (page) => {
  await page.locator("#answer input[name=insert]").fill("1000");
  await page.waitForFunction(() => document.querySelector("#answer .answer").textContent.startsWith("SQLite PERSIST cache_size=1000 is cheapest"));
  assert.equal(await page.locator("#answer .advised code").textContent(), "PRAGMA journal_mode = PERSIST;\nPRAGMA cache_size = 1000;");
  assert.match(await page.locator("#answer .advised + .command code").textContent(), /^stablebench run mix --insert 1000 --read 0 /);
  await page.locator("#answer input[name=insert]").fill("1");
  await page.waitForFunction(() => document.querySelector("#answer .answer").textContent.startsWith("StableBTreeMap is cheapest"));
  assert.match(await page.locator("#answer .advised").textContent(), /If it must be SQL: .* takes [\d.]+× as much\./);
});

onAll("a configuration that cannot undo a transaction is not recommended", async (page) => {
  await page.locator("#answer select[name=place]").selectOption("end");
  await page.locator("#answer input[name=insert]").fill("10000");
  await page.waitForFunction(() => document.querySelector("#answer .advised").textContent.includes("SQLite OFF takes 0."));
  assert.match(await page.locator("#answer .advised").textContent(), /but cannot undo a transaction/);
  assert.doesNotMatch(await page.locator("#answer .answer strong").textContent(), /OFF/);
});

onAll("the errors of estimates are shown on request", async (page) => {
  const method = page.locator("#answer .method");
  assert.equal(await method.locator("table").count(), 0);
  await method.locator("summary").click();
  await page.waitForFunction(() => document.querySelectorAll("#answer .method table").length === 2);
  assert.match(await method.locator("table").last().textContent(), /Reads.*StableBTreeMap\d+\u00a0% \/ \d+\u00a0%, \d+ of \d+/);
});

onAll("reads change the answer and the bill", async (page) => {
  await page.locator("#answer input[name=insert]").fill("1");
  await page.locator("#answer select[name=place]").selectOption("random");
  const instructions = async (at) => Number((await page.locator(at).textContent()).replace(/\D/g, ""));
  const map = (part, column) => `${part} tbody tr:has-text("StableBTreeMap") td >> nth=${column}`;
  const [answer, bill] = [await instructions(map("#answer", 1)), await instructions(map("#bill", 6))];
  assert.equal(answer, bill, "the bill is of the mix above");
  await page.locator("#answer input[name=read]").fill("20");
  assert.ok((await instructions(map("#answer", 1))) > answer * 2);
  assert.equal(await instructions(map("#bill", 6)), await instructions(map("#answer", 1)));
});

onAll("rows at random can be chosen", async (page) => {
  await page.locator("#answer select[name=place]").selectOption({ label: "at random places" });
  await page.waitForFunction(() => /This was measured\./.test(document.querySelector("#answer .answer").textContent));
});

onAll("nodes and the price of cycles change the cost", async (page) => {
  const dollars = async () => Number((await page.locator("#answer tbody tr").nth(0).locator("td").nth(4).textContent()).replace(/[^\d.]/g, ""));
  const before = await dollars();
  await page.locator("#answer input[name=nodes]").fill("26");
  assert.ok(Math.abs((await dollars()) / before - 2) < 0.01);
  await page.locator("#answer input[name=usd]").fill("2.72");
  assert.ok(Math.abs((await dollars()) / before - 4) < 0.01);
});

onAll("the place and the order change the answer", async (page) => {
  const names = () => page.locator("#answer .scroll").first().locator("tbody th").allTextContents();
  const first = await names();
  await page.locator("#answer select[name=place]").selectOption("end");
  const end = await names();
  assert.notDeepEqual(end, first);
  await page.getByLabel("Ranked by").selectOption("instructions");
  assert.equal(await page.locator("#answer .scroll").first().locator("tbody th").count(), end.length);
});

onAll("impossible numbers are ignored", async (page) => {
  const cell = () => page.locator("#answer tbody tr").first().locator("td").nth(1).textContent();
  const before = await cell();
  for (const [name, value] of [["insert", "-5"], ["insert", "1.5"], ["rows", "3"], ["indexes", "9"], ["payload", ""]]) {
    await page.locator(`#answer input[name=${name}]`).fill(value);
    assert.equal(await cell(), before, `${name} ${value}`);
  }
});

onAll("headings sort tables, also with the keyboard", async (page) => {
  const table = page.locator("#suite-users-insert .section-table table");
  await table.evaluate((inner) => { inner.closest("details").open = true; });
  const header = table.locator("thead th").nth(1);
  const values = async () => (await table.locator("tbody tr td:nth-child(2)").allTextContents()).map((text) => Number(text.replace(/\D/g, "")));
  const ascending = [...(await values())].sort((one, other) => one - other);
  await header.locator("button").focus();
  await page.keyboard.press("Enter");
  assert.equal(await header.getAttribute("aria-sort"), "ascending");
  assert.deepEqual(await values(), ascending);
  await page.keyboard.press("Space");
  assert.equal(await header.getAttribute("aria-sort"), "descending");
  assert.deepEqual(await values(), ascending.reverse());
  assert.equal(await table.locator("[aria-sort]").count(), 1);
});

onAll("the table of a section shows any value", async (page) => {
  const section = page.locator("#suite-users-insert .section-table");
  await section.evaluate((inner) => { inner.closest("details").open = true; });
  const caption = () => section.locator("caption").textContent();
  const before = await caption();
  await section.locator("select").selectOption({ label: "Heap pages changed (4 KiB)" });
  assert.notEqual(await caption(), before);
  assert.match(await caption(), /heap pages changed/);
});

onAll("cases without a measurement show the reason", async (page) => {
  const section = page.locator("#suite-users-settings .section-table");
  await section.evaluate((inner) => { inner.closest("details").open = true; });
  assert.ok((await section.locator("abbr.absent").count()) > 0);
  assert.match(await section.locator(".reasons").textContent(), /n\/a: /);
});

onAll("two configurations are compared", async (page) => {
  const pair = page.locator("#multipliers");
  const answer = pair.locator(".answer");
  const first = await answer.textContent();
  await pair.getByLabel("Other").selectOption({ label: "SQLite OFF" });
  assert.notEqual(await answer.textContent(), first);
  await pair.getByLabel("Base").selectOption({ label: "SQLite OFF" });
  assert.match(await answer.textContent(), /^1\.00× is the geometric mean of \d+ cases/);
  await pair.getByLabel("From").selectOption({ label: "What does each statement cost?" });
  assert.equal(await pair.locator("table").first().locator("tbody tr").count(), 25);
});

onAll("a chart is saved as a standalone image", async (page) => {
  for (const id of ["#suite-users-insert", "#suite-users-settings", "#suite-sysbench", "#suite-db-bench-benchmarks"]) {
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.locator(id).getByRole("button", { name: /^Save as SVG/ }).first().click(),
    ]);
    assert.match(download.suggestedFilename(), /^[\w-]+\.svg$/);
    const text = readFileSync(await download.path(), "utf8");
    const found = await page.evaluate((svg) => {
      const parsed = new DOMParser().parseFromString(svg, "image/svg+xml");
      return {
        root: parsed.documentElement.namespaceURI + parsed.documentElement.localName,
        error: parsed.querySelector("parsererror")?.textContent,
        texts: parsed.querySelectorAll("text").length,
      };
    }, text);
    assert.equal(found.error, undefined);
    assert.equal(found.root, "http://www.w3.org/2000/svgsvg");
    assert.ok(found.texts > 5);
    assert.doesNotMatch(text, /var\(|<script|href="http/);
  }
});

onAll("a chart is redrawn when the choice changes", async (page) => {
  const section = page.locator("#suite-users-insert");
  const label = () => section.locator("svg[role=img]").first().getAttribute("aria-label");
  const first = await label();
  await section.locator("figure select").first().selectOption("cycles");
  assert.notEqual(await label(), first);
  assert.match(await label(), /cycles per row over new rows per message/);
});

onAll("each chart has a command, limited to its section where possible", async (page) => {
  const command = page.locator("#suite-users-curve figcaption code").first();
  assert.match(await command.textContent(), /^stablebench run users --sections curve --per-operation --rules 2026-10/);
  for (const figure of await page.locator("figure").all()) assert.equal(await figure.locator("figcaption code").count(), 1);
});

let users;
let mix;
let both;

/** The mean of the measured mix in the engine in which it is cheapest, as the page writes it. */
const CHEAPEST_MIX = whole(Math.min(...committed("mix").cases.map(({ outcome: { measured } }) => measured.instructions / measured.operations)));

const MIX = "insert=5&read=20&update=0&delete=0&scan=0&indexes=0&rows=200000&payload=300&at=random";

before(() => {
  const files = [OLD, NEW].map((rules) => {
    const results = committed(USERS[rules]);
    results.cases = results.cases.filter((of) => ["insert", "work", "curve", "payload", "locality"].includes(of.section));
    return reports.write(`users-${rules}.json`, results);
  });
  users = reports.make("users.html", files);
  mix = reports.make("mix.html", [pathOf("mix")]);
  both = reports.make("both.html", [files[1], pathOf("mix")]);
});

const value = (page, name) => page.locator(`[name=${name}]`).first().inputValue();
const hash = (page) => page.evaluate(() => location.hash);
const follows = (page, expected) => page.waitForFunction((text) => location.hash === text, expected);

onComplete("the address follows the question, and a reload restores it", () => users, async (page) => {
  assert.equal(await hash(page), "", "the first question is no part of it");
  for (const [name, of] of [["insert", "5"], ["read", "20"], ["rows", "200000"], ["payload", "300"]]) await page.locator(`#answer input[name=${name}]`).fill(of);
  await page.locator("#answer select[name=place]").selectOption("random");
  await follows(page, `#?${MIX}`);
  await page.locator("#bill input[name=perDay]").fill("5000");
  await page.getByLabel("Ranked by").selectOption("message");
  await follows(page, `#?${MIX}&by=message&perDay=5000`);
  const answer = await page.locator("#answer .answer").textContent();
  await page.reload();
  await page.waitForSelector("#provenance");
  for (const [name, of] of [["insert", "5"], ["read", "20"], ["rows", "200000"], ["payload", "300"], ["place", "random"], ["perDay", "5000"]]) assert.equal(await value(page, name), of, name);
  assert.equal(await page.getByLabel("Ranked by").inputValue(), "message");
  assert.equal(await page.locator("#answer .answer").textContent(), answer);
});

onComplete("a shared address shows its answer and its part", () => `${users}#bill?${MIX}&usd=2.5`, async (page) => {
  assert.equal(await value(page, "read"), "20");
  assert.equal(await value(page, "usd"), "2.5");
  await page.waitForFunction(() => Math.abs(document.getElementById("bill").getBoundingClientRect().top) < 200);
});

onComplete("a link inside of the page keeps the question", () => `${users}#?${MIX}`, async (page) => {
  await page.locator("nav a", { hasText: "What does a month cost?" }).click();
  await follows(page, `#bill?${MIX}`);
  assert.equal(await value(page, "read"), "20");
  await page.goBack();
  await follows(page, `#?${MIX}`);
  assert.equal(await value(page, "read"), "20");
});

onComplete("another address shows another question", () => `${users}#?${MIX}`, async (page) => {
  await page.evaluate((text) => { location.hash = text; }, `answer?${MIX.replace("read=20", "read=7")}`);
  await page.waitForFunction(() => document.querySelector("[name=read]").value === "7");
});

onComplete("the rules and the choices are restored", () => users, async (page) => {
  await page.getByLabel("Rules", { exact: true }).selectOption(OLD);
  assert.equal(await hash(page), `#?rules=${OLD}`);
  await page.reload();
  await page.waitForSelector("#provenance");
  assert.equal(await page.getByLabel("Rules", { exact: true }).inputValue(), OLD);
});

for (const nonsense of ["insert=-1&read=1e9&rows=x&at=nowhere&by=__proto__", "%E0%A4%A", "<img src=x onerror=alert(1)>", "from=nothing.json&rules=1999-01&indexes=99", "????&&&==="]) {
  onComplete(`nonsense in the address is ignored: ${nonsense}`, () => `${users}#answer?${nonsense}`, async (page) => {
    assert.equal(await value(page, "insert"), "100");
    assert.equal(await value(page, "read"), "0");
    assert.match(await page.locator("#answer .answer").textContent(), /is cheapest: .*This was measured\./);
  });
}

onComplete("an address without operations has no figure", () => `${users}#?${MIX.replace("insert=5&read=20", "insert=0&read=0")}`, async (page) => {
  assert.match(await page.locator("#answer .answer").textContent(), /^There is no figure for this mix: the message does nothing\./);
});

onComplete("a file of the suite mix shows its measured mix", () => mix, async (page) => {
  for (const [name, of] of [["insert", "5"], ["read", "20"], ["indexes", "2"], ["rows", "200000"], ["payload", "300"], ["place", "random"]]) assert.equal(await value(page, name), of, name);
  assert.match(await page.locator("#answer .answer").textContent(), new RegExp(`^SQLite WAL cache_size=1000 is cheapest: ${CHEAPEST_MIX} instructions; .*This was measured\\.`));
  assert.equal(await page.locator("#answer .advised code").textContent(), "PRAGMA journal_mode = WAL;\nPRAGMA cache_size = 1000;");
  assert.match(await page.locator("#bill .answer").textContent(), /^SQLite WAL cache_size=1000 costs least/);
  await page.locator("#answer input[name=read]").fill("21");
  await page.waitForFunction(() => /one mix only, with other reads/.test(document.querySelector("#answer .answer").textContent));
  assert.match(await page.locator("#answer .warning code").first().textContent(), /^stablebench run mix --insert 5 --read 21 .*--indexes 2 /);
});

onComplete("with both files, an exact measurement answers, else an estimate", () => both, async (page) => {
  await page.getByLabel("From").first().selectOption({ index: 1 });
  assert.equal(await value(page, "indexes"), "2");
  assert.match(await page.locator("#answer .answer").textContent(), new RegExp(`${CHEAPEST_MIX} instructions; .*This was measured\\.`));
  await page.locator("#answer input[name=indexes]").fill("0");
  await page.waitForFunction(() => /This is estimated/.test(document.querySelector("#answer .answer").textContent));
});
