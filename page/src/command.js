/** The command that makes a chart or a table once more. */

/** The option's value that measures a section, where a suite can be told sections. */
const SECTIONS = {
  users: (section) => section,
  vfs: (section) => (section === "as published" || section === "equal" ? "published" : section),
};

/**
 * The command of a run, for one section alone where it names its sections.
 * @param {any} results
 * @param {string} section
 */
export function narrowed(results, section) {
  const command = String(results.command);
  const option = Object.hasOwn(SECTIONS, results.suite) ? SECTIONS[results.suite](section) : null;
  if (!option || !/^[a-z]+$/.test(option)) return command;
  return command.replace(/ --sections [a-z,]+(?= |$)/, ` --sections ${option}`);
}
