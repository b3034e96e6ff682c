//! The canisters of the network that clients call to create a canister and to give it cycles: as much
//! of them as that needs.
//!
//! | canister | methods |
//! |---|---|
//! | cycles minting canister | `get_default_subnets` |
//! | cycles ledger | `icrc1_balance_of`, `create_canister`, `withdraw`; `deposit` for canisters |
//!
//! Every account of the ledger begins with a million T cycles. The ledger keeps the balances of those
//! that have changed, and takes the fees of the real one. It creates a canister or adds to its balance
//! by a message to the management canister:
//!
//! ```text
//!   update ──→ withdraw from the account ──→ management canister ──→ settle: reply, or refund
//! ```
//!
//! Source: `cycles-ledger.did` of the cycles ledger. Fields that are not decoded have no effect.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use candid::{CandidType, Deserialize, Encode, Nat, Principal};
use ic_management_canister_types::{
    CanisterIdRecord, CanisterSettings, ProvisionalCreateCanisterWithCyclesArgs,
    ProvisionalTopUpCanisterArgs,
};
use serde::de::DeserializeOwned;
use stablebench_replica::decoding::{Quotas, decode_argument, decode_one};
use stablebench_replica::subnet::RemoteCall;
use stablebench_replica::{Cycles, ErrorCode, Reject, RejectCode};

use crate::message::Message;

/// The cycles minting canister.
const MINTING: Principal = Principal::from_slice(&[0, 0, 0, 0, 0, 0, 0, 4, 1, 1]);
/// The cycles ledger.
const LEDGER: Principal = Principal::from_slice(&[0, 0, 0, 0, 2, 16, 0, 2, 1, 1]);
/// The ids of these canisters, in order.
pub const IDS: [Principal; 2] = [MINTING, LEDGER];

/// The balance with which an account begins.
const INITIAL_BALANCE: u128 = 1_000_000_000_000_000_000;
/// Cycles that the ledger takes for a transaction.
const FEE: u128 = 100_000_000;
/// The most accounts whose balances have changed.
const MAX_ACCOUNTS: usize = 100_000;
/// The quotas for decoding an argument, several times what a valid one needs.
const QUOTAS: Quotas = Quotas { decoding: 1_000_000, skipping: 10_000 };

#[derive(CandidType, Deserialize, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Account {
    owner: Principal,
    subaccount: Option<[u8; 32]>,
}

impl Account {
    fn new(owner: Principal, subaccount: Option<[u8; 32]>) -> Self {
        Self { owner, subaccount }.normal()
    }

    /// An account without a subaccount is that of 32 zeros.
    fn normal(self) -> Self {
        Self { subaccount: self.subaccount.filter(|bytes| *bytes != [0; 32]), ..self }
    }
}

#[derive(CandidType, Deserialize)]
struct CreateArgs {
    from_subaccount: Option<[u8; 32]>,
    amount: Nat,
    creation_args: Option<CreationArgs>,
}

#[derive(CandidType, Deserialize)]
struct CreationArgs {
    settings: Option<CanisterSettings>,
    subnet_selection: Option<SubnetSelection>,
}

#[derive(CandidType, Deserialize)]
enum SubnetSelection {
    Subnet { subnet: Principal },
    Filter { subnet_type: Option<String> },
}

#[derive(CandidType, Deserialize)]
struct WithdrawArgs {
    from_subaccount: Option<[u8; 32]>,
    to: Principal,
    amount: Nat,
}

#[derive(CandidType, Deserialize)]
struct DepositArgs {
    to: Account,
}

#[derive(CandidType)]
struct Created {
    block_id: Nat,
    canister_id: Principal,
}

#[derive(CandidType)]
struct Deposited {
    balance: Nat,
    block_index: Nat,
}

/// The errors of `create_canister` and `withdraw` that occur here.
#[derive(CandidType)]
enum Error {
    InsufficientFunds { balance: Nat },
    TemporarilyUnavailable,
    FailedToCreate { fee_block: Option<Nat>, refund_block: Option<Nat>, error: String },
    FailedToWithdraw { fee_block: Option<Nat>, rejection_code: Code, rejection_reason: String },
}

#[derive(CandidType)]
enum Code {
    SysFatal,
    SysTransient,
    DestinationInvalid,
    CanisterReject,
    CanisterError,
    Unknown,
}

impl From<RejectCode> for Code {
    fn from(code: RejectCode) -> Self {
        match code {
            RejectCode::SysFatal => Self::SysFatal,
            RejectCode::SysTransient => Self::SysTransient,
            RejectCode::DestinationInvalid => Self::DestinationInvalid,
            RejectCode::CanisterReject => Self::CanisterReject,
            RejectCode::CanisterError => Self::CanisterError,
            RejectCode::SysUnknown => Self::Unknown,
        }
    }
}

/// The purpose of a withdrawal.
#[derive(Clone, Copy)]
enum Purpose {
    Create,
    TopUp,
}

/// Cycles that were withdrawn for a message to the management canister.
pub struct Withdrawal {
    account: Account,
    amount: u128,
    purpose: Purpose,
}

