//! Motoko actors with classical and with enhanced orthogonal persistence, under each set of rules.
//!
//! `motoko/README.md` describes the modules.

use std::fmt::Debug;
use std::sync::LazyLock;

use candid::utils::{ArgumentDecoder, ArgumentEncoder};
use candid::{CandidType, Decode, Nat, decode_args, encode_args, func};
use ic_management_canister_types::{
    CanisterIdRecord, CanisterInstallMode, InstallCodeArgs,
    ProvisionalCreateCanisterWithCyclesArgs, UpgradeFlags, WasmMemoryPersistence,
};
use serde::Deserialize;
use stablebench_replica::subnet::{Call, Executed, Function, Subnet};
use stablebench_replica::{ErrorCode, Principal, Reject, Replica, Rules, Span};

const USER: Principal = Principal::anonymous();
const MANAGEMENT: Principal = Principal::management_canister();
const SECOND: u64 = 1_000_000_000;
const WASM_PAGE: u64 = 65_536;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Persistence {
    /// A 32-bit heap. Variables go through stable memory in an upgrade.
    Classical,
    /// A 64-bit heap, which upgrades keep.
    Enhanced,
}

use Persistence::{Classical, Enhanced};

impl Persistence {
    fn counter(self) -> &'static [u8] {
        match self {
            Classical => include_bytes!("../motoko/classical_counter.wasm.gz"),
            Enhanced => include_bytes!("../motoko/enhanced_counter.wasm.gz"),
        }
    }

    /// The next version of the counter.
    fn next(self) -> &'static [u8] {
        match self {
            Classical => include_bytes!("../motoko/classical_counter_next.wasm.gz"),
            Enhanced => include_bytes!("../motoko/enhanced_counter_next.wasm.gz"),
        }
    }

    /// The upgrade that Motoko's tools make.
    fn upgrade(self) -> CanisterInstallMode {
        match self {
            Classical => CanisterInstallMode::Upgrade(None),
            Enhanced => upgrade_with(WasmMemoryPersistence::Keep),
        }
    }
}

fn upgrade_with(persistence: WasmMemoryPersistence) -> CanisterInstallMode {
    let wasm_memory_persistence = Some(persistence);
    CanisterInstallMode::Upgrade(Some(UpgradeFlags {
        skip_pre_upgrade: None,
        wasm_memory_persistence,
    }))
}

// A reference to a counter.
candid::define_service!(Other : {
    "add": func!((u128) -> (u128));
    "fail": func!((String) -> ());
    "pay": func!(() -> (u128));
    "get": func!(() -> (u128) query);
});

#[derive(CandidType, Deserialize, Debug, PartialEq, Eq)]
struct Counts {
    count: u128,
    upgrades: u128,
    ticks: u128,
}

/// The counts of the next version.
#[derive(CandidType, Deserialize, Debug, PartialEq, Eq)]
struct NextCounts {
    count: u128,
    upgrades: u128,
    beats: u128,
}

struct Actors {
    subnet: Subnet,
}

impl Actors {
    fn new(rules: Rules) -> Self {
        // The replicas are shared, because they keep compiled modules.
        static REPLICAS: LazyLock<[Replica; 2]> = LazyLock::new(|| {
            [Rules::of_2025_10(), Rules::of_2026_08()]
                .map(|rules| Replica::new(rules, None).unwrap())
        });
        let replica = REPLICAS.iter().find(|replica| replica.rules() == rules).unwrap();
        Self { subnet: Subnet::new(replica) }
    }

    fn manage(&mut self, method: &str, argument: impl CandidType) -> Result<Vec<u8>, Reject> {
        let argument = encode_args((argument,)).unwrap();
        self.subnet.update(USER, MANAGEMENT, method, &argument).unwrap().response
    }

    fn create(&mut self) -> Principal {
        self.create_with(ProvisionalCreateCanisterWithCyclesArgs::default())
    }

    fn create_with(&mut self, create: ProvisionalCreateCanisterWithCyclesArgs) -> Principal {
        let reply = self.manage("provisional_create_canister_with_cycles", create).unwrap();
        Decode!(&reply, CanisterIdRecord).unwrap().canister_id
    }

    fn install(
        &mut self,
        canister_id: Principal,
        mode: CanisterInstallMode,
        wasm: &[u8],
        argument: impl ArgumentEncoder,
    ) -> Result<(), Reject> {
        let install = InstallCodeArgs {
            mode,
            canister_id,
            wasm_module: wasm.to_vec(),
            arg: encode_args(argument).unwrap(),
            sender_canister_version: None,
        };
        self.manage("install_code", install).map(drop)
    }

