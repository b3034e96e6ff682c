# Common tasks; `just --list` prints them.

# Fail on the first failing command of a pipe too.
set shell := ["bash", "-euo", "pipefail", "-c"]

# Check everything, as CI does; or only the steps named (scripts/check --help).
check *steps:
    scripts/check {{steps}}

# Run the tool: the users suite on 1 000 000 rows, or what the arguments ask for.
run *arguments:
    cargo run --release -- {{arguments}}

# Run the tests.
test *arguments:
    cargo test --release {{arguments}}

# Run the tests of the PocketIC clients, on a server if POCKET_IC_BIN names one.
test-pocket-ic *arguments:
    cargo test --release --features pocket-ic --test pocket_ic -- {{arguments}}

# Run the tests of public clients on `stablebench serve` (needs npm).
test-clients:
    cargo build --release
    cd verification/clients && npm ci --silent --no-audit --no-fund && npm test --silent

# Measure the reference runs again and accept the new snapshots of the tests. Review the diff.
bless:
    scripts/renew-results
    INSTA_UPDATE=always cargo test --release

# Check the embedded replica against every recorded case.
conformance:
    for rules in 2025-10 2026-08 2026-08-recorded 2026-10; do \
        cargo run --release --bin conformance -- check --rules $rules crates/conformance/cases/$rules/*.json*; \
    done

# Check the PocketIC server that POCKET_IC_BIN names against every case recorded under its rules.
verify:
    cargo run --release --package stablebench-recorder -- verify

# Format.
fmt:
    cargo fmt --all

# Lint the host code and the scripts as CI does, then four canisters.
lint:
    scripts/check format clippy scripts
    cargo clippy --profile canister --package stablebench-bench --target wasm32-wasip1 -- -D warnings
    cargo clippy --profile canister --package stablebench-bench-leveldb --target wasm32-unknown-unknown -- -D warnings
    cargo clippy --profile canister --package stablebench-bench-calls --package stablebench-bench-collections \
        --target wasm32-unknown-unknown -- -D warnings

# Check licences, advisories and sources of dependencies (needs cargo-deny).
deny:
    cargo deny check

# Build the canisters' modules again, of all canisters or of those named (needs clang-19 and wasi-libc for DoltLite).
modules *names:
    cargo xtask modules {{names}}

# Install the program, which works in any folder without this checkout.
install:
    STABLEBENCH_REVISION=$(git describe --always --dirty --exclude='*') \
        cargo install --locked --path . --features network

# Render the blocks of documents from the reference runs.
render:
    cargo run --release --package xtask --features render -- render
