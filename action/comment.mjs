/**
 * The text of a comment, and the page with all cases, from a comparison. docs/ci.md shows an example.
 *
 * Names come from the pull request, so they can contain anything. They never become Markdown or HTML.
 *
 * @typedef {Object} Row a case, or a size of one, that both runs measured
 * @property {string} name
 * @property {string} unit empty for instructions
 * @property {number | undefined} base
 * @property {number} now
 * @property {number | undefined} ratio more than 1 is more expensive
 *
 * @typedef {Object} Comparison
 * @property {string} tool the version of stablebench
 * @property {string} rules
 * @property {Row[]} rows
 * @property {Row[]} added without a base
 * @property {{name: string, reason: string}[]} missing in the new run alone
 * @property {{name: string, ratio: number | undefined, ceiling: number, average: boolean}[]} exceeded
 * @property {string[]} notes
 *
 * @typedef {Object} Context
 * @property {string} marker the first line, by which the comment is found again
 * @property {string} command
 * @property {string} base
 * @property {string | undefined} none the reason why there is no base
 * @property {string | undefined} error the output of a base that failed
 * @property {string} head
 * @property {number} noise percent
 * @property {string | undefined} run the address of the workflow run
 * @property {string | undefined} report the label of the link to the report
 */

/** GitHub refuses comments of more than 65 536 characters. Bytes are never fewer. */
export const LIMIT = 65_000;
/** Rows and names that are shown at once. */
const SHOWN = 10;
const LONGEST_NAME = 120;
const LONGEST_NOTE = 400;
const LONGEST_ERROR = 6_000;

const bytes = (text) => Buffer.byteLength(text);

/** Without control characters and invisible ones, such as those that reverse the direction of text. */
const visible = (text) => text.replace(/\s+/gu, " ").replace(/[\p{Cc}\p{Cf}\p{Cs}]/gu, "\u{fffd}");

const shortened = (text, length) => {
  const letters = [...text];
  return letters.length > length ? `${letters.slice(0, length - 1).join("")}…` : text;
};

