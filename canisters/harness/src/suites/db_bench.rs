use crate::Canister;
use stablebench_protocol::{
    DbBench, DigestPart, Engine, Error, Inspected, Part, Performed, Result,
};

pub fn perform<C: Canister>(_: &mut C, _: &DbBench, _: &Part) -> Result<Performed> {
    Err(Error::EngineUnavailable { engine: Engine::Btree })
}

pub fn content<C: Canister>(
    _: &mut C,
    _: &DbBench,
    _: Option<DigestPart>,
    _: u64,
) -> Result<DigestPart> {
    Err(Error::EngineUnavailable { engine: Engine::Btree })
}

pub fn inspect<C: Canister>(_: &mut C, _: &DbBench) -> Result<Inspected> {
    Err(Error::EngineUnavailable { engine: Engine::Btree })
}
