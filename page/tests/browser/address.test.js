import assert from "node:assert/strict";
import { before } from "node:test";
import { NEW, OLD, USERS } from "../results.js";
import { committed, onComplete, pathOf, reports } from "./support.js";

let users;
let mix;
let both;

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
  assert.match(await page.locator("#answer .answer").textContent(), /^SQLite WAL cache_size=1000 is cheapest: 14\u202f639\u202f523 instructions; .*This was measured\./);
  assert.equal(await page.locator("#answer .advised code").textContent(), "PRAGMA journal_mode = WAL;\nPRAGMA cache_size = 1000;");
  assert.match(await page.locator("#bill .answer").textContent(), /^SQLite WAL cache_size=1000 costs least/);
  await page.locator("#answer input[name=read]").fill("21");
  await page.waitForFunction(() => /one mix only, with other reads/.test(document.querySelector("#answer .answer").textContent));
  assert.match(await page.locator("#answer .warning code").first().textContent(), /^stablebench run mix --insert 5 --read 21 .*--indexes 2 /);
});

onComplete("with both files, an exact measurement answers, else an estimate", () => both, async (page) => {
  await page.getByLabel("From").first().selectOption({ index: 1 });
  assert.equal(await value(page, "indexes"), "2");
  assert.match(await page.locator("#answer .answer").textContent(), /14\u202f639\u202f523 instructions; .*This was measured\./);
  await page.locator("#answer input[name=indexes]").fill("0");
  await page.waitForFunction(() => /This is estimated/.test(document.querySelector("#answer .answer").textContent));
});
