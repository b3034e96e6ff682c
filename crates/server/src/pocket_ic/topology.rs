//! The subnets of an instance: their kinds, ids and ranges of canister ids, and the replicas that they
//! run on.
//!
//! Each is a [part](Part) of one subnet of the embedded replica. Named subnets have the ranges that they
//! have on the network, for canisters whose ids are chosen, and a range of their own for others.
//!
//! Source: `get_range_config` and `RangeGen` in `rs/pocket_ic_server/src/pocket_ic.rs` of the replica.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex};

use candid::Principal;
use sha2::{Digest, Sha256};
use stablebench_replica::subnet::{Part, canister_id};
use stablebench_replica::{Replica, SubnetKind};

use super::types::{
    CanisterIdRange, CostSchedule, InstructionConfig, RawCanisterId, RawNodeId, RawPrincipal,
    StateConfig, SubnetConfig, SubnetConfigs, SubnetSpec, Topology, Version,
};
use crate::certificates::Keys;
use crate::host::{Directory, Listed, lock};
use crate::limits::MAX_SUBNETS;

/// Canister ids of a subnet.
const IDS: u64 = 1 << 20;
/// Nodes of an application subnet, for which fees are those of the rules.
pub const NODES: usize = 13;

/// A kind of subnets.
#[derive(Debug, PartialEq, Eq)]
pub struct Kind {
    /// The name in PocketIC.
    pub name: &'static str,
    /// `true` if its canisters are charged nothing and have the limits of system subnets.
    system: bool,
    /// Number of nodes.
    nodes: usize,
    /// The id and the ranges on the network, for named subnets. An instance has at most one of each.
    id: &'static str,
    ranges: &'static [(u64, u64)],
}

impl Kind {
    /// Returns `true` if an instance has at most one such subnet, with the network's ranges.
    pub fn is_named(&self) -> bool {
        !self.ranges.is_empty()
    }
}

const fn unnamed(name: &'static str, system: bool) -> Kind {
    Kind { name, system, nodes: NODES, id: "", ranges: &[] }
}

static NNS: Kind = Kind {
    name: "NNS",
    system: true,
    nodes: 40,
    id: "tdb26-jop6k-aogll-7ltgs-eruif-6kk7m-qpktf-gdiqx-mxtrf-vb5e6-eqe",
    ranges: &[(0, 6), (8, 0xf_ffff)],
};
static SNS: Kind = Kind {
    name: "SNS",
    system: false,
    nodes: 34,
    id: "x33ed-h457x-bsgyx-oqxqf-6pzwv-wkhzr-rm2j3-npodi-purzm-n66cg-gae",
    ranges: &[(0x200_0000, 0x20f_ffff)],
};
static II: Kind = Kind {
    name: "II",
    system: true,
    nodes: 34,
    id: "uzr34-akd3s-xrdag-3ql62-ocgoh-ld2ao-tamcv-54e7j-krwgb-2gm4z-oqe",
    ranges: &[(7, 7), (0x210_0000, 0x21f_ffff)],
};
static FIDUCIARY: Kind = Kind {
    name: "Fiduciary",
    system: false,
    nodes: 34,
    id: "pzp6e-ekpqk-3c5x7-2h6so-njoeq-mt45d-h3h6c-q3mxf-vpeq5-fk5o7-yae",
    ranges: &[(0x230_0000, 0x23f_ffff)],
};
static BITCOIN: Kind = Kind {
    name: "Bitcoin",
    system: true,
    nodes: NODES,
    id: "w4rem-dv5e3-widiz-wbpea-kbttk-mnzfm-tzrc7-svcj3-kbxyb-zamch-hqe",
    ranges: &[(0x1a0_0000, 0x1af_ffff)],
};
static TEST_THRESHOLD_KEYS: Kind = Kind {
    name: "TestThresholdKeys",
    system: false,
    nodes: NODES,
    id: "fuqsr-in2lc-zbcjj-ydmcw-pzq7h-4xm2z-pto4i-dcyee-5z4rz-x63ji-nae",
    ranges: &[(0x1d0_0000, 0x1df_ffff)],
};
static SYSTEM: Kind = unnamed("System", true);
static APPLICATION: Kind = unnamed("Application", false);
static CLOUD_ENGINE: Kind = unnamed("CloudEngine", false);
static VERIFIED_APPLICATION: Kind = unnamed("VerifiedApplication", false);

