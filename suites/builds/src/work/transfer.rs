//! Arguments as a ledger takes them, in Candid and in CBOR.

use std::fmt::Display;

use candid::{CandidType, Principal};
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;
use stablebench_protocol::{Engine, Error, Result};
use stablebench_workload::Rng;

/// A transfer with the fields of `icrc1_transfer`, and texts.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The number, from 0.
    pub id: u64,
    /// 32 bytes.
    pub from_subaccount: Option<ByteBuf>,
    /// The receiver.
    pub to: Account,
    /// The amount, a `nat` in Candid.
    pub amount: u128,
    /// The fee.
    pub fee: Option<u128>,
    /// 8 bytes.
    pub memo: Option<ByteBuf>,
    /// Nanoseconds since 1970.
    pub created_at_time: Option<u64>,
    /// A text.
    pub note: String,
    /// Up to three texts.
    pub labels: Vec<String>,
}

/// An account.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The owner, 8 bytes.
    pub owner: Principal,
    /// 32 bytes.
    pub subaccount: Option<ByteBuf>,
}

impl Transfer {
    /// Returns the transfers of a seed.
    pub fn list(seed: u64, count: u32) -> Vec<Self> {
        let mut random = Rng::new(seed);
        (0..count.into()).map(|id| Self::new(id, &mut random)).collect()
    }

    fn new(id: u64, random: &mut Rng) -> Self {
        // Each third one has a subaccount, each second one a memo.
        let subaccount = |every: u64, byte: u64| {
            id.is_multiple_of(every).then(|| ByteBuf::from(vec![byte as u8; 32]))
        };
        Self {
            id,
            from_subaccount: subaccount(3, random.below(256)),
            to: Account {
                owner: Principal::from_slice(&random.next_u64().to_be_bytes()),
                subaccount: subaccount(4, random.below(256)),
            },
            amount: u128::from(random.next_u64()) << (random.below(40)),
            fee: (!id.is_multiple_of(5)).then_some(10_000),
            memo: id.is_multiple_of(2).then(|| ByteBuf::from(random.next_u64().to_le_bytes())),
            created_at_time: Some(1_700_000_000_000_000_000 + random.below(1 << 50)),
            note: format!("transfer {id} of {}", random.below(1_000_000)),
            labels: (0..id % 4).map(|at| format!("label-{at}-{}", random.below(100))).collect(),
        }
    }

    /// Returns all fields in a form of its own, for digests.
    pub fn fields(&self) -> Vec<u8> {
        let mut fields = Vec::new();
        let mut add = |bytes: Option<&[u8]>| {
            let length = bytes.map_or(u32::MAX, |bytes| bytes.len() as u32);
            fields.extend(length.to_le_bytes());
            fields.extend(bytes.unwrap_or_default());
        };
        add(Some(&self.id.to_le_bytes()));
        add(self.from_subaccount.as_deref().map(Vec::as_slice));
        add(Some(self.to.owner.as_slice()));
        add(self.to.subaccount.as_deref().map(Vec::as_slice));
        add(Some(&self.amount.to_le_bytes()));
        add(self.fee.map(u128::to_le_bytes).as_ref().map(<[u8; 16]>::as_slice));
        add(self.memo.as_deref().map(Vec::as_slice));
        add(self.created_at_time.map(u64::to_le_bytes).as_ref().map(<[u8; 8]>::as_slice));
        add(Some(self.note.as_bytes()));
        for label in &self.labels {
            add(Some(label.as_bytes()));
        }
        fields
    }
}

/// Encodes transfers in Candid, as the argument of a method.
///
/// # Errors
///
/// The encoder's.
pub fn to_candid(transfers: &[Transfer]) -> Result<Vec<u8>> {
    candid::encode_one(transfers).map_err(|error| failed("encode Candid", &error))
}

/// Decodes transfers from Candid.
///
/// # Errors
///
/// The decoder's.
#[expect(clippy::disallowed_methods, reason = "instruction limits bound what canisters decode")]
pub fn from_candid(bytes: &[u8]) -> Result<Vec<Transfer>> {
    candid::decode_one(bytes).map_err(|error| failed("decode Candid", &error))
}

/// Encodes transfers in CBOR.
///
/// # Errors
///
/// The encoder's.
pub fn to_cbor(transfers: &[Transfer]) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let written = ciborium::into_writer(transfers, &mut bytes);
    written.map(|()| bytes).map_err(|error| failed("encode CBOR", &error))
}

/// Decodes transfers from CBOR.
///
/// # Errors
///
/// The decoder's.
pub fn from_cbor(bytes: &[u8]) -> Result<Vec<Transfer>> {
    ciborium::from_reader(bytes).map_err(|error| failed("decode CBOR", &error))
}

fn failed(operation: &str, error: &dyn Display) -> Error {
    Error::Unsupported {
        engine: Engine::named("builds"),
        operation: format!("{operation}: {error}"),
    }
}
