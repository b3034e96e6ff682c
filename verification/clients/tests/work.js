/** Messages to the canister, as values for an actor and as text for programs. */

import { embedded, numbers } from "./support.js";

export const ADD = { method: "add_users_sqlite", candid: "(0, 10, 1000)", values: [0n, 10n, 1000n] };

export const READ = { method: "read_users", candid: '("sqlite", 0, 10, 100)', values: ["sqlite", 0n, 10n, 100n] };

/** Measures no work, because none is staged. */
export const EMPTY = { method: "run_query", candid: "()", values: [] };

/**
 * The cost of the first, and of each of the others after it, for a new canister on the embedded replica, without a
 * server.
 * @param {import("./support.js").Folder} folder
 */
export function expected(folder) {
  const state = folder.file("embedded.state");
  return {
    add: numbers(embedded(ADD.method, ADD.candid, ["--save", state])),
    read: numbers(embedded(READ.method, READ.candid, ["--state", state])),
    empty: numbers(embedded(EMPTY.method, EMPTY.candid, ["--state", state])),
  };
}