/// The result of an update.
pub enum Update {
    /// The canister replies.
    Reply(Vec<u8>),
    /// The reply follows from that to a message to the management canister.
    Manage(Message, Withdrawal),
}

#[derive(Default)]
struct State {
    /// Balances that have changed.
    balances: BTreeMap<Account, u128>,
    /// Number of transactions.
    blocks: u64,
}

impl State {
    fn balance(&self, account: &Account) -> u128 {
        self.balances.get(account).copied().unwrap_or(INITIAL_BALANCE)
    }

    /// Returns `true` if there is room for the balance of an account.
    fn has_room(&self, account: &Account) -> bool {
        self.balances.len() < MAX_ACCOUNTS || self.balances.contains_key(account)
    }

    /// Returns the number of a new transaction.
    fn add_block(&mut self) -> Nat {
        self.blocks += 1;
        Nat::from(self.blocks - 1)
    }
}

/// The canisters of one subnet.
pub struct System {
    subnet: Principal,
    /// The fee for the creation of a canister.
    creation: u128,
    state: Mutex<State>,
}

impl System {
    /// Creates the canisters for a subnet on which the creation of a canister costs `creation`.
    pub fn new(subnet: Principal, creation: Cycles) -> Self {
        Self { subnet, creation: creation.get(), state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code panics between two related changes.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers a query.
    ///
    /// # Errors
    ///
    /// If the canister has no such query, or the argument cannot be decoded.
    pub fn query(&self, message: &Message) -> Result<Vec<u8>, Reject> {
        self.read(message).unwrap_or_else(|| Err(missing("query", message)))
    }

    /// Answers the methods that change nothing. `None` if this is none of them.
    fn read(&self, message: &Message) -> Option<Result<Vec<u8>, Reject>> {
        Some(match (message.canister, message.method.as_str()) {
            (MINTING, "get_default_subnets") => encode(&vec![self.subnet]),
            (LEDGER, "icrc1_balance_of") => decode::<Account>(message)
                .and_then(|account| encode(&Nat::from(self.lock().balance(&account.normal())))),
            _ => return None,
        })
    }

    /// Executes an update of a user.
    ///
    /// # Errors
    ///
    /// If the canister has no such method, or the argument cannot be decoded.
    pub fn update(&self, message: &Message) -> Result<Update, Reject> {
        if let Some(read) = self.read(message) {
            return read.map(Update::Reply);
        }
        let sent = match (message.canister, message.method.as_str()) {
            (LEDGER, "create_canister") => self.create(message)?,
            (LEDGER, "withdraw") => self.top_up(message)?,
            _ => return Err(missing("update", message)),
        };
        match sent {
            Ok((message, withdrawal)) => Ok(Update::Manage(message, withdrawal)),
            Err(error) => encode(&Err::<Nat, _>(error)).map(Update::Reply),
        }
    }

    /// Withdraws cycles to create a canister, which begins with what is left after the fee.
    fn create(&self, message: &Message) -> Result<Result<(Message, Withdrawal), Error>, Reject> {
        let args: CreateArgs = decode(message)?;
        let (settings, selection) = match args.creation_args {
            Some(args) => (args.settings.unwrap_or_default(), args.subnet_selection),
            None => Default::default(),
        };
        if let Some(SubnetSelection::Subnet { subnet }) = selection
            && subnet != self.subnet
        {
            return Ok(Err(not_created(format!("there is no subnet {subnet}"))));
        }
        let account = Account::new(message.sender, args.from_subaccount);
        let amount = limited(&args.amount);
        let Some(balance) = amount.checked_sub(self.creation) else {
            let error = format!("the creation of a canister costs {} cycles", self.creation);
            return Ok(Err(not_created(error)));
        };
        let controllers = settings.controllers.or_else(|| Some(vec![message.sender]));
        let argument = encode(&ProvisionalCreateCanisterWithCyclesArgs {
            amount: Some(Nat::from(balance)),
            settings: Some(CanisterSettings { controllers, ..settings }),
            specified_id: None,
            sender_canister_version: None,
        })?;
        let create = manage(message, "provisional_create_canister_with_cycles", argument);
        let withdrawal = self.withdraw(account, amount, Purpose::Create);
        Ok(withdrawal.map(|withdrawal| (create, withdrawal)))
    }

    /// Withdraws cycles for a canister.
    fn top_up(&self, message: &Message) -> Result<Result<(Message, Withdrawal), Error>, Reject> {
        let args: WithdrawArgs = decode(message)?;
        let account = Account::new(message.sender, args.from_subaccount);
        let amount = limited(&args.amount);
        let top_up = ProvisionalTopUpCanisterArgs { canister_id: args.to, amount: args.amount };
        let top_up = manage(message, "provisional_top_up_canister", encode(&top_up)?);
        let withdrawal = self.withdraw(account, amount, Purpose::TopUp);
        Ok(withdrawal.map(|withdrawal| (top_up, withdrawal)))
    }

    fn withdraw(
        &self,
        account: Account,
        amount: u128,
        purpose: Purpose,
    ) -> Result<Withdrawal, Error> {
        let mut state = self.lock();
        let balance = state.balance(&account);
        let Some(left) = amount.checked_add(FEE).and_then(|all| balance.checked_sub(all)) else {
            return Err(Error::InsufficientFunds { balance: Nat::from(balance) });
        };
        if !state.has_room(&account) {
            return Err(Error::TemporarilyUnavailable);
        }
        state.balances.insert(account, left);
        Ok(Withdrawal { account, amount, purpose })
    }

    /// Returns the ledger's reply for the response of the management canister. A withdrawal without
    /// effect is refunded with its fee.
    ///
    /// # Errors
    ///
    /// If the reply cannot be encoded.
    pub fn settle(
        &self,
        withdrawal: Withdrawal,
        response: Result<Vec<u8>, Reject>,
    ) -> Result<Vec<u8>, Reject> {
        let Withdrawal { account, amount, purpose } = withdrawal;
        let mut state = self.lock();
        let Reject { code, message } = match response {
            Ok(reply) => {
                let block = state.add_block();
                return match purpose {
                    Purpose::Create => {
                        let canister_id = decode_reply(&reply)?;
                        encode(&Ok::<_, Error>(Created { block_id: block, canister_id }))
                    }
                    Purpose::TopUp => encode(&Ok::<_, Error>(block)),
                };
            }
            Err(reject) => reject,
        };
        let balance = state.balance(&account).saturating_add(amount + FEE);
        state.balances.insert(account, balance);
        encode(&Err::<Nat, _>(match purpose {
            Purpose::Create => not_created(message),
            Purpose::TopUp => Error::FailedToWithdraw {
                fee_block: None,
                rejection_code: code.reject_code().into(),
                rejection_reason: message,
            },
        }))
    }

    /// Answers a call of a canister. `None` if it is to another canister.
    pub fn call(&self, call: &RemoteCall<'_>) -> Option<Result<Vec<u8>, String>> {
        if !IDS.contains(&call.callee) {
            return None;
        }
        let message = Message {
            sender: call.caller,
            canister: call.callee,
            method: call.method.to_owned(),
            argument: call.argument.to_vec(),
        };
        let answer = match (call.callee, call.method) {
            (LEDGER, "deposit") => self.deposit(&message, call.cycles),
            // A reply accepts all cycles.
            _ if call.cycles > Cycles(0) => Err(missing("update that accepts cycles", &message)),
            _ => self.read(&message).unwrap_or_else(|| Err(missing("update", &message))),
        };
        Some(answer.map_err(|reject| reject.message))
    }

    fn deposit(&self, message: &Message, cycles: Cycles) -> Result<Vec<u8>, Reject> {
        let DepositArgs { to } = decode(message)?;
        let account = to.normal();
        let mut state = self.lock();
        let Some(amount) = cycles.get().checked_sub(FEE) else {
            let text = format!("{cycles} cycles are less than the fee of {FEE}");
            return Err(rejected(message, &text));
        };
        if !state.has_room(&account) {
            return Err(rejected(message, "the ledger has no room for another account"));
        }
        let balance = state.balance(&account).saturating_add(amount);
        state.balances.insert(account, balance);
        let block_index = state.add_block();
        encode(&Deposited { balance: Nat::from(balance), block_index })
    }
}

fn manage(message: &Message, method: &str, argument: Vec<u8>) -> Message {
    let canister = Principal::management_canister();
    Message { sender: message.sender, canister, method: method.to_owned(), argument }
}

/// An amount, or the largest number, which no account has.
fn limited(amount: &Nat) -> u128 {
    u128::try_from(amount.0.clone()).unwrap_or(u128::MAX)
}

fn not_created(error: String) -> Error {
    Error::FailedToCreate { fee_block: None, refund_block: None, error }
}

fn missing(kind: &str, message: &Message) -> Reject {
    let Message { canister, method, .. } = message;
    let text = format!("Canister {canister} has no {kind} method '{method}' on this local subnet");
    Reject { code: ErrorCode::CanisterMethodNotFound, message: text }
}

/// The reject of a canister that traps.
fn rejected(message: &Message, text: &str) -> Reject {
    let Message { canister, method, .. } = message;
    let message = format!("Canister {canister} trapped in '{method}': {text}");
    Reject { code: ErrorCode::CanisterCalledTrap, message }
}

fn decode<T: CandidType + DeserializeOwned>(message: &Message) -> Result<T, Reject> {
    decode_argument::<(T,)>(&message.argument, QUOTAS)
        .map(|(one,)| one)
        .map_err(|error| rejected(message, &error.to_string()))
}

fn decode_reply(reply: &[u8]) -> Result<Principal, Reject> {
    decode_one::<CanisterIdRecord>(reply)
        .map(|created| created.canister_id)
        .map_err(|error| internal(&error))
}

fn encode(value: &impl CandidType) -> Result<Vec<u8>, Reject> {
    Encode!(value).map_err(|error| internal(&error))
}

fn internal(error: &candid::Error) -> Reject {
    Reject { code: ErrorCode::CanisterWasmEngineError, message: error.to_string() }
}
