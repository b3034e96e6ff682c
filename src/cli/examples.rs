//! What `--help` ends with. Every line of these that begins with `stablebench` can be typed:
//! a test parses them.

/// Of the tool.
pub const TOOL: &str = "\
Examples:
  The users suite, on 1 000 000 rows:
    stablebench
  Two engines, quickly, as Markdown:
    stablebench --rows 10000 --engines btree,sqlite --journal-modes wal --format markdown
  Every suite, each into a file of its own:
    stablebench run all
  A page to look at in a browser:
    stablebench report results.json -o report.html";

/// Of `canbench`.
pub const CANBENCH: &str = "\
Examples:
  All benchmarks of the project in this folder:
    stablebench canbench
  Those with insert in their names, as they were counted before August 2026:
    stablebench canbench insert --rules 2025-10
  What the rules of August 2026 change for the project:
    stablebench canbench --rules 2025-10,2026-08 --hide-results
  On a pull request: compare with the results of the main branch, as Markdown, with a gate:
    stablebench canbench --compare main.yml --format markdown --fail-on-regression";

/// Of `run`.
pub const RUN: &str = "\
Examples:
  All sections of the users suite, each operation by itself too:
    stablebench run users --sections all --per-operation
  What would be measured:
    stablebench run keys --list
  Go on with a run that was interrupted:
    stablebench run sysbench --resume
  In a canister that is deployed on a local network; --yes and --replica ic for the mainnet:
    stablebench run users --rows 10000 --engines btree,sqlite --journal-modes wal \
--replica http://127.0.0.1:4943 \
--canister rrkah-fqaaa-aaaaa-aaaaq-cai --identity key.pem";

/// Of `run users`.
pub const USERS: &str = "\
Examples:
  100 rows a message into a million, in all journal modes:
    stablebench run users --batches 100
  How cost grows with the rows that are there:
    stablebench run users --sections curve --curve-rows 1000,10000,100000
  SQLite's page sizes with two cache sizes, every combination:
    stablebench run users --sections settings --engines sqlite --journal-modes persist \
--page-sizes 4096,16384 --cache-sizes 100,2000 --product
  The published figures beside ours:
    stablebench run users --as-published";

/// Of `run db-bench`.
pub const DB_BENCH: &str = "\
Examples:
  100 000 keys and values of 100 bytes:
    stablebench run db-bench
  A tenth of them:
    stablebench run db-bench --num 10000";

/// Of `run keys`.
pub const KEYS: &str = "\
Examples:
  Integers, ULIDs and UUIDs as keys of a link table:
    stablebench run keys
  The published size:
    stablebench run keys --rows 100000";

/// Of `run sysbench`.
pub const SYSBENCH: &str = "\
Examples:
  What WAL costs against PERSIST, with a ceiling as a gate (exit code 1):
    stablebench run sysbench --base sqlite/persist --other sqlite/wal --max-ratio 6
  Two other sides at once:
    stablebench run sysbench --other sqlite/delete --other sqlite-vfs
  SQLite against DoltLite, as published, with the published ceilings as a gate:
    stablebench run sysbench --other doltlite --max-ratio 6 --max-average 5";

/// Of `run cuckoo`.
pub const CUCKOO: &str = "\
Examples:
  A hash table beside the map and SQLite:
    stablebench run cuckoo
  What would be measured:
    stablebench run cuckoo --list";

/// Of `run vfs`.
pub const VFS: &str = "\
Examples:
  What the file layer below SQLite costs, in both libraries:
    stablebench run vfs
  As CSV:
    stablebench run vfs --format csv";

/// Of `run history`.
pub const HISTORY: &str = "\
Examples:
  Commits, branches, diffs and merges of a table in DoltLite, which needs a C compiler:
    stablebench run history
  A smaller table:
    stablebench run history --rows 10000 --changes 1,100";

/// Of `run all`.
pub const ALL: &str = "\
Examples:
  Every suite, into a folder:
    stablebench run all --out nightly
  Go on where that stopped:
    stablebench run all --out nightly --resume";

/// Of `list`.
pub const LIST: &str = "\
Examples:
  The suites, and what each asks:
    stablebench list
  What a suite would measure:
    stablebench run users --list";

/// Of `compare`.
pub const COMPARE: &str = "\
Examples:
  Every value of two runs:
    stablebench compare results.json new.json
  A gate: no case dearer by 5 %, no section by 2 % on average:
    stablebench compare results.json new.json --max-ratio 1.05 --max-average 1.02
  Two engines of one run:
    stablebench compare results.json --columns btree sqlite/memory
  The published figures:
    stablebench compare published:users published.json";

