/**
 * Interpolation between measured points, with the range in which the true value is expected. There is no
 * figure beyond the first and the last point.
 *
 * A message has a fixed cost and a cost per row, and a row has a fixed cost and a cost per byte: these lie on a
 * straight line. The depth of a tree grows with the logarithm of its rows: both axes are logarithmic. The range
 * is from one of these lines to the other, and wider in two cases:
 *
 *     step   If the value grows faster than the size, or faster than before and after, something begins between
 *            the points (SQLite goes through its whole cache): the value may be that of either point.
 *     miss   If a surrounding point is outside of the range that its own neighbours give, the range is extended
 *            by as much.
 *
 * @typedef {{x: number, y: number}} Point
 * @typedef {"linear"|"logarithmic"|"steps"} Shape `steps`: pages, which stay as they are until something begins
 * @typedef {{y: number, low: number, high: number}} Span a value, and its range
 */

/** A step is steeper than the lines before and after it by this factor. */
const STEEPER = 1.5;
/** A value that grows faster than this power of the size has a step. */
const FASTEST = { linear: 1.05, logarithmic: 1.05, steps: 0.7 };

/**
 * @param {Point[]} points ascending in x
 * @param {number} x
 * @param {Shape} shape
 * @returns {(Span & {from: number, to: number})?} `from` equals `to` at a measured point
 */
export function interpolate(points, x, shape) {
  const exact = points.find((point) => point.x === x);
  if (exact) return { ...span(exact.y), from: x, to: x };
  const after = points.findIndex((point) => point.x > x);
  if (after < 1) return null;
  const found = between(points, after, x, shape);
  const misses = [after - 1, after].filter((at) => at > 0 && at < points.length - 1).map((at) => miss(points, at, shape));
  return {
    y: found.y,
    low: found.low * Math.min(1, ...misses.map((of) => of.low)),
    high: found.high * Math.max(1, ...misses.map((of) => of.high)),
    from: points[after - 1].x,
    to: points[after].x,
  };
}

/** A point compared with the range that its neighbours give, as factors. */
function miss(points, at, shape) {
  const { x, y } = points[at];
  const { low, high } = between(points.filter((of) => of.x !== x), at, x, shape);
  return { low: low > 0 && y > 0 ? Math.min(1, y / low) : 1, high: high > 0 ? Math.max(1, y / high) : 1 };
}

/** A value that is known exactly. @param {number} y @returns {Span} */
export function span(y) {
  return { y, low: y, high: y };
}

/** A value with a range that contains it and all others. @param {number} y @param {...number} others @returns {Span} */
export function spanning(y, ...others) {
  return { y, low: Math.min(y, ...others), high: Math.max(y, ...others) };
}

/** The value at x between the points before and at `after`. */
function between(points, after, x, shape) {
  const [low, high] = [points[after - 1], points[after]];
  const straight = low.y + slope(low, high) * (x - low.x);
  // Zero has no logarithm.
  const logarithms = low.x > 0 && low.y > 0 && high.y > 0;
  const share = Math.log(x / low.x) / Math.log(high.x / low.x);
  const curved = logarithms ? low.y * (high.y / low.y) ** share : straight;
  const growth = logarithms ? Math.log(high.y / low.y) / Math.log(high.x / low.x) : high.y > low.y ? Infinity : 0;
  if (growth > FASTEST[shape] || (shape === "linear" && steep(points, after))) {
    const nearest = share < 0.5 ? low.y : high.y;
    return spanning(shape !== "steps" ? straight : growth > 1 ? nearest : curved, low.y, high.y);
  }
  return shape === "logarithmic" ? spanning(curved, straight) : spanning(straight, curved);
}

function slope(low, high) {
  return (high.y - low.y) / (high.x - low.x);
}

/** Returns `true` if the line to a point is steeper than those before and after it. */
function steep(points, after) {
  const lines = [after - 1, after + 1].filter((at) => at > 0 && at < points.length).map((at) => slope(points[at - 1], points[at]));
  return lines.length > 0 && slope(points[after - 1], points[after]) > STEEPER * Math.max(0, ...lines);
}
