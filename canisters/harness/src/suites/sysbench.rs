use crate::Canister;
use stablebench_protocol::{
    DigestPart, Engine, Error, Inspected, Part, Performed, Result, Sysbench,
};

pub fn perform<C: Canister>(_: &mut C, _: &Sysbench, _: &Part) -> Result<Performed> {
    Err(Error::EngineUnavailable { engine: Engine::Sqlite })
}

pub fn content<C: Canister>(
    _: &mut C,
    _: &Sysbench,
    _: Option<DigestPart>,
    _: u64,
) -> Result<DigestPart> {
    Err(Error::EngineUnavailable { engine: Engine::Sqlite })
}

pub fn inspect<C: Canister>(_: &mut C, _: &Sysbench) -> Result<Inspected> {
    Err(Error::EngineUnavailable { engine: Engine::Sqlite })
}
