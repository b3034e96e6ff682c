//! The forms of requests and answers. Blobs are text in Base64.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use candid::Principal;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blob(pub Vec<u8>);

impl Blob {
    pub fn principal(&self) -> Principal {
        Principal::from_slice(&self.0)
    }
}

impl Serialize for Blob {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64_STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Blob {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        BASE64_STANDARD.decode(text).map(Self).map_err(serde::de::Error::custom)
    }
}

/// A message to a canister.
#[derive(Clone, Deserialize)]
pub struct Call {
    pub sender: Blob,
    pub canister_id: Blob,
    pub effective_principal: Effective,
    pub method: String,
    pub payload: Blob,
}

/// By which a message finds its subnet.
#[derive(Clone, Serialize, Deserialize)]
pub enum Effective {
    None,
    SubnetId(Blob),
    CanisterId(Blob),
}

/// A message that was taken.
#[derive(Serialize, Deserialize)]
pub struct MessageId {
    pub effective_principal: Effective,
    pub message_id: Blob,
}

#[derive(Deserialize)]
pub struct IngressStatus {
    pub raw_message_id: MessageId,
}

#[derive(Deserialize)]
pub struct CanisterId {
    pub canister_id: Blob,
}

#[derive(Deserialize)]
pub struct AddCycles {
    pub canister_id: Blob,
    pub amount: u128,
}

#[derive(Serialize)]
pub struct Cycles {
    pub cycles: u128,
}

/// Subnets of a new instance, of the kinds that are known here.
#[derive(Deserialize)]
pub struct InstanceConfig {
    pub subnet_config_set: Subnets,
}

#[derive(Deserialize)]
pub struct Subnets {
    pub application: Vec<serde_json::Value>,
    pub system: Vec<serde_json::Value>,
}

/// What a canister answered.
pub type Outcome = Result<Blob, Reject>;

/// How a message was refused.
#[derive(Clone, Debug, Serialize)]
pub struct Reject {
    reject_code: &'static str,
    reject_message: String,
    error_code: String,
    certified: bool,
}

impl Reject {
    /// The kind of reject follows from the replica's code.
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        let kind = match code {
            "CanisterInstallCodeRateLimited" | "CanisterHeapDeltaRateLimited" => "SysTransient",
            "CanisterNotFound" | "CanisterSnapshotNotFound" => "DestinationInvalid",
            "CanisterRejectedMessage" | "InvalidManagementPayload" | "UnknownManagementMessage" => {
                "CanisterReject"
            }
            _ => "CanisterError",
        };
        Self {
            reject_code: kind,
            reject_message: message.into(),
            error_code: code.to_owned(),
            certified: false,
        }
    }
}

impl From<stablebench_replica::Reject> for Reject {
    fn from(reject: stablebench_replica::Reject) -> Self {
        Self::new(reject.code.name(), reject.message)
    }
}
