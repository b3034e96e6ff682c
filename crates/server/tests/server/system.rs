//! The cycles minting canister and the cycles ledger, which clients ask for a canister.

use candid::{CandidType, Decode, Deserialize, Encode, Nat, Principal};
use ic_agent::Agent;
use ic_management_canister_types::CanisterSettings;
use ic_utils::call::AsyncCall;
use ic_utils::interfaces::ManagementCanister;

use super::server::{COUNTER, Server, ed25519, number, update};

const RELAY: &str = include_str!("../../../replica/tests/relay.wat");
/// Cycles with which an account begins.
const INITIAL: u128 = 1_000_000_000_000_000_000;
/// Cycles that a transaction costs.
const FEE: u128 = 100_000_000;
/// Cycles that the creation of a canister costs.
const CREATION: u128 = 500_000_000_000;
const T: u128 = 1_000_000_000_000;

fn minting() -> Principal {
    Principal::from_text("rkp4c-7iaaa-aaaaa-aaaca-cai").unwrap()
}

fn ledger() -> Principal {
    Principal::from_text("um5iw-rqaaa-aaaaq-qaaba-cai").unwrap()
}

// The types of the ledger's interface, as its clients declare them.

#[derive(CandidType)]
enum SubnetSelection {
    Subnet { subnet: Principal },
    Filter { subnet_type: Option<String> },
}

#[derive(CandidType, Default)]
struct CreationArgs {
    subnet_selection: Option<SubnetSelection>,
    settings: Option<CanisterSettings>,
}

#[derive(CandidType, Default)]
struct CreateArgs {
    from_subaccount: Option<Vec<u8>>,
    created_at_time: Option<u64>,
    amount: Nat,
    creation_args: Option<CreationArgs>,
}

#[derive(CandidType, Deserialize, Debug)]
enum Created {
    Ok { block_id: Nat, canister_id: Principal },
    Err(CreateError),
}

#[derive(CandidType, Deserialize, Debug)]
enum CreateError {
    GenericError { message: String, error_code: Nat },
    TemporarilyUnavailable,
    Duplicate { duplicate_of: Nat, canister_id: Option<Principal> },
    CreatedInFuture { ledger_time: u64 },
    FailedToCreate { error: String, refund_block: Option<Nat>, fee_block: Option<Nat> },
    TooOld,
    InsufficientFunds { balance: Nat },
}

#[derive(CandidType)]
struct WithdrawArgs {
    amount: Nat,
    from_subaccount: Option<Vec<u8>>,
    to: Principal,
    created_at_time: Option<u64>,
}

#[derive(CandidType, Deserialize, Debug)]
enum RejectionCode {
    NoError,
    CanisterError,
    SysTransient,
    DestinationInvalid,
    Unknown,
    SysFatal,
    CanisterReject,
}

#[derive(CandidType, Deserialize, Debug)]
enum WithdrawError {
    GenericError {
        message: String,
        error_code: Nat,
    },
    TemporarilyUnavailable,
    FailedToWithdraw {
        fee_block: Option<Nat>,
        rejection_code: RejectionCode,
        rejection_reason: String,
    },
    Duplicate {
        duplicate_of: Nat,
    },
    BadFee {
        expected_fee: Nat,
    },
    InvalidReceiver {
        receiver: Principal,
    },
    CreatedInFuture {
        ledger_time: u64,
    },
    TooOld,
    InsufficientFunds {
        balance: Nat,
    },
}

#[derive(CandidType)]
struct DepositArgs {
    to: Owned,
    memo: Option<Vec<u8>>,
}

#[derive(CandidType, Clone)]
struct Owned {
    owner: Principal,
    subaccount: Option<Vec<u8>>,
}

#[derive(CandidType, Deserialize)]
struct Deposited {
    balance: Nat,
    block_index: Nat,
}

async fn balance_of(agent: &Agent, owner: Principal, subaccount: Option<Vec<u8>>) -> Nat {
    let account = Encode!(&Owned { owner, subaccount }).unwrap();
    let reply = agent.query(&ledger(), "icrc1_balance_of").with_arg(account).call().await.unwrap();
    Decode!(&reply, Nat).unwrap()
}

async fn balance(agent: &Agent) -> Nat {
    balance_of(agent, agent.get_principal().unwrap(), None).await
}

async fn create(agent: &Agent, args: CreateArgs) -> Created {
    let reply = update(agent, ledger(), "create_canister", &Encode!(&args).unwrap()).await;
    Decode!(&reply, Created).unwrap()
}

