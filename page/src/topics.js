/** What the results of a suite answer, in a few words: the names of the page's parts. Others have their suite's question. */
const TOPICS = {
  users: "What do rows cost?",
  vfs: "What does the file layer cost?",
  keys: "Which keys are cheap?",
  "db-bench": "Is a table without rowid cheaper?",
  sysbench: "What does each statement cost?",
  cuckoo: "How cheap can a read be?",
  builds: "What do compiler options save?",
  calls: "What do calls and timers cost?",
  collections: "Motoko's maps or Rust's?",
  history: "What does history cost?",
  mix: "What did my mix cost?",
  sql: "What does my SQL cost?",
};

/** @param {string} suite @param {string?} [question] of the suite */
export function topic(suite, question) {
  return Object.hasOwn(TOPICS, suite) ? TOPICS[suite] : question ?? suite;
}
