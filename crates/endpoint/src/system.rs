//! The canisters of the network that clients ask before they create a canister: as much of them as
//! that needs.
//!
//! | canister | methods |
//! |---|---|
//! | cycles minting canister | `get_default_subnets` |
//! | cycles ledger | `create_canister`, `icrc1_balance_of`; `deposit` of canisters |
//!
//! Cycles are free here: the ledger has any balance, and creating a canister takes nothing from it.

use candid::{CandidType, Decode, Deserialize, Encode, Nat, Principal};
use ic_management_canister_types::{
    CanisterIdRecord, CanisterSettings, ProvisionalCreateCanisterWithCyclesArgs,
};
use stablebench_replica::subnet::OutsideCall;
use stablebench_replica::{ErrorCode, Reject};

use crate::keys::Keys;
use crate::messages::Message;

/// The cycles minting canister.
const MINTING: Principal = Principal::from_slice(&[0, 0, 0, 0, 0, 0, 0, 4, 1, 1]);
/// The cycles ledger.
const LEDGER: Principal = Principal::from_slice(&[0, 0, 0, 0, 2, 16, 0, 2, 1, 1]);
/// The balance of every account.
const BALANCE: u128 = 1_000_000_000_000_000_000;

/// The ids of these canisters.
pub const IDS: [Principal; 2] = [MINTING, LEDGER];

#[derive(CandidType, Deserialize)]
struct CreateArgs {
    amount: Nat,
    creation_args: Option<CreationArgs>,
}

#[derive(CandidType, Deserialize)]
struct CreationArgs {
    settings: Option<CanisterSettings>,
}

#[derive(CandidType)]
struct Created {
    block_id: Nat,
    canister_id: Principal,
}

#[derive(CandidType)]
enum CreateResult {
    Ok(Created),
    Err(CreateError),
}

#[derive(CandidType)]
enum CreateError {
    GenericError { message: String, error_code: Nat },
}

/// Answers a query.
///
/// # Errors
///
/// If the canister has no such query.
pub fn query(keys: &Keys, message: &Message) -> Result<Vec<u8>, Reject> {
    let encoded = match (message.canister, message.method.as_str()) {
        (MINTING, "get_default_subnets") => Encode!(&vec![keys.subnet()]),
        (LEDGER, "icrc1_balance_of") => Encode!(&Nat::from(BALANCE)),
        _ => return Err(missing(message)),
    };
    encoded.map_err(|error| invalid(&error))
}

/// Returns the message to the management canister that an update stands for. Its reply is passed to
/// [`created`].
///
/// # Errors
///
/// If the canister has no such update, or the argument cannot be decoded.
pub fn update(message: &Message) -> Result<Message, Reject> {
    if (message.canister, message.method.as_str()) != (LEDGER, "create_canister") {
        return Err(missing(message));
    }
    let args = Decode!(&message.argument, CreateArgs).map_err(|error| invalid(&error))?;
    let mut settings = args.creation_args.and_then(|args| args.settings).unwrap_or_default();
    settings.controllers.get_or_insert_with(|| vec![message.sender]);
    let create = ProvisionalCreateCanisterWithCyclesArgs {
        amount: Some(args.amount),
        settings: Some(settings),
        specified_id: None,
        sender_canister_version: None,
    };
    Ok(Message {
        sender: message.sender,
        canister: Principal::management_canister(),
        method: "provisional_create_canister_with_cycles".to_owned(),
        argument: Encode!(&create).map_err(|error| invalid(&error))?,
    })
}

/// Returns the ledger's reply for that of the management canister.
pub fn created(response: Result<Vec<u8>, Reject>) -> Result<Vec<u8>, Reject> {
    let result = match response {
        Ok(reply) => {
            let created = Decode!(&reply, CanisterIdRecord).map_err(|error| invalid(&error))?;
            let canister_id = created.canister_id;
            CreateResult::Ok(Created { block_id: Nat::from(0_u8), canister_id })
        }
        Err(Reject { code, message }) => {
            let error_code = Nat::from(code.number());
            CreateResult::Err(CreateError::GenericError { message, error_code })
        }
    };
    Encode!(&result).map_err(|error| invalid(&error))
}

#[derive(CandidType)]
struct Deposited {
    balance: Nat,
    block_index: Nat,
}

/// Answers the calls of canisters: deposits of cycles, which are lost.
pub fn call(call: &OutsideCall<'_>) -> Option<Result<Vec<u8>, String>> {
    if !IDS.contains(&call.callee) {
        return None;
    }
    let OutsideCall { callee, method, .. } = call;
    Some(match (*callee, *method) {
        (LEDGER, "deposit") => {
            let deposited = Deposited { balance: Nat::from(BALANCE), block_index: Nat::from(0_u8) };
            Encode!(&deposited).map_err(|error| error.to_string())
        }
        _ => Err(format!("Canister {callee} has no method '{method}' on this local endpoint.")),
    })
}

fn missing(message: &Message) -> Reject {
    let Message { canister, method, .. } = message;
    Reject {
        code: ErrorCode::CanisterMethodNotFound,
        message: format!("Canister {canister} has no method '{method}' on this local endpoint."),
    }
}

fn invalid(error: &candid::Error) -> Reject {
    let message = format!("Error decoding candid: {error:#}");
    Reject { code: ErrorCode::InvalidManagementPayload, message }
}
