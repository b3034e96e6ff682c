/** One message that writes and one that reads: as values for an actor, as text for programs. */

import { embedded, numbers } from "./support.js";

export const ADD = { method: "add_users_sqlite", candid: "(0, 10, 1000)", values: [0n, 10n, 1000n] };

export const LOOK = {
  method: "look",
  candid: "(record { engine = variant { sqlite }; operation = variant { read = variant { step = record { first = 0; step = 10; rows = 100 } } }; each = false })",
  values: [{ engine: { sqlite: null }, operation: { read: { step: { first: 0n, step: 10n, rows: 100n } } }, transaction: [], each: false }],
};

/**
 * What both cost a fresh canister on the embedded replica, without a server.
 * @param {import("./support.js").Folder} folder
 */
export function expected(folder) {
  const state = folder.file("embedded.state");
  return {
    add: numbers(embedded(ADD.method, ADD.candid, ["--save", state])),
    look: numbers(embedded(LOOK.method, LOOK.candid, ["--state", state])),
  };
}
