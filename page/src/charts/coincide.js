/**
 * Lines that coincide: a panel draws them once, and the legend has all their names.
 *
 * @typedef {import("./series.js").Series} Series
 * @typedef {import("./lines.js").LinePoint} LinePoint
 */

/** Lines that are nowhere further apart than this, in pixels, look like one. */
const APART = 1.5;

/**
 * @param {Series[]} series
 * @param {LinePoint[]} points
 * @param {number} scale pixels of a factor of e
 * @returns {{points: LinePoint[], entries: Series[]}} the points to draw, and the legend: lines that coincide in all
 *   panels have one entry, and those that coincide in some have one more for each of these panels
 */
export function together(series, points, scale) {
  const own = points.filter((point) => !point.ghost);
  const used = series.filter((of) => own.some((point) => point.key === of.key));
  const panels = [...new Set(own.map((point) => point.panel))];
  const everywhere = groups(used, own, scale);
  const firsts = everywhere.map(([first]) => first);
  const entries = everywhere.map((group) => ({ ...group[0], heading: names(group) }));
  const drawn = new Map();
  for (const panel of panels) {
    const here = own.filter((point) => point.panel === panel);
    const found = groups(firsts.filter((of) => here.some((point) => point.key === of.key)), here, scale);
    for (const group of found) {
      const all = group.flatMap((of) => everywhere.find(([first]) => first === of));
      drawn.set(`${panel}\n${group[0].key}`, all);
      if (group.length > 1) entries.push({ ...group[0], heading: `${panel}: ${names(all)}` });
    }
  }
  const kept = points.flatMap((point) => {
    const all = drawn.get(`${point.panel}\n${point.key}`);
    if (point.ghost || !all) return point.ghost ? [point] : [];
    const others = all.slice(1).map((of) => of.heading);
    return [others.length ? { ...point, title: `${point.title}; the same line: ${others.join(", ")}` } : point];
  });
  return { points: kept, entries };
}

/** Series in groups whose lines coincide with that of the first. */
function groups(series, points, scale) {
  const found = [];
  for (const of of series) {
    const group = found.find(([first]) => coincide(points, first.key, of.key, scale));
    if (group) group.push(of);
    else found.push([of]);
  }
  return found;
}

function coincide(points, key, other, scale) {
  const at = (of) => new Map(points.filter((point) => point.key === of && point.y > 0).map((point) => [`${point.panel}\n${point.x}`, point.y]));
  const [one, two] = [at(key), at(other)];
  return one.size === two.size && [...one].every(([where, y]) => two.has(where) && Math.abs(Math.log(y / two.get(where))) * scale <= APART);
}

/** Headings without repeating a common first word: `SQLite DELETE, PERSIST`. @param {Series[]} group */
function names(group) {
  const [first, ...rest] = group.map((of) => of.heading);
  const word = `${first.split(" ")[0]} `;
  return [first, ...rest.map((heading) => (heading.startsWith(word) ? heading.slice(word.length) : heading))].join(", ");
}