/// Of `report`.
pub const REPORT: &str = "\
Examples:
  A page to look at in a browser, of one run or of several:
    stablebench report results.json keys.json -o report.html
  One section as Markdown:
    stablebench report results.json --sections insert --format markdown
  Raw values for a spreadsheet:
    stablebench report results.json --format csv --out results.csv
  The published figures:
    stablebench report published:users";

/// Of `profile`.
pub const PROFILE: &str = "\
Examples:
  A flame graph of 1 000 rows into SQLite, among 100 000:
    stablebench profile users/insert/middle-1000/sqlite/delete --rows 100000 -o flame.svg
  What WAL does otherwise:
    stablebench profile users/insert/end-1/sqlite/persist --diff users/insert/end-1/sqlite/wal \
-o difference.svg
  The cases that there are:
    stablebench profile --list users/insert
  A call of a canister of your own:
    stablebench profile --wasm my_canister.wasm --call greet '(\"world\")' -o flame.svg";

/// Of `call`.
pub const CALL: &str = "\
Examples:
  1 000 rows, every 10th id from 0 on, into SQLite:
    stablebench call bench add_users_sqlite '(0, 10, 1000)' --save state
  Read some of them back:
    stablebench call bench read_users '(variant { sqlite }, 0, 5, 10)' --state state
  A canister of your own:
    stablebench call my_canister.wasm greet '(\"world\")'
  The same with an environment variable and stable memory that was saved elsewhere:
    stablebench call my_canister.wasm greet '(\"world\")' --env LANGUAGE=en \
--stable-memory memory.bin";

/// Of `serve`.
pub const SERVE: &str = "\
Examples:
  The bench canister, for dfx and icp:
    stablebench serve
  Both canisters, at a port that is free:
    stablebench serve bench bench_vfs --port 0
  A canister that is there again tomorrow:
    stablebench serve bench --state bench.canister
  A canister of your own, with an environment variable:
    stablebench serve my_canister.wasm --env LANGUAGE=en";

/// Of `build`.
pub const BUILD: &str = "\
Examples:
  The canister with StableBTreeMap and ic-rusqlite:
    stablebench build
  Only the hash that the IC will show for it:
    stablebench build --quiet | head -1
  The one with ic-sqlite-vfs:
    stablebench build bench_vfs";

/// Of `cache`.
pub const CACHE: &str = "\
Examples:
  What is kept, and how much it takes:
    stablebench cache
  Drop it:
    stablebench cache clear";

/// Of `completions`.
pub const COMPLETIONS: &str = "\
Examples:
  For bash:
    stablebench completions bash > ~/.local/share/bash-completion/completions/stablebench
  For fish:
    stablebench completions fish > ~/.config/fish/completions/stablebench.fish";

/// Of `man`.
pub const MAN: &str = "\
Examples:
  Read it:
    stablebench man | man -l -
  Pages of all commands:
    stablebench man --out ~/.local/share/man/man1";

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use crate::cli::Cli;

    /// Words as a shell splits them, up to a redirection.
    fn words(line: &str) -> Vec<String> {
        let mut words = vec![String::new()];
        let mut quoted = false;
        for letter in line.chars() {
            match letter {
                '\'' => quoted = !quoted,
                '>' | '|' if !quoted => break,
                ' ' if !quoted => words.push(String::new()),
                letter => words.last_mut().unwrap().push(letter),
            }
        }
        words.retain(|word| !word.is_empty());
        words
    }

    fn check(command: &clap::Command) -> usize {
        let help = command.get_after_help().map(ToString::to_string);
        let help = help.unwrap_or_else(|| panic!("{} has no examples", command.get_name()));
        let examples: Vec<&str> =
            help.lines().map(str::trim).filter(|line| line.starts_with("stablebench")).collect();
        assert!(examples.len() >= 2, "{}", command.get_name());
        for example in &examples {
            let parsed = Cli::understand(words(example).into_iter().map(Into::into));
            assert!(parsed.is_ok(), "{example}\n{}", parsed.unwrap_err());
        }
        let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
        let shown = shown.filter(|command| command.get_name() != "help");
        examples.len() + shown.filter(|command| !is_inner(command)).map(check).sum::<usize>()
    }

    /// `cache clear`, which the examples of `cache` show.
    fn is_inner(command: &clap::Command) -> bool {
        command.get_name() == "clear"
    }

    #[test]
    fn every_command_has_examples_and_each_can_be_typed() {
        assert!(check(&Cli::command()) > 30);
    }
}
