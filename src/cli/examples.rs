//! Examples for the end of `--help`. A test parses every line that begins with `stablebench`.

/// Of the tool.
pub const TOOL: &str = "\
Examples:
  The users suite on 1 000 000 rows, then a page for a browser:
    stablebench
    stablebench report results.json -o report.html
  Two configurations, quickly, as Markdown:
    stablebench --rows 10000 --engines btree,sqlite/wal --format markdown
  All options of a suite:
    stablebench run users --help";

/// Of `canbench`.
pub const CANBENCH: &str = "\
Examples:
  All benchmarks of the project in this folder:
    stablebench canbench
  Those with insert in their names, as canbench 0.7 counts:
    stablebench canbench insert --rules 2025-10
  As canbench 0.7 counts, beside today's network:
    stablebench canbench --rules 2025-10,2026-10 --hide-results
  On a pull request: compare with the results of the main branch, as Markdown, with a gate:
    stablebench canbench --compare main.yml --format markdown --fail-on-regression";

/// Of `run`.
pub const RUN: &str = "\
Examples:
  All sections of the users suite, each operation by itself too:
    stablebench run users --sections all --per-operation
  The cases, without measuring them:
    stablebench run keys --list
  Resume an interrupted run:
    stablebench run sysbench --resume
  In a canister that is deployed on a local network; --yes and --replica ic for the mainnet:
    stablebench run users --rows 10000 --engines btree,sqlite/wal \
--replica http://127.0.0.1:4943 \
--canister rrkah-fqaaa-aaaaa-aaaaq-cai --identity key.pem";

/// Of `run all`.
pub const ALL: &str = "\
Examples:
  Every suite, into a folder:
    stablebench run all --out nightly
  Resume it:
    stablebench run all --out nightly --resume";

/// Of `list`.
pub const LIST: &str = "\
Examples:
  The suites and their questions:
    stablebench list
  The cases of a suite, without measuring them:
    stablebench run users --list";

/// Of `compare`.
pub const COMPARE: &str = "\
Examples:
  Every value of two runs:
    stablebench compare results.json new.json
  A gate: no case more expensive by 5 %, no section by 2 % on average:
    stablebench compare results.json new.json --max-ratio 1.05 --max-average 1.02
  Two engines of one run:
    stablebench compare results.json --configurations btree sqlite/memory
  The published figures:
    stablebench compare published:users published.json";

/// Of `merge`.
pub const MERGE: &str = "\
Examples:
  Two machines, each with a half of the run, and a third that joins them:
    stablebench run users --sections all --shard 1/2 --out part1.json
    stablebench run users --sections all --shard 2/2 --out part2.json
    stablebench merge part1.json part2.json --out results.json
  The cases of the first half:
    stablebench run users --sections all --shard 1/2 --list";

/// Of `report`.
pub const REPORT: &str = "\
Examples:
  A page for a browser, of one run or several:
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
  What WAL changes:
    stablebench profile users/insert/end-1/sqlite/persist --diff users/insert/end-1/sqlite/wal \
-o difference.svg
  The cases:
    stablebench profile --list users/insert
  A call of a canister of your own:
    stablebench profile --wasm my_canister.wasm --call greet '(\"world\")' -o flame.svg
  One that calls another canister:
    stablebench profile --wasm shop.wasm --with bank.wasm --call buy '(1)' -o flame.svg";

/// Of `call`.
pub const SQL: &str = "\
Examples:
  A shell, like sqlite3, that prints what each statement costs:
    stablebench sql
  Each statement of two files:
    stablebench sql schema.sql queries.sql
  Queries on data that a schema and a CSV file prepare, unmeasured; with advice on indexes:
    stablebench sql --setup schema.sql queries.sql
  One statement on a database file, with a small page cache:
    stablebench sql --db shop.sqlite --engine sqlite/persist,cache_size=1000 -c 'SELECT count(*) FROM orders'
  Two files on another library:
    stablebench sql --engine sqlite-vfs schema.sql queries.sql
  1 000 transactions of a script in pgbench's language, on two configurations:
    stablebench sql --setup schema.sql --script tx.sql --engines sqlite/persist,sqlite/wal
  pgbench's own, ten in a message:
    stablebench sql --builtin tpcb-like --per-message 10";