const html = (text) => text.replace(/[&<>"']/g, (letter) => `&#${letter.charCodeAt(0)};`);

/** Entities cannot be part of Markdown's syntax. An underscore inside of a word is none, and only `://` makes a link. */
const entities = (text) =>
  text
    .replace(/[^\p{L}\p{N} ,;:.%…–/()=_-]|_(?![\p{L}\p{N}])|(?<![\p{L}\p{N}])_/gu, (letter) => `&#${letter.codePointAt(0)};`)
    .replaceAll("://", ":&#47;/");

/** Text that is not code. */
const prose = (text) => entities(shortened(visible(text), LONGEST_NOTE));

/** A name as code, in a table or outside of one. */
export function code(name) {
  const text = shortened(visible(name), LONGEST_NAME);
  return /^[\w.,:/=()+-]+( [\w.,:/=()+-]+)*$/.test(text) ? `\`${text}\`` : `<code>${entities(text)}</code>`;
}

/** Several lines as they are. */
export function block(text) {
  const lines = text.replaceAll("\r", "").replace(/[^\P{Cc}\n\t]|\p{Cf}|\p{Cs}/gu, "\u{fffd}").trim();
  const letters = [...lines];
  // The end of a long output has the reason.
  const kept = letters.length > LONGEST_ERROR ? `…${letters.slice(-LONGEST_ERROR).join("")}` : lines;
  const longest = Math.max(2, ...[...kept.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}text\n${kept}\n${fence}`;
}

export const grouped = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, " ");

const counted = (number, one, many = `${one}s`) => `${grouped(number)} ${number === 1 ? one : many}`;

function change({ base, ratio }) {
  if (base === undefined) return "new";
  if (!Number.isFinite(ratio)) return "from 0";
  const percent = (ratio - 1) * 100;
  return percent === 0 ? "0 %" : `${percent < 0 ? "-" : "+"}${Math.abs(percent).toFixed(2)} %`;
}

const label = ({ name, unit }) => code(name) + (unit && `, ${unit}`);

/** Returns `true` if the row changed by the threshold or more. Ratios are rounded. */
const beyond = (noise) => ({ base, now, ratio }) => base !== now && Math.abs(ratio - 1) * 100 >= noise - 1e-9;

const worstFirst = (one, other) => (one.ratio === other.ratio ? 0 : other.ratio > one.ratio ? 1 : -1);

/** Cases that became more expensive or cheaper. One with both is more expensive. */
function verdict({ rows, added }, noise) {
  const changed = rows.filter(beyond(noise)).sort(worstFirst);
  const names = (of) => new Set(of.map((row) => row.name));
  const worse = names(changed.filter((row) => row.ratio > 1));
  const better = names(changed.filter((row) => row.ratio < 1 && !worse.has(row.name)));
  return { changed, worse: worse.size, better: better.size, all: names([...rows, ...added]).size };
}

function headline(comparison, { worse, better, all }, noise) {
  if (all === 0) return "nothing was measured";
  if (comparison.rows.length === 0) return `${counted(all, "case")} measured, nothing to compare with`;
  const of = `of ${counted(all, "case")}`;
  if (worse > 0) return `${grouped(worse)} ${of} became more expensive${better > 0 ? `, ${grouped(better)} cheaper` : ""}`;
  if (better > 0) return `${grouped(better)} ${of} became cheaper`;
  return comparison.rows.every((row) => row.base === row.now) ? "no change" : `no change of ${noise} % or more`;
}

const HEAD = "| case | base | new | change |\n|---|--:|--:|--:|\n";
const line = (row) => `| ${label(row)} | ${row.base === undefined ? "–" : grouped(row.base)} | ${grouped(row.now)} | ${change(row)} |\n`;
const table = (rows) => HEAD + rows.map(line).join("");

/** The first items, and the number of the others. */
function list(items, show) {
  const lines = items.slice(0, SHOWN).map((item) => `- ${show(item)}\n`);
  if (items.length > SHOWN) lines.push(`- and ${grouped(items.length - SHOWN)} more\n`);
  return lines.join("");
}

const factor = (ratio) => (Number.isFinite(ratio) ? `${ratio.toFixed(3)}×` : "from 0");

function exceeded({ name, ratio, ceiling, average }) {
  const what = average ? `the average of ${name === "" ? "all benchmarks" : code(name)}` : code(name);
  return `${what}: ${factor(ratio)}, the ceiling is ${ceiling}×`;
}

function footer(context, comparison) {
  const { run, report, base, head, command } = context;
  const parts = [];
  if (comparison) parts.push(`stablebench ${prose(comparison.tool)}, rules ${prose(comparison.rules)}`);
  parts.push(code(`stablebench ${command}`), `head ${head}`, `base: ${prose(base)}`);
  if (run) parts.push(`[run](${run})`);
  if (run && report) parts.push(`[${report}](${run}#artifacts)`);
  return `${parts.join(" · ")}\n`;
}

/**
 * The comment about a comparison.
 * @param {Comparison} comparison
 * @param {Context} context
 * @returns {string}
 */
export function comment(comparison, context) {
  const found = verdict(comparison, context.noise);
  const { missing, added, notes } = comparison;
  const compared = comparison.rows.length > 0;
  const [worst] = found.changed;
  const parts = [`${context.marker}\n### stablebench: ${headline(comparison, found, context.noise)}\n`];
  if (worst?.ratio > 1) parts.push(`The worst: ${label(worst)}, ${change(worst)}.\n`);
  if (comparison.exceeded.length > 0) parts.push(`**Above the ceiling:**\n\n${list(comparison.exceeded, exceeded)}`);
  if (missing.length > 0) {
    const reason = ({ reason }) => (reason ? `: ${prose(reason)}` : "");
    parts.push(`**Missing or failed:**\n\n${list(missing, (item) => code(item.name) + reason(item))}`);
  }
  const first = (compared ? found.changed : added).slice(0, SHOWN);
  if (first.length > 0) parts.push(table(first));
  if (compared && added.length > 0) parts.push(`New, without a base:\n\n${list(added, (row) => `${label(row)}: ${grouped(row.now)}`)}`);
  if (context.none) parts.push(`There is no base: ${prose(context.none)}.\n`);
  else if (!compared && found.all > 0) parts.push("The base has none of these cases.\n");
  if (context.error) parts.push(`${block(context.error)}\n`);
  if (notes.length > 0) parts.push(list(notes, (note) => `note: ${prose(note)}`));
  const rest = [...[...comparison.rows].sort(worstFirst), ...added.slice(SHOWN)].filter((row) => !first.includes(row));
  const end = footer(context, comparison);
  if (rest.length > 0) parts.push(details(first.length > 0 ? "All other cases" : "All cases", rest, LIMIT - bytes(parts.join("\n")) - bytes(end), context.report));
  return [...parts, end].join("\n");
}

/** A folded table that is not longer than `room` bytes. */
function details(title, rows, room, report) {
  const begin = `<details><summary>${title}</summary>\n\n${HEAD}`;
  const cut = (left) => `\n${grouped(left)} more do not fit here${report ? `; the ${report} lists all` : ""}.\n`;
  const end = "\n</details>\n";
  let left = room - bytes(begin) - bytes(cut(rows.length)) - bytes(end) - 10;
  const lines = [];
  for (const row of rows) {
    const next = line(row);
    left -= bytes(next);
    if (left < 0) break;
    lines.push(next);
  }
  return begin + lines.join("") + (lines.length < rows.length ? cut(rows.length - lines.length) : "") + end;
}

/**
 * The comment about a run that failed.
 * @param {string} title
 * @param {string} error
 * @param {Context} context
 * @returns {string}
 */
export function failure(title, error, context) {
  return [`${context.marker}\n### stablebench: ${title}\n`, `${block(error)}\n`, footer(context)].join("\n");
}

/**
 * A page with all cases, for runs of which `stablebench report` has none.
 * @param {Comparison} comparison
 * @param {Context} context
 * @returns {string}
 */
export function page(comparison, context) {
  const rows = [...[...comparison.rows].sort(worstFirst), ...comparison.added];
  const cells = (row) =>
    [html(visible(row.name) + (row.unit && `, ${row.unit}`)), row.base === undefined ? "–" : grouped(row.base), grouped(row.now), change(row)];
  const body = rows.map((row) => `<tr><td>${cells(row).join("</td><td>")}</td></tr>\n`).join("");
  const title = headline(comparison, verdict(comparison, context.noise), context.noise);
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>stablebench</title>
<style>
body { font: 15px system-ui, sans-serif; margin: 2em; color-scheme: light dark }
td, th { padding: 0.2em 1em; text-align: right; font-variant-numeric: tabular-nums }
td:first-child, th:first-child { text-align: left; overflow-wrap: anywhere }
</style>
<h1>${html(title)}</h1>
<p>stablebench ${html(comparison.tool)}, rules ${html(comparison.rules)}. <code>stablebench ${html(visible(context.command))}</code>.
Head ${html(context.head)}. Base: ${html(visible(context.base))}.</p>
<table>
<tr><th>case</th><th>base</th><th>new</th><th>change</th></tr>
${body}</table>
</html>
`;
}
