//! Damage to valid bytes.

use arbitrary::{Result, Unstructured};

/// The bytes with a few of them changed, removed, inserted, repeated or truncated, but not to less
/// than `least`.
pub fn damaged(whole: &[u8], least: usize, input: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let mut bytes = whole.to_vec();
    for _ in 0..input.int_in_range(0..=4)? {
        let at = input.choose_index(bytes.len())?;
        match input.int_in_range(0..=5)? {
            0 => bytes[at] = input.arbitrary()?,
            1 => bytes[at] ^= 1 << input.int_in_range(0..=7)?,
            2 => drop(bytes.remove(at)),
            3 => bytes.insert(at, input.arbitrary()?),
            4 => {
                let end = bytes.len().min(at + input.int_in_range(1..=64)?);
                let again = bytes[at..end].to_vec();
                bytes.splice(at..at, again);
            }
            _ => bytes.truncate(at.max(least)),
        }
    }
    Ok(bytes)
}

/// The bytes of a file with the damage of [`damaged`] at the start or anywhere, with a part copied
/// elsewhere, or followed by more bytes.
#[allow(dead_code, reason = "not every target has files")]
pub fn damaged_file(whole: &[u8], input: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    const BEGINNING: usize = 1_024;
    let mut bytes = match input.int_in_range(0..=2)? {
        0 => damaged(whole, 0, input)?,
        1 => {
            let (front, back) = whole.split_at(BEGINNING.min(whole.len()));
            [&damaged(front, 1, input)?, back].concat()
        }
        _ => {
            let (from, to) = (input.choose_index(whole.len())?, input.choose_index(whole.len())?);
            let length = input.int_in_range(1..=8_192)?.min(whole.len() - from.max(to));
            let mut bytes = whole.to_vec();
            bytes.copy_within(from..from + length, to);
            bytes
        }
    };
    if input.ratio(1, 8)? {
        bytes.extend_from_slice(input.bytes(input.len().min(16))?);
    }
    Ok(bytes)
}