static NAMED: [&Kind; 6] = [&NNS, &SNS, &II, &FIDUCIARY, &BITCOIN, &TEST_THRESHOLD_KEYS];

/// A subnet of an instance.
pub struct Member {
    pub kind: &'static Kind,
    pub listed: Listed,
    instructions: InstructionConfig,
    cost_schedule: CostSchedule,
    admins: Option<Vec<RawPrincipal>>,
    seed: [u8; 32],
    /// `false` after it was deleted.
    pub exists: bool,
}

/// The subnets of an instance, by the number of their part.
pub struct Subnets {
    members: Vec<Member>,
    /// The canister id that names the subnet in which canisters are created by default.
    default: Principal,
    ranges: RangeGenerator,
    version: Version,
}

/// Ranges of canister ids that are free.
struct RangeGenerator {
    /// The number of the next range, counted downwards.
    next: u64,
}

impl RangeGenerator {
    fn new(version: &Version) -> Self {
        // Servers since version 15 begin in the middle of the ids.
        let all = if version.major >= 15 { u64::MAX / 2 } else { u64::MAX };
        Self { next: all / IDS - 1 }
    }

    fn next(&mut self) -> RangeInclusive<u64> {
        let first = self.next * IDS;
        self.next -= 1;
        first..=first + IDS - 1
    }
}

