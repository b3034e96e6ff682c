//! What the databases are opened with, and the file that keeps it.

use crate::engine::error;
use crate::memory::Virtual;
use candid::{decode_one, encode_one};
use stablebench_leveldb::{Config, Disk};
use stablebench_protocol::{Compression, Engine, Error, LeveldbConfig, Result};

const NAME: &str = "config";

/// What LevelDB's own `SanitizeOptions` clips the value to.
const WRITE_BUFFERS: std::ops::RangeInclusive<u32> = 64 << 10..=1 << 30;

/// What is left out is LevelDB's default.
///
/// # Errors
///
/// Where LevelDB would take another value than the one asked for.
pub fn parse(asked: LeveldbConfig) -> Result<Config> {
    let default = Config::default();
    if let Some(bytes) = asked.write_buffer_size
        && !WRITE_BUFFERS.contains(&bytes)
    {
        let (least, most) = WRITE_BUFFERS.into_inner();
        return Err(Error::Unsupported {
            engine: Engine::Leveldb,
            operation: format!(
                "run with write_buffer_size={bytes}: it is between {least} and {most}"
            ),
        });
    }
    let bytes = asked.write_buffer_size.map(|bytes| bytes as usize);
    Ok(Config {
        snappy: asked.compression.map_or(default.snappy, |way| way == Compression::Snappy),
        write_buffer_size: bytes.unwrap_or(default.write_buffer_size),
    })
}

/// As it is told.
pub fn told(config: Config) -> LeveldbConfig {
    let compression = if config.snappy { Compression::Snappy } else { Compression::None };
    LeveldbConfig {
        compression: Some(compression),
        write_buffer_size: u32::try_from(config.write_buffer_size).ok(),
    }
}

/// Keeps it for the next opening.
pub fn save(disk: &Disk<Virtual>, config: Config) -> Result<()> {
    // Encoding a type that Candid's derive made cannot fail.
    let bytes = encode_one(told(config)).unwrap_or_default();
    disk.with(|files| {
        let file = files.create(NAME)?;
        files.append(file, &bytes)
    })
    .map_err(error)
}

/// What was kept; LevelDB's defaults where nothing was.
pub fn load(disk: &Disk<Virtual>) -> Result<Config> {
    let bytes = disk.with(|files| {
        let Some(file) = files.find(NAME) else { return Ok(Vec::new()) };
        let mut bytes = vec![0; files.bytes(file).unwrap_or_default() as usize];
        files.read(file, 0, &mut bytes)?;
        Ok(bytes)
    });
    parse(decode_one(&bytes.map_err(error)?).unwrap_or_default())
}
