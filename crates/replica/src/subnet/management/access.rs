//! Permissions to manage a canister and to read its log and snapshots.

use candid::Principal;
use ic_management_canister_types::SnapshotVisibility;

use super::call::{invalid, refusal};
use crate::fault::{ErrorCode, Reject};
use crate::subnet::member::Member;

/// Checks that somebody controls a canister.
pub fn check_controller(member: &Member, caller: &Principal) -> Result<(), Reject> {
    let controllers = &member.canister.settings().controllers;
    if controllers.contains(caller) {
        return Ok(());
    }
    let id = member.canister.id();
    let controllers: Vec<String> = controllers.iter().map(Principal::to_text).collect();
    Err(refusal(
        member.rules(),
        ErrorCode::CanisterInvalidController,
        format!(
            "Only the controllers of the canister {id} can control it.\nCanister's controllers: \
             {}\nSender's ID: {caller}",
            controllers.join(" ")
        ),
        "Execute this call from a controller of the target canister or add the current caller as a \
         controller.",
        "invalid-controller",
    ))
}

/// Checks that somebody may list and read the snapshots of a canister.
pub fn check_viewer(member: &Member, caller: &Principal, method: &str) -> Result<(), Reject> {
    if !member.rules().set().snapshot_viewers {
        return check_controller(member, caller);
    }
    let visible = match &member.managed.snapshot_visibility {
        SnapshotVisibility::Public => true,
        SnapshotVisibility::Controllers => false,
        SnapshotVisibility::AllowedViewers(viewers) => viewers.contains(caller),
    };
    match visible || check_controller(member, caller).is_ok() {
        true => Ok(()),
        false => Err(invalid(
            ErrorCode::CanisterRejectedMessage,
            format!("Caller {caller} is not allowed to call {method}"),
        )),
    }
}
