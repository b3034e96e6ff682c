/** Domains and ticks of logarithmic axes. */

/**
 * A domain around all values, a little wider than they are.
 * @param {number[]} values
 * @returns {[number, number]}
 */
export function domain(values) {
  const positive = values.filter((value) => value > 0 && Number.isFinite(value));
  if (!positive.length) return [1, 10];
  const [low, high] = [Math.min(...positive), Math.max(...positive)];
  const room = Math.max(1.15, (high / low) ** 0.05);
  return [low / room, high * room];
}

/** Round numbers in a domain: powers of ten, with 2 and 5 where there are few. @param {[number, number]} of */
export function ticks([low, high], most = 8) {
  for (const steps of [[1, 1.5, 2, 3, 4, 5, 6, 8], [1, 2, 5], [1, 3], [1]]) {
    const found = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += 1) {
      for (const step of steps) {
        const value = step * 10 ** power;
        if (value >= low && value <= high) found.push(Number(value.toPrecision(6)));
      }
    }
    if (found.length <= most) return found;
  }
  const all = [];
  const apart = Math.ceil(Math.log10(high / low) / most);
  for (let power = Math.ceil(Math.log10(low)); power <= Math.log10(high); power += apart) all.push(10 ** power);
  return all;
}
