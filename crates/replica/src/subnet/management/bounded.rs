//! Lists in arguments that the replica bounds while it decodes them.

use std::fmt;
use std::marker::PhantomData;

use candid::CandidType;
use candid::types::{Serializer, Type};
use ic_management_canister_types::HttpHeader;
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// A list of at most `COUNT` items, of at most `BYTES` bytes in all.
#[derive(Clone, Debug)]
pub struct Bounded<T, const COUNT: usize, const BYTES: usize>(pub Vec<T>);

/// An item that has a size.
pub trait Measured {
    /// Its bytes.
    fn bytes(&self) -> usize;
}

impl Measured for Vec<u8> {
    fn bytes(&self) -> usize {
        self.len()
    }
}

impl Measured for HttpHeader {
    fn bytes(&self) -> usize {
        self.name.len() + self.value.len()
    }
}

impl<T: CandidType, const COUNT: usize, const BYTES: usize> CandidType
    for Bounded<T, COUNT, BYTES>
{
    fn _ty() -> Type {
        Vec::<T>::ty()
    }

    fn idl_serialize<S: Serializer>(&self, serializer: S) -> Result<(), S::Error> {
        self.0.idl_serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de> + Measured, const COUNT: usize, const BYTES: usize> Deserialize<'de>
    for Bounded<T, COUNT, BYTES>
{
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_seq(Items(PhantomData))
    }
}

/// Reads the items.
struct Items<T, const COUNT: usize, const BYTES: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de> + Measured, const COUNT: usize, const BYTES: usize> Visitor<'de>
    for Items<T, COUNT, BYTES>
{
    type Value = Bounded<T, COUNT, BYTES>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at most {COUNT} items")
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut items: S) -> Result<Self::Value, S::Error> {
        let (mut list, mut bytes) = (Vec::new(), 0);
        while let Some(item) = items.next_element::<T>()? {
            if list.len() == COUNT {
                let text = format!("The number of elements exceeds maximum allowed {COUNT}");
                return Err(S::Error::custom(text));
            }
            bytes += item.bytes();
            if bytes > BYTES {
                let text = format!("The total data size exceeds maximum allowed {BYTES}");
                return Err(S::Error::custom(text));
            }
            list.push(item);
        }
        Ok(Bounded(list))
    }
}
