//! The prices that the replica documents, from the snapshots of its tables.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use stablebench_conformance::generate::modules::Work;

/// Prices by name, as `docs/metering.md` describes how they add up.
pub struct Prices {
    operators: BTreeMap<String, u64>,
    /// A fixed price, and a price for each byte that some arguments tell.
    calls: BTreeMap<String, (u64, u64, Vec<usize>)>,
}

fn snapshot(path: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../replica/src").join(path);
    let text = fs::read_to_string(path).unwrap();
    let (_, table) = text.trim_start_matches("---").split_once("---").unwrap();
    table.lines().map(str::to_owned).filter(|line| !line.is_empty()).collect()
}

/// One spelling for an operator's name in text and in Rust.
fn plain(name: &str) -> String {
    name.replace(['.', '_'], "").to_lowercase()
}

impl Prices {
    pub fn documented() -> Self {
        let operators = snapshot(
            "instrument/snapshots/stablebench_replica__instrument__operator_cost__tests__\
             price_of_every_operator.snap",
        );
        let operators = operators.iter().filter_map(|line| {
            let mut words = line.split(' ');
            let (name, price) = (words.next().unwrap(), words.next().unwrap());
            Some((plain(name), price.parse().ok()?))
        });
        let calls = snapshot(
            "system_api/snapshots/stablebench_replica__system_api__prices__tests__\
             price_of_every_call.snap",
        );
        let calls = calls.iter().map(|line| {
            let (name, price) = line.split_once(' ').unwrap();
            let (fixed, bytes) = price.split_once(" + ").unwrap_or((price, "0 a byte of []"));
            let (each, params) = bytes.split_once(" a byte of ").unwrap();
            let params = params.trim_matches(['[', ']']).split(", ");
            let params = params.filter(|param| !param.is_empty());
            let params = params.map(|param| param.parse().unwrap()).collect();
            (name.to_owned(), (fixed.parse().unwrap(), each.parse().unwrap(), params))
        });
        Self { operators: operators.collect(), calls: calls.collect() }
    }

    /// Names of what has a price, as one spells them here.
    pub fn operators(&self) -> impl Iterator<Item = &String> {
        self.operators.keys()
    }

    /// Names of the calls of the System API.
    pub fn calls(&self) -> impl Iterator<Item = &String> {
        self.calls.keys()
    }

    pub fn spelled(name: &str) -> String {
        plain(name)
    }

    /// What the rounds of a measurement cost, in one message.
    pub fn of(&self, work: &Work, times: u64) -> u64 {
        let each = |names: &[String]| -> u64 {
            names.iter().map(|name| self.operators[&plain(name)]).sum()
        };
        let round = each(&work.operators) + work.functions + work.bytes - each(&work.less);
        let mut written = Vec::new();
        let calls: u64 = (0..times)
            .flat_map(|_| &work.calls)
            .map(|(name, args)| self.call(name, args, &mut written))
            .sum();
        round * times + calls
    }

    /// A call; `written` are the stable pages that the message has written so far.
    fn call(&self, name: &str, args: &[u64], written: &mut Vec<u64>) -> u64 {
        let (fixed, each, params) = &self.calls[name];
        let price = fixed + params.iter().map(|param| args[*param] * each).sum::<u64>();
        price
            + match name {
                "stable_grow" | "stable64_grow" => 100,
                "stable_read" | "stable64_read" => 20 + args[2],
                "stable_write" | "stable64_write" if args[2] == 0 => 20,
                "stable_write" | "stable64_write" => {
                    let pages = args[0] / 4_096..=(args[0] + args[2] - 1) / 4_096;
                    let new: Vec<u64> = pages.filter(|page| !written.contains(page)).collect();
                    written.extend(&new);
                    20 + args[2] + 1_000 * new.len() as u64
                }
                // What stays in the log, which has room for all of it.
                "debug_print" => (2 + 50) * args[1],
                _ => 0,
            }
    }
}
