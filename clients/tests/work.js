/** A message that writes and one that reads, as values for an actor and as text for programs. */

import { embedded, numbers } from "./support.js";

export const ADD = { method: "add_users_sqlite", candid: "(0, 10, 1000)", values: [0n, 10n, 1000n] };

export const LOOK = {
  method: "look",
  candid: "(record { engine = variant { sqlite }; operation = variant { read = variant { step = record { first = 0; step = 10; rows = 100 } } }; each = false })",
  values: [{ engine: { sqlite: null }, operation: { read: { step: { first: 0n, step: 10n, rows: 100n } } }, transaction: [], each: false }],
  // As encoded by Rust. The agent orders the types differently; decoding then leaves a slightly different
  // heap, which changes the work's instructions.
  bytes: Uint8Array.from(
    Buffer.from(
      "4449444c086c0481fcb198047edec389dc0401a78882820a02c28f91e40f076e786b08cf898dd3047fd6969ddd0403fdfabbe20478ab80e3d60603898c96b80803b986f5ee09038b96b6870a03bdcbfea00e066b02deb8ccbd0404ccceefe20405" +
        "6d786c03b0f0f5047899eabbdd0478ccceefe204786c02eaca8a9e040399eabbdd04786b0599dbbdac027ffa92e1a7037fccd19498057fdac3cffe087fc0e5a1d20b7f010000000101000000000000000064000000000000000a0000000000000002",
      "hex",
    ),
  ),
};

/**
 * The cost of both for a new canister on the embedded replica, without a server.
 * @param {import("./support.js").Folder} folder
 */
export function expected(folder) {
  const state = folder.file("embedded.state");
  return {
    add: numbers(embedded(ADD.method, ADD.candid, ["--save", state])),
    look: numbers(embedded(LOOK.method, LOOK.candid, ["--state", state])),
  };
}