impl Subnets {
    /// Plans the subnets of an instance. Returns them with their parts and the keys of the first one.
    ///
    /// # Errors
    ///
    /// A sentence about what is missing or not supported.
    pub fn new(
        configs: SubnetConfigs,
        version: &Version,
        replicas: &Replicas,
    ) -> Result<(Self, Vec<Part>, Keys), String> {
        let named = [
            (&NNS, configs.nns),
            (&SNS, configs.sns),
            (&II, configs.ii),
            (&FIDUCIARY, configs.fiduciary),
            (&BITCOIN, configs.bitcoin),
            (&TEST_THRESHOLD_KEYS, configs.test_threshold_keys),
        ];
        let named = named.into_iter().filter_map(|(kind, spec)| Some((kind, spec?)));
        let others = [
            (&SYSTEM, configs.system),
            (&APPLICATION, configs.application),
            (&CLOUD_ENGINE, configs.cloud_engine),
            (&VERIFIED_APPLICATION, configs.verified_application),
        ];
        let others = others
            .into_iter()
            .flat_map(|(kind, specs)| specs.into_iter().map(move |spec| (kind, spec)));
        let wanted: Vec<(&'static Kind, SubnetSpec)> = named.chain(others).collect();
        let Some((first, _)) = wanted.first() else {
            return Err(
                "Subnet config failed to validate: \"SubnetConfigSet must contain at least \
                        one subnet\""
                    .to_owned(),
            );
        };
        if wanted.len() > MAX_SUBNETS {
            return Err(format!(
                "Subnet config failed to validate: \"There are {} subnets, an instance has at most \
                 {MAX_SUBNETS}\"",
                wanted.len()
            ));
        }
        let keys = Keys::from_seed(&seed_text(first.name, 0));
        let mut subnets = Self {
            members: Vec::new(),
            default: Principal::management_canister(),
            ranges: RangeGenerator::new(version),
            version: version.clone(),
        };
        let mut parts = Vec::new();
        for (kind, spec) in wanted {
            check(kind, &spec)?;
            parts.push(subnets.add(kind, spec, kind.ranges.to_vec(), replicas)?);
        }
        let by_preference = [&APPLICATION, &CLOUD_ENGINE, &VERIFIED_APPLICATION, &SYSTEM];
        let default = by_preference
            .into_iter()
            .find_map(|kind| subnets.members.iter().find(|member| member.kind == kind))
            .or(subnets.members.first());
        if let Some((first, _)) = default.and_then(|member| member.listed.ranges.first()) {
            subnets.default = *first;
        }
        Ok((subnets, parts, keys))
    }

    /// Adds a subnet, for which `ranges` are those of the network.
    fn add(
        &mut self,
        kind: &'static Kind,
        spec: SubnetSpec,
        ranges: Vec<(u64, u64)>,
        replicas: &Replicas,
    ) -> Result<Part, String> {
        let number = self.members.len();
        let text = seed_text(kind.name, number);
        let mut ranges: Vec<_> = ranges.into_iter().map(|(first, last)| first..=last).collect();
        ranges.push(self.ranges.next());
        let mut part = Part::with_ranges(&replica(kind, &spec, replicas)?, ranges);
        part.set_nodes(kind.nodes as u32);
        let keys = Keys::from_seed(&text);
        // Since version 13, named subnets have the ids of the network, with the exception of NNS.
        let fixed = self.version.major >= 13 && *kind != NNS;
        let named = Principal::from_text(kind.id).ok().filter(|_| fixed);
        let listed = Listed {
            id: named.unwrap_or_else(|| keys.subnet()),
            key: keys.root().to_vec(),
            ranges: part.ranges().collect(),
        };
        self.members.push(Member {
            kind,
            listed,
            instructions: spec.instruction_config,
            cost_schedule: spec.cost_schedule,
            admins: spec.subnet_admins,
            seed: Sha256::digest(text.as_bytes()).into(),
            exists: true,
        });
        Ok(part)
    }

    /// Adds the subnet of the network that has a canister id.
    ///
    /// # Errors
    ///
    /// If the id is not one of the network's, or belongs to the root subnet, or there are too many
    /// subnets.
    pub fn add_for(&mut self, id: &Principal, replicas: &Replicas) -> Result<Part, String> {
        if self.members.len() >= MAX_SUBNETS {
            return Err(format!(
                "The instance has had {MAX_SUBNETS} subnets, and cannot have more; create another \
                 instance."
            ));
        }
        let old = self.version.major <= 10;
        if id.as_slice().len() != 10 && old {
            return Err(format!(
                "The binary representation {} of effective canister ID {id} should consist of 10 \
                 bytes.",
                hex::encode(id.as_slice())
            ));
        }
        let number = id.as_slice().first_chunk().copied().map(u64::from_be_bytes);
        let number = number.filter(|number| canister_id(*number) == *id && *number < IDS << 10);
        let Some(number) = number else {
            return Err(format!(
                "The effective canister ID {id} does not belong to an existing subnet and it is not \
                 a mainnet canister ID."
            ));
        };
        let hosts = |kind: &Kind| {
            kind.ranges.iter().any(|(first, last)| (*first..=*last).contains(&number))
        };
        let kind = NAMED.into_iter().find(|kind| hosts(kind)).unwrap_or(&APPLICATION);
        // Servers of version 10 treat the II subnet like the NNS subnet.
        let fixed = if old { "NNS or II" } else { "NNS" };
        if *kind == NNS || (*kind == II && old) {
            return Err(format!(
                "The effective canister ID {id} belongs to the {fixed} subnet on the IC mainnet for \
                 which PocketIC provides a `SubnetKind`: please set up your PocketIC instance with a \
                 subnet of that `SubnetKind`."
            ));
        }
        let first = number / IDS * IDS;
        let ranges = match kind.is_named() {
            true => kind.ranges.to_vec(),
            false => vec![(first, first + IDS - 1)],
        };
        let spec = SubnetSpec {
            state_config: StateConfig::New,
            instruction_config: InstructionConfig::Production,
            subnet_admins: None,
            cost_schedule: CostSchedule::Normal,
        };
        self.add(kind, spec, ranges, replicas)
    }

    /// The names of the threshold keys that the subnets hold.
    pub fn keys(&self) -> Vec<&'static str> {
        let has = |kinds: &[&Kind]| self.members.iter().any(|member| kinds.contains(&member.kind));
        let mut names = Vec::new();
        if has(&[&II, &FIDUCIARY]) {
            names.push("key_1");
        }
        // Until version 13, these subnets held the test keys too.
        let tests: &[&Kind] = match self.version.major {
            14.. => &[&TEST_THRESHOLD_KEYS],
            _ => &[&II, &FIDUCIARY],
        };
        if has(tests) {
            names.extend(["test_key_1", "dfx_test_key"]);
        }
        names
    }