    /// Creates a counter that starts with a number.
    fn counter(&mut self, persistence: Persistence, start: u128) -> Principal {
        let id = self.create();
        self.install(id, CanisterInstallMode::Install, persistence.counter(), (start,)).unwrap();
        id
    }

    fn call(&mut self, id: Principal, method: &str, argument: impl ArgumentEncoder) -> Call {
        self.subnet.update(USER, id, method, &encode_args(argument).unwrap()).unwrap()
    }

    #[track_caller]
    fn update<T: for<'a> ArgumentDecoder<'a>>(
        &mut self,
        id: Principal,
        method: &str,
        argument: impl ArgumentEncoder,
    ) -> T {
        decode_args(&self.call(id, method, argument).response.unwrap()).unwrap()
    }

    #[track_caller]
    fn query<T: for<'a> ArgumentDecoder<'a>>(
        &self,
        id: Principal,
        method: &str,
        argument: impl ArgumentEncoder,
    ) -> T {
        let call = self.subnet.query(USER, id, method, &encode_args(argument).unwrap()).unwrap();
        decode_args(&call.response.unwrap()).unwrap()
    }

    #[track_caller]
    fn count(&self, id: Principal) -> u128 {
        self.query::<(u128,)>(id, "get", ()).0
    }

    #[track_caller]
    fn counts<T: for<'a> Deserialize<'a> + CandidType + Debug>(&self, id: Principal) -> T {
        self.query::<(T,)>(id, "counts", ()).0
    }

    fn balance(&self, id: Principal) -> u128 {
        self.subnet.canister(&id).unwrap().balance().get()
    }

    fn heap(&self, id: Principal) -> u64 {
        let call = self.subnet.query(USER, id, "counts", &encode_args(()).unwrap()).unwrap();
        call.executions[0].execution.memory.heap.get()
    }

    /// Executes a round a second later.
    fn second(&mut self) {
        self.subnet.set_time(self.subnet.time() + SECOND);
        self.subnet.tick().unwrap();
    }
}

/// Runs a test with both kinds of actors under each set of rules.
fn each(test: impl Fn(&mut Actors, Persistence)) {
    for rules in [Rules::of_2025_10(), Rules::of_2026_08()] {
        for persistence in [Classical, Enhanced] {
            println!("{persistence:?}, rules {rules}");
            test(&mut Actors::new(rules), persistence);
        }
    }
}

#[track_caller]
fn assert_rejected<T: Debug>(result: Result<T, Reject>, code: ErrorCode, text: &str) {
    let reject = result.unwrap_err();
    assert_eq!(reject.code, code, "{reject}");
    assert!(reject.message.contains(text), "{reject}");
}

#[test]
fn an_actor_gets_its_argument_and_answers() {
    each(|actors, persistence| {
        let id = actors.counter(persistence, 5);
        assert_eq!(actors.count(id), 5);
        assert_eq!(actors.update::<(u128,)>(id, "add", (2_u128,)), (7,));
        assert_eq!(actors.count(id), 7);
        let wrong = actors.call(id, "add", ("text",)).response;
        assert_rejected(wrong, ErrorCode::CanisterCalledTrap, "IDL error");
        // The argument of the class is missing.
        let empty = actors.create();
        let install =
            actors.install(empty, CanisterInstallMode::Install, persistence.counter(), ());
        assert_rejected(install, ErrorCode::CanisterCalledTrap, "IDL error");
    });
}

#[test]
fn actors_await_each_other() {
    each(|actors, persistence| {
        let [one, two, three] = [0; 3].map(|start| actors.counter(persistence, start));
        let other = |id| Other::new(id);
        assert_eq!(actors.update::<(u128,)>(one, "addThere", (4_u128, other(two))), (4,));
        assert_eq!((actors.count(one), actors.count(two)), (1, 4));
        let sum = actors.update::<(u128,)>(one, "sum", (other(two), other(three)));
        assert_eq!(sum, (5 + 2,));
        // An actor calls itself.
        assert_eq!(actors.update::<(u128,)>(one, "sum", (other(one), other(one))), (2 + 4,));
        assert_eq!(actors.query::<(u128,)>(one, "getThere", (other(two),)), (5,));
    });
}

