/** Reports made by the tool, opened in Chromium from their files. */

import { execFileSync } from "node:child_process";
import { accessSync, constants, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium } from "playwright-core";
import { fileOf } from "../unit/results.js";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const SUITES = ["users", "db-bench", "keys", "sysbench", "cuckoo", "vfs"];
const BROWSERS = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

export const COMMITTED = SUITES.map((suite) => fileURLToPath(fileOf(suite)));

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
export class Reports {
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

export function launch() {
  return chromium.launch({
    executablePath: browserPath(),
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
}

/**
 * Opens a report. Its errors, warnings and network requests are collected.
 * @param {import("playwright-core").Browser} browser
 * @param {string} address
 * @param {Object} [options] of the browser's context
 */
export async function open(browser, address, options = {}) {
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