    /// Returns `true` if an id is one of those that the management canister chooses from.
    pub fn allocates(&self, id: &Principal) -> bool {
        self.existing().any(|(_, member)| {
            member.listed.ranges.last().is_some_and(|(first, last)| first <= id && id <= last)
        })
    }

    /// Gives the first subnet the id of the network's root subnet.
    pub fn use_mainnet_root(&mut self) {
        if let Some(first) = self.members.first_mut().filter(|first| *first.kind == NNS)
            && let Ok(id) = Principal::from_text(NNS.id)
        {
            first.listed.id = id;
        }
    }

    /// The subnets that exist, with the numbers of their parts.
    pub fn existing(&self) -> impl Iterator<Item = (usize, &Member)> {
        self.members.iter().enumerate().filter(|(_, member)| member.exists)
    }

    /// Returns the subnet with an id.
    pub fn find(&self, id: &Principal) -> Option<(usize, &Member)> {
        self.existing().find(|(_, member)| member.listed.id == *id)
    }

    /// Returns the subnet that hosts a canister id.
    pub fn hosting(&self, id: &Principal) -> Option<(usize, &Member)> {
        self.existing().find(|(_, member)| member.listed.hosts(id))
    }

    /// Returns `true` if canisters are created in a subnet by default.
    pub fn is_default(&self, number: usize) -> bool {
        self.hosting(&self.default).is_some_and(|(default, _)| default == number)
    }

    /// Returns the number of the part in which canisters are created by default.
    pub fn default_part(&self) -> usize {
        self.hosting(&self.default).map_or(0, |(number, _)| number)
    }

    /// Marks a subnet as deleted.
    pub fn remove(&mut self, number: usize) {
        if let Some(member) = self.members.get_mut(number) {
            member.exists = false;
        }
    }

    /// Number of subnets that exist.
    pub fn count(&self) -> usize {
        self.existing().count()
    }

    /// The subnets as the Internet Computer's HTTP interface shows them.
    pub fn directory(&self) -> Directory {
        let mut listed: Vec<Listed> =
            self.existing().map(|(_, member)| member.listed.clone()).collect();
        // The root key signs for all subnets, without delegations, so the first has all ranges.
        let others: Vec<_> = listed.iter().skip(1).flat_map(|it| it.ranges.clone()).collect();
        if let Some(first) = listed.first_mut() {
            first.ranges.extend(others);
        }
        Directory(listed)
    }

    /// The subnets as PocketIC shows them.
    pub fn topology(&self, node: Principal) -> Topology {
        let config = |member: &Member| SubnetConfig {
            subnet_kind: member.kind.name,
            node_ids: vec![RawNodeId { node_id: node }],
            subnet_admins: member.admins.clone(),
            cost_schedule: member.cost_schedule,
            subnet_seed: member.seed,
            instruction_config: member.instructions,
            canister_ranges: member
                .listed
                .ranges
                .iter()
                .map(|(first, last)| CanisterIdRange {
                    start: RawCanisterId { canister_id: *first },
                    end: RawCanisterId { canister_id: *last },
                })
                .collect(),
            size: member.kind.nodes,
        };
        let subnet_configs: BTreeMap<_, _> = self
            .existing()
            .map(|(_, member)| (member.listed.id.to_text(), config(member)))
            .collect();
        let default = RawCanisterId { canister_id: self.default };
        Topology { subnet_configs, default_effective_canister_id: default }
    }
}

