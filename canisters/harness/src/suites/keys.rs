use crate::Canister;
use stablebench_protocol::{DigestPart, Engine, Error, Inspected, Keys, Part, Performed, Result};

pub fn perform<C: Canister>(_: &mut C, _: &Keys, _: &Part) -> Result<Performed> {
    Err(Error::EngineUnavailable { engine: Engine::Sqlite })
}

pub fn content<C: Canister>(
    _: &mut C,
    _: &Keys,
    _: Option<DigestPart>,
    _: u64,
) -> Result<DigestPart> {
    Err(Error::EngineUnavailable { engine: Engine::Sqlite })
}

pub fn inspect<C: Canister>(_: &mut C, _: &Keys) -> Result<Inspected> {
    Err(Error::EngineUnavailable { engine: Engine::Sqlite })
}
