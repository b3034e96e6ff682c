/**
 * The memory of a canister that holds so many rows: heap and stable memory of the measured store
 * that is nearest in the length of rows, then in their number, in proportion to rows × bytes.
 */

const WASM_PAGE = 65_536;
const GIB = 2 ** 30;

/**
 * @param {import("../data.js").Report} report
 * @param {string} column
 * @param {{rows: number, payload: number}} at
 * @returns {{gib: number, rows: number, payload: number, exact: boolean}?} `rows` and `payload`
 *   are those of the measured store; nothing where no store of the column was measured
 */
export function memory(report, column, at) {
  const stores = report.results.stores.filter((store) => store.column === column && store.outcome.measured && store.rows * store.payload > 0);
  if (!stores.length) return null;
  const apart = (one, other) => Math.abs(Math.log(one / other));
  const [nearest] = stores.sort(
    (one, other) => apart(one.payload, at.payload) - apart(other.payload, at.payload) || apart(one.rows, at.rows) - apart(other.rows, at.rows),
  );
  const { rows, payload, outcome } = nearest;
  const bytes = (Number(outcome.measured.heap_pages) + Number(outcome.measured.stable_pages)) * WASM_PAGE;
  const share = (at.rows * at.payload) / (rows * payload);
  return { gib: (bytes * share) / GIB, rows, payload, exact: rows === at.rows && payload === at.payload };
}
