/**
 * Figures between measured points: straight lines between neighbours, both axes logarithmic.
 * Beyond the first and the last point there is no figure.
 *
 * @typedef {{x: number, y: number}} Point
 */

/**
 * @param {Point[]} points ascending in x
 * @param {number} x
 * @returns {{y: number, from: number, to: number}?} `from` equals `to` at a measured point
 */
export function interpolate(points, x) {
  const exact = points.find((point) => point.x === x);
  if (exact) return { y: exact.y, from: x, to: x };
  const after = points.findIndex((point) => point.x > x);
  if (after < 1 || !(x > 0)) return null;
  const [low, high] = [points[after - 1], points[after]];
  return { y: between(low, high, x), from: low.x, to: high.x };
}

function between(low, high, x) {
  const logarithmic = low.x > 0;
  const share = logarithmic
    ? Math.log(x / low.x) / Math.log(high.x / low.x)
    : (x - low.x) / (high.x - low.x);
  if (logarithmic && low.y > 0 && high.y > 0) return low.y * (high.y / low.y) ** share;
  return low.y + (high.y - low.y) * share;
}

/**
 * How far off interpolation is where that can be known: each inner point is left out in turn
 * and taken from its neighbours. They are further apart then, so this errs upwards.
 * @param {Point[]} points ascending in x
 * @returns {{worst: number, typical: number, points: number}?} shares of the measured values
 */
export function leaveOneOut(points) {
  const errors = points.slice(1, -1).map((point, at) => {
    const guess = between(points[at], points[at + 2], point.x);
    return Math.abs(guess - point.y) / Math.abs(point.y || 1);
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
