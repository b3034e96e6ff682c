//! Times a PocketIC server: instances, installation, updates. For comparisons of two servers.
//!
//! ```sh
//! POCKET_IC_BIN=SERVER cargo run --release -p stablebench-pocket-ic --example speed -- canisters/modules/bench.wasm.gz
//! ```

#![allow(clippy::print_stdout, reason = "a benchmark prints what it measures")]

use std::time::{Duration, Instant};

use candid::{Principal, encode_args};
use stablebench_pocket_ic::{Instance, Mode, Server, Subnet};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const CALLER: Principal = Principal::anonymous();

fn main() -> Result<()> {
    let path = std::env::args().nth(1).ok_or("the argument is the path of the canister bench")?;
    #[expect(clippy::disallowed_methods, reason = "an example reads the file that is named")]
    let wasm = std::fs::read(&path)?;
    let server = Server::start()?;
    println!("server {}, times in milliseconds: median, largest", server.version());

    let mut instances = Vec::new();
    times("create an instance", 10, |_| {
        instances.push(Instance::create(&server, Subnet::Application)?);
        Ok(())
    })?;
    let instance = instances.pop().ok_or("there is no instance")?;

    // The first installation compiles the module.
    let install = |_| {
        let canister = instance.create_canister(CALLER)?;
        instance.install(canister, CALLER, Mode::Install, &wasm, &encode_args(())?)??;
        Ok(canister)
    };
    times("install, first", 1, install)?;
    times("install, again", 5, install)?;

    let canister = install(0)?;
    times("an update without work", 200, |number| {
        instance.update(canister, CALLER, "run", &encode_args((number,))?)??;
        Ok(())
    })?;
    times("add 100 000 rows to the map", 3, |number| {
        let rows = encode_args((number * 1_000_000, 10_u64, 100_000_u64))?;
        instance.update(canister, CALLER, "add_users_btree", &rows)??;
        Ok(())
    })?;
    Ok(())
}

/// Does something `count` times, and prints its times.
fn times<T>(what: &str, count: u64, mut once: impl FnMut(u64) -> Result<T>) -> Result<()> {
    let mut times = Vec::new();
    for number in 1..=count {
        let began = Instant::now();
        once(number)?;
        times.push(began.elapsed());
    }
    times.sort_unstable();
    let milliseconds = |time: Option<&Duration>| time.map_or(0.0, |time| time.as_secs_f64() * 1e3);
    let (median, largest) = (times.get(times.len() / 2), times.last());
    println!("{what:<28}{:>10.2}{:>10.2}", milliseconds(median), milliseconds(largest));
    Ok(())
}
