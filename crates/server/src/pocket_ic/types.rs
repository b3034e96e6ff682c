//! PocketIC's REST interface in JSON, its versions, and the answers to operations that fail. Keys that
//! are not named here are ignored.
//!
//! Source: `packages/pocket-ic/src/common/rest.rs` of the replica, versions 9 to 16.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str::FromStr;

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use candid::Principal;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stablebench_replica::{ErrorCode, Reject, RejectCode};

/// The version of a PocketIC server whose clients are served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    number: String,
    /// The generation of servers and clients.
    pub(super) major: u32,
}

/// The newest version of each generation of servers, which is that of their clients.
const VERSIONS: [&str; 8] =
    ["9.0.3", "10.0.0", "11.0.0", "12.0.0", "13.0.0", "14.0.0", "15.0.0", "16.1.0"];
/// The generations.
const GENERATIONS: std::ops::RangeInclusive<u32> = 9..=16;

/// The error of a text that is not a version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no PocketIC {0} here; there are 9 to 16, such as {newest}", newest = VERSIONS[7])]
pub struct UnknownVersion(String);

impl Version {
    /// The number, such as `16.1.0`.
    pub fn number(&self) -> &str {
        &self.number
    }
}

impl Default for Version {
    /// The newest version.
    fn default() -> Self {
        Self { number: VERSIONS[VERSIONS.len() - 1].to_owned(), major: *GENERATIONS.end() }
    }
}

impl FromStr for Version {
    type Err = UnknownVersion;

    /// Parses a version of three numbers, or the first of them.
    fn from_str(text: &str) -> Result<Self, UnknownVersion> {
        let unknown = || UnknownVersion(text.to_owned());
        let numbers: Result<Vec<u32>, _> = text.split('.').map(str::parse).collect();
        let numbers = numbers.map_err(|_| unknown())?;
        let major = numbers.first().copied().filter(|major| GENERATIONS.contains(major));
        let major = major.ok_or_else(unknown)?;
        let newest = VERSIONS.iter().find(|known| known.starts_with(&format!("{major}.")));
        let number = match numbers.len() {
            1 => newest.map(|known| (*known).to_owned()),
            3 => Some(text.to_owned()),
            _ => None,
        };
        Ok(Self { number: number.ok_or_else(unknown)?, major })
    }
}

/// The failure of an operation.
#[derive(Debug)]
pub enum Failed {
    /// The request cannot be fulfilled.
    Refused(String),
    /// The caller may not do this.
    Forbidden(String),
    /// There is nothing at the address.
    Missing(String),
    /// The body is too large.
    TooLarge(String),
    /// A limit is reached.
    TooMany(String),
    /// This machine failed.
    Machine(String),
}

impl Failed {
    /// A message cannot be sent.
    pub fn ingress(reason: impl AsRef<str>) -> Self {
        Self::Refused(format!("BadIngressMessage({:?})", reason.as_ref()))
    }

    pub fn no_canister(id: &Principal) -> Self {
        Self::Refused(format!("CanisterNotFound(CanisterId({id}))"))
    }

    pub fn empty(id: &Principal) -> Self {
        Self::Refused(format!("CanisterIsEmpty(CanisterId({id}))"))
    }

    pub fn no_subnet(id: &Principal) -> Self {
        Self::Refused(format!("SubnetNotFound({id})"))
    }

    pub fn into_parts(self) -> (StatusCode, String) {
        match self {
            Self::Refused(text) => (StatusCode::BAD_REQUEST, text),
            Self::Forbidden(text) => (StatusCode::FORBIDDEN, text),
            Self::Missing(text) => (StatusCode::NOT_FOUND, text),
            Self::TooLarge(text) => (StatusCode::PAYLOAD_TOO_LARGE, text),
            Self::TooMany(text) => (StatusCode::TOO_MANY_REQUESTS, text),
            Self::Machine(text) => (StatusCode::INTERNAL_SERVER_ERROR, text),
        }
    }
}

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        let (status, message) = self.into_parts();
        (status, Json(ApiError { message })).into_response()
    }
}