async fn created(agent: &Agent, args: CreateArgs) -> Principal {
    match create(agent, args).await {
        Created::Ok { canister_id, .. } => canister_id,
        Created::Err(error) => panic!("{error:?}"),
    }
}

async fn withdraw(agent: &Agent, to: Principal, amount: u128) -> Result<Nat, WithdrawError> {
    let amount = Nat::from(amount);
    let args = WithdrawArgs { amount, from_subaccount: None, to, created_at_time: None };
    let reply = update(agent, ledger(), "withdraw", &Encode!(&args).unwrap()).await;
    Decode!(&reply, Result<Nat, WithdrawError>).unwrap()
}

/// Calls the ledger from a canister, with cycles.
async fn relay(
    agent: &Agent,
    canister: Principal,
    cycles: u64,
    method: &str,
    argument: &[u8],
) -> Result<Vec<u8>, String> {
    let (ledger, cycles) = (ledger(), cycles.to_le_bytes());
    let argument =
        [&cycles, [10].as_slice(), ledger.as_slice(), method.as_bytes(), b" ", argument].concat();
    let call = agent.update(&canister, "relay").with_arg(argument);
    call.call_and_wait().await.map_err(|error| error.to_string())
}

async fn cycles_of(agent: &Agent, canister: Principal) -> Nat {
    let management = ManagementCanister::create(agent);
    management.canister_status(&canister).call().await.unwrap().0.cycles
}

#[tokio::test]
async fn a_client_creates_a_canister_through_the_ledger() {
    let server = Server::start().await;
    let agent = server.agent(ed25519(1));
    let sender = agent.get_principal().unwrap();
    let call = agent.query(&minting(), "get_default_subnets").with_arg(Encode!().unwrap());
    let subnets = Decode!(&call.call().await.unwrap(), Vec<Principal>).unwrap();
    assert_eq!(subnets, [Principal::self_authenticating(&server.root_key)]);
    let subnet = agent.get_subnet_by_id(&subnets[0]).await.unwrap();
    assert!(subnet.contains_canister(&ledger()) && subnet.contains_canister(&minting()));

    assert_eq!(balance(&agent).await, Nat::from(INITIAL));
    let [subnet] = subnets[..] else { panic!("one subnet") };
    let selection = Some(SubnetSelection::Subnet { subnet });
    let creation_args = Some(CreationArgs { subnet_selection: selection, settings: None });
    let args = CreateArgs { amount: Nat::from(2 * T), creation_args, ..CreateArgs::default() };
    let id = created(&agent, args).await;
    assert_eq!(balance(&agent).await, Nat::from(INITIAL - 2 * T - FEE));
    assert_eq!(agent.read_state_canister_controllers(id).await.unwrap(), [sender]);
    assert_eq!(cycles_of(&agent, id).await, Nat::from(2 * T - CREATION));

    // The canister works.
    let management = ManagementCanister::create(&agent);
    let module = super::server::wasm(COUNTER);
    management.install_code(&id, &module).call_and_wait().await.unwrap();
    assert_eq!(number(&update(&agent, id, "add", &[]).await), 1);
    // Another account has its own balance.
    assert_eq!(balance(&server.anonymous()).await, Nat::from(INITIAL));
}

#[tokio::test]
async fn a_canister_has_the_settings_that_its_creator_asked_for() {
    let server = Server::start().await;
    let agent = server.agent(ed25519(1));
    let controllers = vec![Principal::anonymous(), ledger()];
    let settings = Some(CanisterSettings {
        controllers: Some(controllers.clone()),
        freezing_threshold: Some(Nat::from(77_u8)),
        ..CanisterSettings::default()
    });
    let filter = Some(SubnetSelection::Filter { subnet_type: None });
    let creation_args = Some(CreationArgs { subnet_selection: filter, settings });
    let subaccount = Some(vec![1; 32]);
    let args = CreateArgs {
        from_subaccount: subaccount.clone(),
        amount: Nat::from(T),
        creation_args,
        ..CreateArgs::default()
    };
    let id = created(&agent, args).await;
    let mut set = agent.read_state_canister_controllers(id).await.unwrap();
    set.sort();
    let mut controllers = controllers;
    controllers.sort();
    assert_eq!(set, controllers);
    let owner = server.anonymous();
    let status = ManagementCanister::create(&owner).canister_status(&id).call().await.unwrap().0;
    assert_eq!(status.settings.freezing_threshold, 77_u8);
    // A subaccount of zeros is that of the principal.
    let principal = agent.get_principal().unwrap();
    let spent = Nat::from(INITIAL - T - FEE);
    assert_eq!(balance_of(&agent, principal, subaccount).await, spent);
    assert_eq!(balance_of(&agent, principal, Some(vec![0; 32])).await, Nat::from(INITIAL));
}

