/**
 * Interpolation between measured points, on the straight line between the neighbours. There is no figure
 * beyond the first and the last point.
 *
 * A message has a fixed cost and a cost per row, and a row has a fixed cost and a cost per byte: these axes are
 * linear. The depth of a tree grows with the logarithm of its rows: there both axes are logarithmic.
 *
 * @typedef {{x: number, y: number}} Point
 * @typedef {"linear"|"logarithmic"} Axes
 */

/**
 * @param {Point[]} points ascending in x
 * @param {number} x
 * @param {Axes} axes
 * @returns {{y: number, from: number, to: number}?} `from` equals `to` at a measured point
 */
export function interpolate(points, x, axes) {
  const exact = points.find((point) => point.x === x);
  if (exact) return { y: exact.y, from: x, to: x };
  const after = points.findIndex((point) => point.x > x);
  if (after < 1) return null;
  const [low, high] = [points[after - 1], points[after]];
  return { y: between(low, high, x, axes), from: low.x, to: high.x };
}

function between(low, high, x, axes) {
  // Zero has no logarithm.
  if (axes === "logarithmic" && low.x > 0 && low.y > 0 && high.y > 0) {
    return low.y * (high.y / low.y) ** (Math.log(x / low.x) / Math.log(high.x / low.x));
  }
  return low.y + ((high.y - low.y) * (x - low.x)) / (high.x - low.x);
}

/**
 * The error of interpolation: each inner point is left out in turn and estimated from its neighbours. They are
 * further apart than in use, so this overestimates the error.
 * @param {Point[]} points ascending in x
 * @param {Axes} axes
 * @param {number[]} [at] only points with these x
 * @returns {{worst: number, typical: number, points: number}?} shares of the measured values;
 *   `null` if none of the points is an inner one
 */
export function leaveOneOut(points, axes, at) {
  const errors = points.slice(1, -1).flatMap((point, before) => {
    if (at && !at.includes(point.x)) return [];
    const guess = between(points[before], points[before + 2], point.x, axes);
    return [Math.abs(guess - point.y) / Math.abs(point.y || 1)];
  });
  if (errors.length === 0) return null;
  errors.sort((one, other) => one - other);
  const middle = errors.length >> 1;
  const typical = errors.length % 2 ? errors[middle] : (errors[middle - 1] + errors[middle]) / 2;
  return { worst: errors[errors.length - 1], typical, points: errors.length };
}

/** The first and the last measured point. @param {Point[]} points @returns {[number, number]?} */
export function range(points) {
  return points.length ? [points[0].x, points[points.length - 1].x] : null;
}