/// Bytes as Base64.
pub mod base64 {
    use ::base64::Engine;
    use ::base64::prelude::BASE64_STANDARD;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        BASE64_STANDARD.encode(bytes).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        BASE64_STANDARD.decode(text.as_bytes()).map_err(serde::de::Error::custom)
    }
}

/// A principal as Base64.
pub mod principal {
    use candid::Principal;
    use serde::{Deserializer, Serializer};

    use super::base64;

    pub fn serialize<S: Serializer>(id: &Principal, serializer: S) -> Result<S::Ok, S::Error> {
        base64::serialize(id.as_slice(), serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Principal, D::Error> {
        let bytes = base64::deserialize(deserializer)?;
        Principal::try_from_slice(&bytes).map_err(serde::de::Error::custom)
    }
}

/// `POST …/update/tick`
#[derive(Default, Deserialize)]
pub struct TickConfig {
    #[serde(default)]
    pub blockmakers: Option<Value>,
}

/// `POST /instances`
#[derive(Deserialize)]
pub struct InstanceConfig {
    pub subnet_config_set: SubnetConfigs,
    #[serde(default)]
    pub http_gateway_config: Option<InstanceGatewayConfig>,
    #[serde(default)]
    pub state_dir: Option<PathBuf>,
    #[serde(default)]
    pub bitcoind_addr: Option<Value>,
    #[serde(default)]
    pub dogecoind_addr: Option<Value>,
    #[serde(default)]
    pub icp_features: Option<BTreeMap<String, Value>>,
    #[serde(default)]
    pub initial_time: Option<InitialTime>,
    #[serde(default)]
    pub mainnet_nns_subnet_id: Option<bool>,
    #[serde(default)]
    pub log_level: Option<String>,
    #[serde(default)]
    pub disable_ingress_validation: Option<bool>,
}

/// The subnets of an instance.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct SubnetConfigs {
    pub nns: Option<SubnetSpec>,
    pub sns: Option<SubnetSpec>,
    pub ii: Option<SubnetSpec>,
    pub fiduciary: Option<SubnetSpec>,
    pub bitcoin: Option<SubnetSpec>,
    pub test_threshold_keys: Option<SubnetSpec>,
    pub system: Vec<SubnetSpec>,
    pub application: Vec<SubnetSpec>,
    pub cloud_engine: Vec<SubnetSpec>,
    pub verified_application: Vec<SubnetSpec>,
}

/// The configuration of a subnet.
#[derive(Clone, Deserialize)]
pub struct SubnetSpec {
    #[serde(default)]
    pub state_config: StateConfig,
    #[serde(default)]
    pub instruction_config: InstructionConfig,
    #[serde(default)]
    pub subnet_admins: Option<Vec<RawPrincipal>>,
    #[serde(default)]
    pub cost_schedule: CostSchedule,
}

/// The state with which a subnet begins.
#[derive(Clone, Default, Deserialize)]
pub enum StateConfig {
    #[default]
    New,
    FromPath(IgnoredAny),
    FromBlobStore(IgnoredAny),
}

/// The instruction limits of a subnet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub enum InstructionConfig {
    #[default]
    Production,
    Benchmarking,
}

/// The cost schedule of a subnet: whether its canisters are charged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub enum CostSchedule {
    #[default]
    Normal,
    Free,
}

/// The time with which an instance begins.
#[derive(Deserialize)]
pub enum InitialTime {
    Timestamp(RawTime),
    AutoProgress(AutoProgressConfig),
}

#[derive(Deserialize)]
pub struct AutoProgressConfig {
    #[serde(default)]
    pub artificial_delay_ms: Option<u64>,
}

/// The HTTP gateway of a new instance.
#[derive(Clone, Deserialize)]
pub struct InstanceGatewayConfig {
    #[serde(default)]
    pub ip_addr: Option<String>,
    #[serde(default)]
    pub port: Option<u16>,
    #[serde(default)]
    pub domains: Option<Vec<String>>,
    #[serde(default)]
    pub https_config: Option<Value>,
    #[serde(default)]
    pub domain_custom_provider_local_file: Option<Value>,
}

/// `POST /http_gateway`
#[derive(Deserialize)]
pub struct GatewayConfig {
    pub forward_to: GatewayBackend,
    #[serde(flatten)]
    pub other: InstanceGatewayConfig,
}