/// The text from which the keys of a subnet derive.
fn seed_text(kind: &str, number: usize) -> String {
    format!("stablebench, PocketIC subnet {number} of kind {kind}; not a secret")
}

/// Refuses what the embedded replica does not have.
fn check(kind: &Kind, spec: &SubnetSpec) -> Result<(), String> {
    let open = *kind == APPLICATION || *kind == CLOUD_ENGINE;
    let invalid = |reason: &str| Err(format!("Subnet config failed to validate: {reason:?}"));
    match &spec.state_config {
        StateConfig::New => {}
        StateConfig::FromPath(_) | StateConfig::FromBlobStore(_) => {
            return Err(
                "This server cannot load the state of a subnet, because only a replica can \
                        read its format. Upload a canister snapshot instead."
                    .to_owned(),
            );
        }
    }
    if spec.cost_schedule != CostSchedule::Normal && !open {
        return invalid(
            "Non-default cost schedule can only be specified for subnet of kind `Application` or \
             `CloudEngine`",
        );
    }
    if *kind == CLOUD_ENGINE && spec.cost_schedule != CostSchedule::Free {
        return invalid(
            "Every subnet of kind `CloudEngine` must have cost schedule of kind `Free`",
        );
    }
    if spec.subnet_admins.is_some() && !open {
        return invalid(
            "Subnet admins can only be specified for subnet of kind `Application` or `CloudEngine`",
        );
    }
    if spec.subnet_admins.is_some() && spec.cost_schedule != CostSchedule::Free {
        return invalid(
            "Subnet admins can only be specified for subnet with cost schedule of kind `Free`",
        );
    }
    if spec.subnet_admins.is_some() {
        return Err("This server has no subnet admins, because the embedded replica knows no \
                    permissions of a subnet."
            .to_owned());
    }
    Ok(())
}

/// Returns the replica with the limits and fees of a subnet.
fn replica(kind: &Kind, spec: &SubnetSpec, replicas: &Replicas) -> Result<Replica, String> {
    let free = kind.system || spec.cost_schedule == CostSchedule::Free;
    let kind = match (free, spec.instruction_config) {
        (false, InstructionConfig::Production) => SubnetKind::Application,
        (false, InstructionConfig::Benchmarking) => SubnetKind::Benchmarking,
        (true, InstructionConfig::Benchmarking) => SubnetKind::FreeBenchmarking,
        (true, InstructionConfig::Production) if kind.system => SubnetKind::System,
        (true, InstructionConfig::Production) => SubnetKind::Free,
    };
    replicas.get(kind)
}

type Source = dyn Fn(SubnetKind) -> Result<Replica, String> + Send + Sync;

/// The replicas of a server, one for each kind of subnet. They are started on demand.
#[derive(Clone)]
pub struct Replicas {
    source: Arc<Source>,
    started: Arc<Mutex<BTreeMap<&'static str, Replica>>>,
}

impl Replicas {
    /// Creates replicas by a function.
    pub fn new(
        source: impl Fn(SubnetKind) -> Result<Replica, String> + Send + Sync + 'static,
    ) -> Self {
        Self { source: Arc::new(source), started: Arc::default() }
    }

    /// Returns the replica of a kind of subnet.
    fn get(&self, kind: SubnetKind) -> Result<Replica, String> {
        let mut started = lock(&self.started);
        if let Some(replica) = started.get(kind.name()) {
            return Ok(replica.clone());
        }
        let replica = (self.source)(kind)?;
        started.insert(kind.name(), replica.clone());
        Ok(replica)
    }
}
