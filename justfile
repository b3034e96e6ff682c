# What can be done here: `just --list`.

# Fail on the first failing command of a pipe too.
set shell := ["bash", "-euo", "pipefail", "-c"]

# Check everything: format, lints, tests, licences and advisories.
check: fmt-check lint test deny

# Measure: the users suite on 1 000 000 rows, or what the arguments ask for.
run *arguments:
    cargo run --release -- {{arguments}}

# Run the tests.
test *arguments:
    cargo test --release {{arguments}}

# Run the tests of the PocketIC clients; on the server that POCKET_IC_BIN names, if any.
test-pocket-ic *arguments:
    cargo test --release --features pocket-ic --test pocket_ic -- {{arguments}}

# Run the tests of public clients on `stablebench serve`. Needs npm.
test-clients:
    cargo build --release
    cd clients && npm ci --silent --no-audit --no-fund && npm test --silent

# Measure the reference run anew (half an hour), and take what tests print as the new
# snapshots. Review the diff.
bless:
    scripts/renew-results
    INSTA_UPDATE=always cargo test --release

# Hold the embedded replica against every recorded case.
conformance:
    for rules in 2025-10 2026-08 2026-08-first-reads 2026-08-recorded; do \
        cargo run --release --bin conformance -- check --rules $rules crates/conformance/cases/$rules/*.json*; \
    done

# Hold the PocketIC server that POCKET_IC_BIN names against every case recorded under its rules.
verify:
    cargo run --release --features pocket-ic --bin conformance -- verify

# Format.
fmt:
    cargo fmt --all

# Check the format.
fmt-check:
    cargo fmt --all -- --check

# Lint what runs here, then the canister; the scripts, where shellcheck is installed.
lint:
    cargo clippy --release --workspace --exclude stablebench-bench --exclude stablebench-bench-vfs --exclude stablebench-bench-leveldb --exclude stablebench-bench-doltlite --all-features --all-targets -- -D warnings
    cargo clippy --profile canister --package stablebench-bench --target wasm32-wasip1 -- -D warnings
    cargo clippy --profile canister --package stablebench-bench-leveldb --target wasm32-unknown-unknown -- -D warnings
    if command -v shellcheck >/dev/null; then shellcheck --external-sources scripts/*.sh scripts/canbench-tests scripts/renew-results .ci/run; else echo "shellcheck is not installed: skipped" >&2; fi

# Check licences, advisories and sources of dependencies, where cargo-deny is installed.
deny:
    if command -v cargo-deny >/dev/null; then cargo deny check; else echo "cargo-deny is not installed: skipped" >&2; fi