/// An actor of each kind calls the other.
#[test]
fn both_kinds_of_actors_call_each_other() {
    for rules in [Rules::of_2025_10(), Rules::of_2026_08()] {
        let mut actors = Actors::new(rules);
        let [classical, enhanced] = [Classical, Enhanced].map(|kind| actors.counter(kind, 10));
        for (from, to) in [(classical, enhanced), (enhanced, classical)] {
            let before = actors.count(to);
            let sum = actors.update::<(u128,)>(from, "addThere", (5_u128, Other::new(to)));
            assert_eq!(sum, (before + 5,));
        }
    }
}

#[test]
fn errors_are_thrown_and_caught() {
    each(|actors, persistence| {
        let [one, two] = [0; 2].map(|start| actors.counter(persistence, start));
        let thrown = actors.call(one, "fail", ("a reason",)).response;
        assert_rejected(thrown, ErrorCode::CanisterRejectedMessage, "a reason");
        let caught = actors.update::<(String,)>(one, "catchThere", ("why", Other::new(two)));
        assert_eq!(caught, ("why".to_owned(),));
        assert_eq!(actors.count(one), 1);
        // A canister that does not exist.
        let nobody = Principal::from_slice(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xe0, 0, 99, 1, 1]);
        let (caught,) = actors.update::<(String,)>(one, "catchThere", ("why", Other::new(nobody)));
        assert!(caught.contains("not found"), "{caught}");
    });
}

#[test]
fn a_trap_after_an_await_undoes_only_what_came_after_it() {
    each(|actors, persistence| {
        let [one, two] = [0; 2].map(|start| actors.counter(persistence, start));
        let call = actors.call(one, "addAndTrap", (3_u128, Other::new(two)));
        assert_rejected(call.response, ErrorCode::CanisterCalledTrap, "after the call");
        assert_eq!((actors.count(one), actors.count(two)), (3, 3));
        let cleanups = call.executions.iter().filter(|it| it.function == Function::Cleanup);
        assert_eq!(cleanups.count(), 1);
        // The actor still works.
        assert_eq!(actors.update::<(u128,)>(one, "addThere", (1_u128, Other::new(two))), (4,));
    });
}

#[test]
fn cycles_are_sent_accepted_and_refunded() {
    const SENT: u128 = 1_000_000_000;
    each(|actors, persistence| {
        let [one, two] = [0; 2].map(|start| actors.counter(persistence, start));
        let before = [one, two].map(|id| actors.balance(id));
        let argument = encode_args((SENT, Other::new(two))).unwrap();
        let call = actors.subnet.update(USER, one, "payThere", &argument).unwrap();
        let accepted: (u128, u128) = decode_args(&call.response.unwrap()).unwrap();
        assert_eq!(accepted, (SENT / 2, SENT / 2));
        let paid = |id| {
            let own = call.executions.iter().filter(|it| it.canister == id);
            own.map(|it| it.execution.cycles.get()).sum::<u128>()
        };
        assert_eq!(before[0] - actors.balance(one), paid(one) + SENT / 2);
        assert_eq!(before[1] + SENT / 2 - actors.balance(two), paid(two));
    });
}

#[test]
fn a_recurring_timer_ticks() {
    each(|actors, persistence| {
        let id = actors.counter(persistence, 0);
        actors.update::<()>(id, "startTimer", (2 * SECOND,));
        let ticks = |actors: &Actors| actors.counts::<Counts>(id).ticks;
        assert_eq!(ticks(actors), 0);
        // The timer calls the actor itself, which takes another round.
        let mut seen = Vec::new();
        for _ in 0..8 {
            actors.second();
            seen.push(ticks(actors));
        }
        assert!(seen.is_sorted(), "{seen:?}");
        assert!((3..=4).contains(seen.last().unwrap()), "{seen:?}");
    });
}

#[test]
fn heartbeats_run_in_every_round() {
    each(|actors, persistence| {
        let id = actors.create();
        actors.install(id, CanisterInstallMode::Install, persistence.next(), ()).unwrap();
        actors.second();
        let before = actors.counts::<NextCounts>(id).beats;
        for _ in 0..5 {
            actors.second();
        }
        assert_eq!(actors.counts::<NextCounts>(id).beats, before + 5);
    });
}