pub const CALL: &str = "\
Examples:
  1 000 rows, every 10th id from 0 on, into SQLite:
    stablebench call bench add_users_sqlite '(0, 10, 1000)' --save state
  Read some of them back:
    stablebench call bench read_users '(\"sqlite\", 0, 5, 10)' --state state
  A canister of your own:
    stablebench call my_canister.wasm greet '(\"world\")'
  100 calls and an upgrade, with the cost of each:
    stablebench call my_canister.wasm greet '(\"{i}\")' --repeat 100 --upgrade new.wasm
  One that is installed with arguments, which name another canister:
    stablebench call ledger.wasm symbol --with archive=ledger.wasm \
--init '(record { symbol = \"{archive}\" })' --init-of archive '(record { symbol = \"B\" })'
  With an environment variable and stable memory that was saved elsewhere:
    stablebench call my_canister.wasm greet '(\"world\")' --env LANGUAGE=en \
--stable-memory memory.bin
  Two canisters that call each other, saved and continued:
    stablebench call shop.wasm buy '(1)' --with bank.wasm --save shop.canisters
    stablebench call shop.wasm buy '(1)' --state shop.canisters";

/// Of `serve`.
pub const SERVE: &str = "\
Examples:
  The bench canister, for dfx and icp:
    stablebench serve
  Both canisters, at a port that is free:
    stablebench serve bench bench_vfs --port 0
  A canister that keeps its state, with those that clients create:
    stablebench serve bench --state bench.canister
  A canister of your own, with an environment variable:
    stablebench serve my_canister.wasm --env LANGUAGE=en";

/// Of `pocket-ic`.
pub const POCKET_IC: &str = "\
Examples:
  The tests of a project with the crate pocket-ic:
    POCKET_IC_BIN=$(command -v stablebench) cargo test
  Clients of version 13, and the rules of autumn 2025:
    STABLEBENCH_POCKET_IC_VERSION=13 STABLEBENCH_RULES=2025-10 cargo test
  The version that clients see:
    stablebench pocket-ic --version
  A server for clients that take a URL:
    stablebench pocket-ic --port 8000";

/// Of `module`.
pub const MODULE: &str = "\
Examples:
  The canister with StableBTreeMap and ic-rusqlite:
    stablebench module
  Only the hash that the IC will show for it:
    stablebench module --quiet | head -1
  The one with ic-sqlite-vfs:
    stablebench module bench_vfs";

/// Of `builds`.
pub const BUILDS: &str = "\
Examples:
  All options, for the crate in the current folder:
    stablebench builds --call add '(1, \"one\")' --call get '(1)'
  A package of a workspace, in two builds:
    stablebench builds --package backend --call list '()' --build default --build opt-level=z";

/// Of `cache`.
pub const CACHE: &str = "\
Examples:
  Its content and size:
    stablebench cache
  Clear it:
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
    use crate::cli::{Cli, command};

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
        // Long ones have several lines, as a shell takes them.
        let help = help.replace("\\\n", " ");
        let examples: Vec<&str> =
            help.lines().map(str::trim).filter(|line| line.starts_with("stablebench")).collect();
        assert!(examples.len() >= 2, "{}", command.get_name());
        for example in &examples {
            let parsed = Cli::understand(words(example).into_iter().map(Into::into));
            // Help is an error to clap.
            if let Some(error) = parsed.err().filter(|error| error.use_stderr()) {
                panic!("{example}\n{error}");
            }
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
    fn every_command_has_examples_and_each_parses() {
        assert!(check(&command()) > 30);
    }
}
