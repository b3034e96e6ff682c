/** Reports made by the tool, opened in Chromium from their files: one browser and one folder for each file of tests. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { accessSync, constants, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium } from "playwright-core";
import { fileOf } from "../results.js";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const SUITES = ["users", "db-bench", "keys", "sysbench", "cuckoo", "vfs"];
const BROWSERS = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/** @param {string} name as of `fileOf` @returns {string} */
export const pathOf = (name) => fileURLToPath(fileOf(name));

export const COMMITTED = SUITES.map(pathOf);

function executable(paths, missing) {
  for (const path of paths.filter(Boolean)) {
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      // Try the next one.
    }
  }
  throw new Error(missing);
}

const browserPath = () =>
  executable([process.env.CHROMIUM, ...BROWSERS], "Chromium is missing; install it (apt-get install chromium) or name one in CHROMIUM");

const tool = () => {
  const built = join(process.env.CARGO_TARGET_DIR ?? join(ROOT, "target"), "release", "stablebench");
  return executable([process.env.STABLEBENCH ?? built], `there is no ${process.env.STABLEBENCH ?? built}; build it (cargo build --release) or name it in STABLEBENCH`);
};

/** A folder for reports, removed after the tests. */
class Reports {
  constructor() {
    this.folder = mkdtempSync(join(tmpdir(), "stablebench-page-"));
  }

  /** @param {string} name @param {string[]} files @param {string[]} more @returns {string} its address */
  make(name, files, more = []) {
    const path = join(this.folder, name);
    execFileSync(tool(), ["report", ...files, ...more, "--out", path], { stdio: ["ignore", "ignore", "inherit"] });
    return pathToFileURL(path).href;
  }

  /** @param {string} name @param {any} results @returns {string} the file's path */
  write(name, results) {
    const path = join(this.folder, name);
    writeFileSync(path, JSON.stringify(results));
    return path;
  }

  drop() {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** @param {string} name as of `fileOf` */
export function committed(name) {
  return JSON.parse(readFileSync(fileOf(name), "utf8"));
}

export const reports = new Reports();
/** @type {import("playwright-core").Browser} */
export let browser;

before(async () => {
  browser = await chromium.launch({
    executablePath: browserPath(),
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
});

after(async () => {
  await browser?.close();
  reports.drop();
});

/**
 * A test on a page, which must report no errors.
 * @param {string} name
 * @param {() => string} address
 * @param {(page: import("playwright-core").Page) => Promise<void>} run
 * @param {Object} [options] of the browser's context
 */
export function onPage(name, address, run, options) {
  test(name, async () => {
    const { page, complaints, close } = await open(address(), options);
    try {
      await run(page);
      assert.deepEqual(complaints, []);
    } finally {
      await close();
    }
  });
}

/** Texts and shapes have no missing values. @param {import("playwright-core").Page} page */
export async function complete(page) {
  assert.equal(await page.locator("text=/undefined|NaN|\\[object/").count(), 0);
  assert.equal(await page.locator("svg [d*=NaN], svg [transform*=NaN]").count(), 0);
}

/** A test on a page without errors and missing values. The parameters are those of `onPage`. */
export function onComplete(name, address, run, options) {
  onPage(name, address, async (page) => { await run(page); await complete(page); }, options);
}

/** Unfolds everything. @param {import("playwright-core").Page} page */
export const openAll = (page) => page.evaluate(() => { for (const details of document.querySelectorAll("details")) details.open = true; });

/**
 * Opens a report. Its errors, warnings and network requests are collected.
 * @param {string} address
 * @param {Object} [options] of the browser's context
 */
export async function open(address, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  const complaints = [];
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("request", (request) => /^(file|blob|data):/.test(request.url()) || complaints.push(`asked for ${request.url()}`));
  page.on("dialog", (dialog) => {
    complaints.push(`dialog ${dialog.message()}`);
    dialog.dismiss();
  });
  await page.addInitScript(() => {
    document.addEventListener("securitypolicyviolation", (event) => console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`));
  });
  await page.goto(address);
  await page.waitForSelector("#provenance");
  return { page, complaints, close: () => context.close() };
}