#[test]
fn upgrades_keep_the_state() {
    each(|actors, persistence| {
        let id = actors.counter(persistence, 5);
        actors.update::<(u128,)>(id, "add", (2_u128,));
        actors.update::<()>(id, "append", (77_u64,));
        actors.install(id, persistence.upgrade(), persistence.counter(), (9_u128,)).unwrap();
        // `preupgrade` and `postupgrade` count. The argument is for new variables only.
        assert_eq!(actors.counts::<Counts>(id), Counts { count: 7, upgrades: 2, ticks: 0 });
        assert_eq!(actors.query::<(Option<u64>,)>(id, "last", ()), (Some(77),));
        // The next version has another variable, and a heartbeat.
        actors.install(id, persistence.upgrade(), persistence.next(), ()).unwrap();
        assert_eq!(actors.update::<(u128,)>(id, "add", (1_u128,)), (8,));
        assert_eq!(actors.query::<(Option<u64>,)>(id, "last", ()), (Some(77),));
        actors.second();
        let NextCounts { count, upgrades, beats } = actors.counts(id);
        assert_eq!((count, upgrades), (8, 4));
        assert!(beats > 0);
    });
}

#[test]
fn a_timer_ends_with_an_upgrade() {
    each(|actors, persistence| {
        let id = actors.counter(persistence, 0);
        actors.update::<()>(id, "startTimer", (SECOND,));
        for _ in 0..3 {
            actors.second();
        }
        assert!(actors.counts::<Counts>(id).ticks > 0);
        actors.install(id, persistence.upgrade(), persistence.counter(), (0_u128,)).unwrap();
        for _ in 0..3 {
            actors.second();
        }
        assert_eq!(actors.counts::<Counts>(id).ticks, 0);
    });
}

#[test]
fn a_reinstall_drops_the_state() {
    each(|actors, persistence| {
        let id = actors.counter(persistence, 5);
        actors.update::<()>(id, "append", (77_u64,));
        let reinstall = CanisterInstallMode::Reinstall;
        actors.install(id, reinstall, persistence.counter(), (1_u128,)).unwrap();
        assert_eq!(actors.counts::<Counts>(id), Counts { count: 1, upgrades: 0, ticks: 0 });
        assert_eq!(actors.query::<(Option<u64>,)>(id, "last", ()), (None,));
    });
}

#[test]
fn an_upgrade_keeps_the_heap_if_told_so_only() {
    each(|actors, persistence| {
        let id = actors.counter(persistence, 5);
        let module = actors.subnet.canister(&id).unwrap().module().unwrap().hash();
        let (mode, words) = match persistence {
            Enhanced => (
                CanisterInstallMode::Upgrade(None),
                "Missing upgrade option: Enhanced orthogonal persistence requires the \
                 `wasm_memory_persistence` upgrade option.",
            ),
            Classical => (
                upgrade_with(WasmMemoryPersistence::Keep),
                "Invalid upgrade option: The `wasm_memory_persistence: opt Keep` upgrade option \
                 requires that the new canister module supports enhanced orthogonal persistence.",
            ),
        };
        let refused = actors.install(id, mode, persistence.next(), ());
        assert_rejected(refused, ErrorCode::CanisterContractViolation, words);
        // Nothing has changed.
        assert_eq!(actors.counts::<Counts>(id), Counts { count: 5, upgrades: 0, ticks: 0 });
        assert_eq!(actors.subnet.canister(&id).unwrap().module().unwrap().hash(), module);
    });
}

/// The runtime of the 64-bit heap finds what the older one has stored. Only a module that was
/// compiled for it may read that.
#[test]
fn no_implicit_upgrade_from_classical_to_enhanced_persistence() {
    for rules in [Rules::of_2025_10(), Rules::of_2026_08()] {
        let mut actors = Actors::new(rules);
        let id = actors.counter(Classical, 5);
        for mode in
            [CanisterInstallMode::Upgrade(None), upgrade_with(WasmMemoryPersistence::Replace)]
        {
            let refused = actors.install(id, mode, Enhanced.next(), ());
            let words = "Detected implicit upgrade from classical orthogonal persistence";
            assert_rejected(refused, ErrorCode::CanisterCalledTrap, words);
            assert_eq!(actors.counts::<Counts>(id), Counts { count: 5, upgrades: 0, ticks: 0 });
        }
    }
}

/// `replace` empties a 64-bit heap. Its state survives if the actor writes it to stable memory before
/// and reads it afterwards, in messages of their own.
#[test]
fn a_heap_that_is_replaced_is_lost_unless_it_is_stabilized() {
    for rules in [Rules::of_2025_10(), Rules::of_2026_08()] {
        let mut actors = Actors::new(rules);
        let replace = || upgrade_with(WasmMemoryPersistence::Replace);
        let id = actors.counter(Enhanced, 5);
        actors.install(id, replace(), Enhanced.next(), ()).unwrap();
        let NextCounts { count, upgrades, .. } = actors.counts(id);
        assert_eq!((count, upgrades), (0, 1));

        let id = actors.counter(Enhanced, 5);
        actors.update::<()>(id, "append", (77_u64,));
        actors.update::<()>(id, "__motoko_stabilize_before_upgrade", ());
        actors.install(id, replace(), Enhanced.next(), ()).unwrap();
        actors.update::<()>(id, "__motoko_destabilize_after_upgrade", ());
        let NextCounts { count, upgrades, .. } = actors.counts(id);
        assert_eq!((count, upgrades), (5, 2));
        assert_eq!(actors.query::<(Option<u64>,)>(id, "last", ()), (Some(77_u64),));
    }
}