/// The backend of an HTTP gateway.
#[derive(Clone, Deserialize, Serialize)]
pub enum GatewayBackend {
    Replica(String),
    PocketIcInstance(usize),
}

#[derive(Clone, Serialize)]
pub struct GatewayDetails {
    pub instance_id: usize,
    pub port: u16,
    pub forward_to: GatewayBackend,
    pub domains: Option<Vec<String>>,
    pub https_config: Option<()>,
}

#[derive(Clone, Copy, Serialize)]
pub struct GatewayInfo {
    pub instance_id: usize,
    pub port: u16,
}

/// The answer to a request that creates something.
#[derive(Serialize)]
pub enum Creation<T> {
    Created(T),
    Error { message: String },
}

#[derive(Serialize)]
pub struct CreatedInstance {
    pub instance_id: usize,
    pub topology: Topology,
    pub http_gateway_info: Option<GatewayInfo>,
}

/// The subnets that an instance shows.
#[derive(Clone, Serialize)]
pub struct Topology {
    pub subnet_configs: BTreeMap<String, SubnetConfig>,
    pub default_effective_canister_id: RawCanisterId,
}

#[derive(Clone, Serialize)]
pub struct SubnetConfig {
    pub subnet_kind: &'static str,
    /// Clients of version 9 need it. The nodes are in no list of later versions.
    pub node_ids: Vec<RawNodeId>,
    pub subnet_admins: Option<Vec<RawPrincipal>>,
    pub cost_schedule: CostSchedule,
    pub subnet_seed: [u8; 32],
    pub instruction_config: InstructionConfig,
    pub canister_ranges: Vec<CanisterIdRange>,
    /// Number of nodes; JavaScript clients show it.
    pub size: usize,
}

#[derive(Clone, Serialize)]
pub struct CanisterIdRange {
    pub start: RawCanisterId,
    pub end: RawCanisterId,
}

#[derive(Clone, Serialize)]
pub struct RawNodeId {
    #[serde(with = "principal")]
    pub node_id: Principal,
}

#[derive(Clone, Deserialize, Serialize)]
pub struct RawPrincipal {
    #[serde(with = "principal")]
    pub principal_id: Principal,
}

#[derive(Clone, Deserialize, Serialize)]
pub struct RawCanisterId {
    #[serde(with = "principal")]
    pub canister_id: Principal,
}

#[derive(Clone, Deserialize, Serialize)]
pub struct RawSubnetId {
    #[serde(with = "principal")]
    pub subnet_id: Principal,
}

#[derive(Clone, Copy, Deserialize, Serialize)]
pub struct RawTime {
    pub nanos_since_epoch: u64,
}

