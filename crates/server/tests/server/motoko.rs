//! Motoko actors: installed and upgraded through the management canister. The modules are those of
//! the replica's tests.

use std::time::{Duration, Instant};

use candid::{Decode, Encode, Principal};
use ic_agent::{Agent, AgentError};
use ic_management_canister_types_8::{CanisterInstallMode, UpgradeFlags, WasmMemoryPersistence};
use ic_utils::interfaces::ManagementCanister;

use super::server::{Server, update};

const CLASSICAL: &[u8] = include_bytes!("../../../replica/tests/motoko/classical_counter.wasm.gz");
const ENHANCED: &[u8] = include_bytes!("../../../replica/tests/motoko/enhanced_counter.wasm.gz");

#[derive(candid::CandidType, serde::Deserialize, Debug, PartialEq, Eq)]
struct Counts {
    count: u128,
    upgrades: u128,
    ticks: u128,
}

async fn counts(agent: &Agent, id: Principal) -> Counts {
    let reply = agent.query(&id, "counts").with_arg(Encode!().unwrap()).call().await.unwrap();
    Decode!(&reply, Counts).unwrap()
}

async fn install(
    agent: &Agent,
    id: Principal,
    module: &[u8],
    start: u128,
    mode: CanisterInstallMode,
) -> Result<(), AgentError> {
    let management = ManagementCanister::create(agent);
    let install = management.install_code(&id, module).with_mode(mode).with_arg(start);
    install.call_and_wait().await
}

#[tokio::test]
async fn actors_are_installed_and_upgraded() {
    let keep = UpgradeFlags {
        skip_pre_upgrade: None,
        wasm_memory_persistence: Some(WasmMemoryPersistence::Keep),
    };
    for (module, upgrade, refused, words) in [
        (CLASSICAL, None, Some(keep), "Invalid upgrade option"),
        (ENHANCED, Some(keep), None, "Missing upgrade option"),
    ] {
        let server = Server::start().await;
        let agent = server.anonymous();
        let management = ManagementCanister::create(&agent);
        let create = management.create_canister().as_provisional_create_with_amount(None);
        let first = Principal::from_text("lxzze-o7777-77777-aaaaa-cai").unwrap();
        let (id,) = create.with_effective_canister_id(first).call_and_wait().await.unwrap();

        install(&agent, id, module, 5, CanisterInstallMode::Install).await.unwrap();
        let sum = update(&agent, id, "add", &Encode!(&2_u128).unwrap()).await;
        assert_eq!(Decode!(&sum, u128).unwrap(), 7);
        // The compiler keeps the interface in a section that controllers may read.
        let candid = agent.read_state_canister_metadata(id, "candid:service").await.unwrap();
        let candid = String::from_utf8(candid).unwrap();
        assert!(candid.contains("startTimer: (nanoseconds: nat64) -> ()"), "{candid}");

        let mode = CanisterInstallMode::Upgrade(refused);
        let error = install(&agent, id, module, 0, mode).await.unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
        let mode = CanisterInstallMode::Upgrade(upgrade);
        install(&agent, id, module, 0, mode).await.unwrap();
        assert_eq!(counts(&agent, id).await, Counts { count: 7, upgrades: 2, ticks: 0 });

        // The timer runs by the clock.
        let tenth = 100_000_000_u64;
        update(&agent, id, "startTimer", &Encode!(&tenth).unwrap()).await;
        let began = Instant::now();
        while counts(&agent, id).await.ticks < 2 {
            assert!(began.elapsed() < Duration::from_secs(30), "the timer does not run");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}