/// An instruction costs two cycles with a 64-bit heap.
#[test]
fn cycles_of_an_update() {
    const BASE: u128 = 5_000_000;
    const INGRESS: u128 = 1_200_000;
    const INGRESS_BYTE: u128 = 2_000;
    const HEADER: u128 = 121;
    each(|actors, persistence| {
        let id = actors.counter(persistence, 5);
        let argument = encode_args((2_u128,)).unwrap();
        let before = actors.balance(id);
        let call = actors.subnet.update(USER, id, "add", &argument).unwrap();
        let [Executed { execution, .. }] = &call.executions[..] else { panic!("{call:?}") };
        let each = match persistence {
            Classical => 1,
            Enhanced => 2,
        };
        let bytes = HEADER + ("add".len() + argument.len()) as u128;
        let charge = u128::from(execution.charge.get());
        let cycles = BASE + INGRESS + INGRESS_BYTE * bytes + each * charge;
        assert_eq!(execution.cycles.get(), cycles);
        assert_eq!(before - actors.balance(id), cycles);
    });
}

/// A call reserves what its callback may cost, and an installation what it may cost itself.
#[test]
fn cycles_are_reserved_for_the_width_of_the_heap() {
    const GIGA: u128 = 1_000_000_000;
    const CALL: u128 = 260_000 + 5_000_000;
    const RESPONSE: u128 = 1_000 * (2 << 20);
    each(|actors, persistence| {
        let each = match persistence {
            Classical => 1,
            Enhanced => 2,
        };
        let id = actors.counter(persistence, 0);
        let (cost,) = actors.query::<(u128,)>(id, "costOfCall", (30_u64, 70_u64));
        assert_eq!(cost, CALL + 1_000 * 100 + RESPONSE + each * 40 * GIGA);

        // An installation needs 300 G or 600 G and the freezing threshold.
        for (balance, fits) in [(300 * each, false), (300 * each + 50, true)] {
            let create = ProvisionalCreateCanisterWithCyclesArgs {
                amount: Some(Nat::from(balance * GIGA)),
                ..ProvisionalCreateCanisterWithCyclesArgs::default()
            };
            let id = actors.create_with(create);
            let mode = CanisterInstallMode::Install;
            let installed = actors.install(id, mode, persistence.counter(), (0_u128,));
            match fits {
                true => installed.unwrap(),
                false => {
                    assert_rejected(installed, ErrorCode::CanisterOutOfCycles, "out of cycles");
                }
            }
        }
    });
}

/// 480 MB are allocated, 8 MB at a time, and none of it stays in use.
#[test]
fn garbage_is_collected() {
    const NUMBERS: u128 = 1_000_000;
    each(|actors, persistence| {
        let id = actors.counter(persistence, 0);
        for _ in 0..60 {
            actors.update::<(u128,)>(id, "allocate", (NUMBERS,));
        }
        assert_eq!(actors.count(id), 60 * NUMBERS);
        let heap = actors.heap(id) * WASM_PAGE;
        assert!(heap < 400_000_000, "{heap}");
    });
}

/// A profile adds up to the instructions of the message and names its functions.
#[test]
fn a_method_has_a_profile() {
    each(|actors, persistence| {
        let id = actors.counter(persistence, 5);
        let argument = encode_args((2_u128,)).unwrap();
        let canister = actors.subnet.canister(&id).unwrap();
        let (execution, profile) =
            canister.fork().profile_update(USER, "add", &argument, Span::Message).unwrap();
        assert_eq!(decode_args::<(u128,)>(&execution.outcome.unwrap()).unwrap(), (7,));
        let sum: u64 = profile.nodes.iter().map(|node| node.instructions.get()).sum();
        assert_eq!(sum, execution.instructions.get());
        let named = |name: &str| profile.frames.iter().any(|frame| frame.name == name);
        assert!(named("add"), "{:?}", profile.frames);
    });
}