/// The canister or subnet to which a message is routed.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub enum EffectivePrincipal {
    None,
    SubnetId(#[serde(with = "principal")] Principal),
    CanisterId(#[serde(with = "principal")] Principal),
}

/// An update or a query.
#[derive(Deserialize)]
pub struct CanisterCall {
    #[serde(with = "principal")]
    pub sender: Principal,
    #[serde(with = "principal")]
    pub canister_id: Principal,
    pub effective_principal: EffectivePrincipal,
    pub method: String,
    #[serde(with = "base64")]
    pub payload: Vec<u8>,
    #[serde(default)]
    pub sender_info: Option<Value>,
}

/// A message that was sent.
#[derive(Deserialize, Serialize)]
pub struct RawMessageId {
    pub effective_principal: EffectivePrincipal,
    #[serde(with = "base64")]
    pub message_id: Vec<u8>,
}

#[derive(Deserialize)]
#[serde(untagged)]
pub enum IngressStatusArgs {
    /// Since version 8.
    ByCaller {
        raw_message_id: RawMessageId,
        raw_caller: Option<RawPrincipal>,
    },
    Message(RawMessageId),
}

/// A reply or a reject.
#[derive(Serialize)]
pub enum CanisterResult {
    Ok(#[serde(with = "base64")] Vec<u8>),
    Err(RejectResponse),
}

/// The result of sending a message.
#[derive(Serialize)]
pub enum Submitted {
    Ok(RawMessageId),
    Err(RejectResponse),
}

#[derive(Serialize)]
pub struct RejectResponse {
    reject_code: &'static str,
    reject_message: String,
    error_code: &'static str,
    certified: bool,
}

impl RejectResponse {
    /// The reject of a message; `certified` if it was executed as an update.
    pub fn new(Reject { code, message }: Reject, certified: bool) -> Self {
        Self {
            reject_code: name(code),
            reject_message: message,
            error_code: code.name(),
            certified,
        }
    }

    /// The reject as a sentence.
    pub fn text(&self) -> String {
        format!("{} ({})", self.reject_message, self.error_code)
    }
}

fn name(code: ErrorCode) -> &'static str {
    match code.reject_code() {
        RejectCode::SysFatal => "SysFatal",
        RejectCode::SysTransient => "SysTransient",
        RejectCode::DestinationInvalid => "DestinationInvalid",
        RejectCode::CanisterReject => "CanisterReject",
        RejectCode::CanisterError => "CanisterError",
        RejectCode::SysUnknown => "SysUnknown",
    }
}

impl CanisterResult {
    pub fn new(outcome: Result<Vec<u8>, Reject>, certified: bool) -> Self {
        match outcome {
            Ok(reply) => Self::Ok(reply),
            Err(reject) => Self::Err(RejectResponse::new(reject, certified)),
        }
    }
}

#[derive(Deserialize)]
pub struct AddCycles {
    #[serde(with = "principal")]
    pub canister_id: Principal,
    pub amount: u128,
}

#[derive(Serialize)]
pub struct RawCycles {
    pub cycles: u128,
}

#[derive(Deserialize)]
pub struct SetStableMemory {
    #[serde(with = "principal")]
    pub canister_id: Principal,
    #[serde(with = "base64")]
    pub blob_id: Vec<u8>,
}

/// An HTTPS outcall that waits for its answer.
#[derive(Serialize)]
pub struct HttpRequest {
    pub subnet_id: RawSubnetId,
    pub request_id: u64,
    pub http_method: &'static str,
    pub url: String,
    pub headers: Vec<HttpHeader>,
    #[serde(with = "base64")]
    pub body: Vec<u8>,
    pub max_response_bytes: Option<u64>,
    pub replication: &'static str,
    pub pricing_version: &'static str,
}

#[derive(Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct HttpHeader {
    pub name: String,
    pub value: String,
}

#[derive(Deserialize)]
pub struct MockHttpResponse {
    pub subnet_id: RawSubnetId,
    pub request_id: u64,
    pub response: HttpResponse,
    #[serde(default)]
    pub additional_responses: Vec<HttpResponse>,
}

/// The answer of a node to an outcall.
#[derive(Clone, PartialEq, Eq, Deserialize)]
pub enum HttpResponse {
    CanisterHttpReply(HttpReply),
    CanisterHttpReject(HttpReject),
}

#[derive(Clone, PartialEq, Eq, Deserialize)]
pub struct HttpReply {
    pub status: u16,
    pub headers: Vec<HttpHeader>,
    #[serde(with = "base64")]
    pub body: Vec<u8>,
}

#[derive(Clone, PartialEq, Eq, Deserialize)]
pub struct HttpReject {
    pub reject_code: u64,
    pub message: String,
}

#[derive(Deserialize)]
pub struct SnapshotDownload {
    pub canister_id: RawCanisterId,
    #[serde(with = "base64")]
    pub snapshot_id: Vec<u8>,
    pub snapshot_dir: PathBuf,
}

#[derive(Deserialize)]
pub struct SnapshotUpload {
    pub canister_id: RawCanisterId,
    #[serde(default)]
    pub replace_snapshot: Option<RawSnapshotId>,
    pub snapshot_dir: PathBuf,
}

#[derive(Deserialize, Serialize)]
pub struct RawSnapshotId {
    #[serde(with = "base64")]
    pub snapshot_id: Vec<u8>,
}

/// The rest of a long operation can be read later.
#[derive(Serialize)]
pub struct Started {
    pub state_label: String,
    pub op_id: String,
}

#[derive(Serialize)]
pub struct ApiError {
    pub message: String,
}