#[tokio::test]
async fn a_canister_that_cannot_be_created_costs_nothing() {
    let server = Server::start().await;
    let agent = server.agent(ed25519(1));
    let of = |amount: u128| CreateArgs { amount: Nat::from(amount), ..CreateArgs::default() };
    let failed = |result: Created| match result {
        Created::Err(CreateError::FailedToCreate {
            error,
            refund_block: None,
            fee_block: None,
        }) => error,
        other => panic!("{other:?}"),
    };
    let poor = failed(create(&agent, of(CREATION - 1)).await);
    assert!(poor.contains("500000000000 cycles"), "{poor}");
    for amount in [INITIAL - FEE + 1, u128::MAX] {
        match create(&agent, of(amount)).await {
            Created::Err(CreateError::InsufficientFunds { balance }) => {
                assert_eq!(balance, Nat::from(INITIAL));
            }
            other => panic!("{other:?}"),
        }
    }
    let elsewhere = Some(SubnetSelection::Subnet { subnet: minting() });
    let creation_args = Some(CreationArgs { subnet_selection: elsewhere, settings: None });
    let elsewhere = failed(create(&agent, CreateArgs { creation_args, ..of(T) }).await);
    assert!(elsewhere.contains(&format!("no subnet {}", minting())), "{elsewhere}");
    let settings = CanisterSettings {
        compute_allocation: Some(Nat::from(101_u8)),
        ..CanisterSettings::default()
    };
    let creation_args = Some(CreationArgs { subnet_selection: None, settings: Some(settings) });
    let refused = failed(create(&agent, CreateArgs { creation_args, ..of(T) }).await);
    assert!(refused.contains("101"), "{refused}");
    assert_eq!(balance(&agent).await, Nat::from(INITIAL));
    // The whole balance can be spent.
    created(&agent, of(INITIAL - FEE)).await;
    assert_eq!(balance(&agent).await, Nat::from(0_u8));
}

#[tokio::test]
async fn cycles_are_withdrawn_to_canisters() {
    let (server, id) = Server::with(COUNTER).await;
    let agent = server.anonymous();
    let before = cycles_of(&agent, id).await;
    assert_eq!(withdraw(&agent, id, 3 * T).await.unwrap(), Nat::from(0_u8));
    assert_eq!(withdraw(&agent, id, 1).await.unwrap(), Nat::from(1_u8));
    assert_eq!(cycles_of(&agent, id).await, before.clone() + 3 * T + 1_u8);
    let left = Nat::from(INITIAL - 3 * T - 1 - 2 * FEE);
    assert_eq!(balance(&agent).await, left);

    match withdraw(&agent, minting(), T).await.unwrap_err() {
        WithdrawError::FailedToWithdraw { fee_block: None, rejection_reason, .. } => {
            assert!(rejection_reason.contains("not found"), "{rejection_reason}");
        }
        other => panic!("{other:?}"),
    }
    match withdraw(&agent, id, INITIAL).await.unwrap_err() {
        WithdrawError::InsufficientFunds { balance } => assert_eq!(balance, left),
        other => panic!("{other:?}"),
    }
    assert_eq!(balance(&agent).await, left);
    assert_eq!(cycles_of(&agent, id).await, before + 3 * T + 1_u8);
}

