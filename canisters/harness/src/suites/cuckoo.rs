use crate::Canister;
use stablebench_protocol::{Cuckoo, DigestPart, Engine, Error, Inspected, Part, Performed, Result};

pub fn perform<C: Canister>(_: &mut C, _: &Cuckoo, _: &Part) -> Result<Performed> {
    Err(Error::EngineUnavailable { engine: Engine::Sqlite })
}

pub fn content<C: Canister>(
    _: &mut C,
    _: &Cuckoo,
    _: Option<DigestPart>,
    _: u64,
) -> Result<DigestPart> {
    Err(Error::EngineUnavailable { engine: Engine::Sqlite })
}

pub fn inspect<C: Canister>(_: &mut C, _: &Cuckoo) -> Result<Inspected> {
    Err(Error::EngineUnavailable { engine: Engine::Sqlite })
}
