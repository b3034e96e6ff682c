/** Sizes, places and kinds of work in the names of cases. Other names are shown unchanged. */

/** An integer that may contain spaces. @param {string} text */
function number(text) {
  return Number(text.replace(/[\s\u202f]/g, ""));
}

/** `middle 1 000` of the section insert. @param {string} name */
export function insert(name) {
  const match = /^(middle|end|random) ([\d ]+)$/.exec(name);
  return match && { place: match[1], n: number(match[2]) };
}

/** `100 of 1 000 rows: insert middle` of the section curve. @param {string} name */
export function curve(name) {
  const match = /^([\d ]+) of ([\d ]+) rows: (.+)$/.exec(name);
  return match && { n: number(match[1]), rows: number(match[2]), work: match[3] };
}

/** `10 bytes, 100 rows of 1 000 000: insert middle` of the section payload. @param {string} name */
export function payload(name) {
  const match = /^([\d ]+) bytes, ([\d ]+) rows of ([\d ]+): (.+)$/.exec(name);
  return match && { bytes: number(match[1]), n: number(match[2]), rows: number(match[3]), work: match[4] };
}

/**
 * New rows in one message, in a case of any section of the suite users.
 * @param {string} section
 * @param {string} name
 * @returns {{place: string, n: number}?}
 */
export function newRows(section, name) {
  if (section === "insert") return insert(name);
  const sized = section === "curve" ? curve(name) : section === "payload" ? payload(name) : null;
  if (sized) {
    const found = place(sized.work);
    return found && { place: found, n: sized.n };
  }
  // `insert 1 000 uniform, warm` of work and settings, `uniform: insert 100` of locality, `10: insert end` of base.
  const match = /^insert (?<n>[\d ]+) (?<at>middle|end|uniform), warm$/.exec(name)
    ?? /^(?<at>middle|end|uniform): insert (?<n>[\d ]+)$/.exec(name) ?? /^(?<n>[\d ]+): insert (?<at>middle|end|uniform)$/.exec(name);
  return match && { place: place(`insert ${match.groups.at}`), n: number(match.groups.n) };
}

/** `10 000 rows by 100, one message` of the section transactions. @param {string} name */
export function transaction(name) {
  const match = /^([\d ]+) rows by ([\d ]+), (.+)$/.exec(name);
  return match && { n: number(match[1]), size: number(match[2]), messages: match[3] };
}

/** `insert 1 000, warm` of the suite vfs. @param {string} name */
export function sized(name) {
  const match = /^([A-Za-z ]+?) ([\d ]+), (warm|cold)$/.exec(name);
  return match && { work: match[1], n: number(match[2]), state: match[3] };
}

/** The place where `insert middle` or `insert uniform` inserts rows. @param {string} work */
function place(work) {
  const match = /^insert (middle|end|uniform)$/.exec(work);
  return match && (match[1] === "uniform" ? "random" : match[1]);
}

/**
 * Equal operations of one message, in a case of the suite users.
 * @param {string} section
 * @param {string} name
 * @returns {{operation: string, place: string, n: number}?}
 */
export function operation(section, name) {
  const inserted = newRows(section, name);
  if (inserted) return { operation: "insert", ...inserted };
  const ranges = /^(?<n>[\d ]+) ranges? of 100 uniform, warm$/.exec(name);
  if (ranges) return work("scan", ranges.groups.n, "uniform");
  const sized = section === "curve" ? curve(name) : section === "payload" ? payload(name) : null;
  if (sized) {
    const match = /^(read|update|delete) (uniform|middle)$/.exec(sized.work);
    return match && work(match[1], String(sized.n), match[2]);
  }
  // `read 1 000 uniform, warm` of work, `uniform: read 100` of locality, `10: read middle` of base.
  const match = /^(?<of>read|update|delete) (?<n>[\d ]+) (?<at>uniform|middle), warm$/.exec(name)
    ?? /^(?<at>uniform|middle): (?<of>read|update|delete) (?<n>[\d ]+)$/.exec(name) ?? /^(?<n>[\d ]+): (?<of>read|update|delete) (?<at>uniform|middle)$/.exec(name);
  return match && work(match.groups.of, match.groups.n, match.groups.at);
}

function work(operation, n, at) {
  return { operation, place: at === "uniform" ? "random" : at, n: number(n) };
}

/** `5 inserts, 20 reads, at random` of the suite mix. @param {string} name @returns {Object?} operations and their place */
export function mix(name) {
  const words = name.split(", ");
  const place = { "in the middle": "middle", "at the end": "end", "at random": "random" }[words.pop()];
  const found = words.map((word) => /^([\d ]+) (insert|read|update|delete|scan)s?$/.exec(word));
  return place && found.length && found.every(Boolean) ? { ...Object.fromEntries(found.map((match) => [match[2], number(match[1])])), place } : null;
}