#[tokio::test]
async fn canisters_deposit_cycles() {
    let server = Server::start().await;
    let id = server.add(RELAY);
    let agent = server.anonymous();
    let to = Owned { owner: agent.get_principal().unwrap(), subaccount: None };
    let argument = Encode!(&DepositArgs { to: to.clone(), memo: None }).unwrap();
    let before = cycles_of(&agent, id).await;
    let reply = relay(&agent, id, T as u64, "deposit", &argument).await.unwrap();
    let Deposited { balance: deposited, block_index } = Decode!(&reply, Deposited).unwrap();
    assert_eq!((deposited.clone(), block_index), (Nat::from(INITIAL + T - FEE), Nat::from(0_u8)));
    assert_eq!(balance(&agent).await, deposited);
    let paid = before - cycles_of(&agent, id).await;
    assert!(paid > T && paid < T + T / 10, "{paid}");

    // What is refused is refunded.
    let before = cycles_of(&agent, id).await;
    let little = relay(&agent, id, FEE as u64 - 1, "deposit", &argument).await.unwrap_err();
    assert!(little.contains("less than the fee of 100000000"), "{little}");
    let broken = relay(&agent, id, T as u64, "deposit", b"DIDL").await.unwrap_err();
    assert!(broken.contains("trapped in 'deposit'"), "{broken}");
    let account = Encode!(&to).unwrap();
    let paying = relay(&agent, id, T as u64, "icrc1_balance_of", &account).await.unwrap_err();
    assert!(paying.contains("accepts cycles"), "{paying}");
    assert!(before - cycles_of(&agent, id).await < T / 10);
    // Queries can be called without cycles.
    let reply = relay(&agent, id, 0, "icrc1_balance_of", &account).await.unwrap();
    assert_eq!(Decode!(&reply, Nat).unwrap(), deposited);
    let missing = relay(&agent, id, 0, "create_canister", &argument).await.unwrap_err();
    assert!(missing.contains("has no update method 'create_canister'"), "{missing}");
}

#[tokio::test]
async fn other_messages_are_rejected() {
    let server = Server::start().await;
    let agent = server.anonymous();
    for (canister, method, code) in [
        (ledger(), "icrc1_transfer", "IC0536"),
        (ledger(), "deposit", "IC0536"),
        (minting(), "create_canister", "IC0536"),
        (ledger(), "create_canister", "IC0503"),
        (ledger(), "withdraw", "IC0503"),
        (ledger(), "icrc1_balance_of", "IC0503"),
    ] {
        let call = agent.update(&canister, method).with_arg(b"DIDL\0\x01\x7d\x05");
        let refused = call.call_and_wait().await.unwrap_err().to_string();
        assert!(refused.contains(code) && refused.contains(method), "{method}: {refused}");
    }
    for (canister, method, code) in [
        (ledger(), "create_canister", "IC0536"),
        (minting(), "get_subnet_types_to_subnets", "IC0536"),
        (ledger(), "icrc1_balance_of", "IC0503"),
    ] {
        let call = agent.query(&canister, method).with_arg(b"DIDL\0\x01\x7d\x05");
        let refused = call.call().await.unwrap_err().to_string();
        assert!(refused.contains(code) && refused.contains(method), "{method}: {refused}");
    }
    // A query as an update.
    let account = Owned { owner: Principal::anonymous(), subaccount: None };
    let reply = update(&agent, ledger(), "icrc1_balance_of", &Encode!(&account).unwrap()).await;
    assert_eq!(Decode!(&reply, Nat).unwrap(), Nat::from(INITIAL));
    // A subaccount of another length.
    let account = Owned { subaccount: Some(vec![1; 31]), ..account };
    let call = agent.query(&ledger(), "icrc1_balance_of").with_arg(Encode!(&account).unwrap());
    let refused = call.call().await.unwrap_err().to_string();
    assert!(refused.contains("IC0503"), "{refused}");
    let module = agent.read_state_canister_module_hash(ledger()).await;
    assert!(module.is_err(), "{module:?}");
}

#[tokio::test]
async fn there_is_room_for_so_many_canisters() {
    let server = Server::start().await;
    for _ in 0..999 {
        server.add_empty();
    }
    let agent = server.anonymous();
    let args = || CreateArgs { amount: Nat::from(T), ..CreateArgs::default() };
    let last = created(&agent, args()).await;
    let full = "there are 1000 canisters already";
    match create(&agent, args()).await {
        Created::Err(CreateError::FailedToCreate { error, .. }) => {
            assert!(error.contains(full), "{error}");
        }
        other => panic!("{other:?}"),
    }
    let management = ManagementCanister::create(&agent);
    let create = || {
        let create = management.create_canister().as_provisional_create_with_amount(None);
        create.with_effective_canister_id(last).call_and_wait()
    };
    let refused = create().await.unwrap_err().to_string();
    assert!(refused.contains(full), "{refused}");
    management.stop_canister(&last).call_and_wait().await.unwrap();
    management.delete_canister(&last).call_and_wait().await.unwrap();
    create().await.unwrap();
    assert_eq!(balance(&agent).await, Nat::from(INITIAL - T - FEE));
}
