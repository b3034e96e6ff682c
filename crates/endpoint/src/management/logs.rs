//! Logs of a canister.

use ic_error_types::ErrorCode;
use ic_management_canister_types::{
    CanisterLogFilter, CanisterLogRecord, FetchCanisterLogsArgs, FetchCanisterLogsResult,
    LogVisibility,
};

use candid::Principal;

use super::reply;
use crate::canister::Hosted;
use crate::outcome::Reject;
use crate::subnet::Run;

pub fn fetch(sender: Principal, args: FetchCanisterLogsArgs) -> Run {
    Box::new(move |hosted| {
        if !visible(hosted, &sender) {
            return Err(Reject::new(
                ErrorCode::CanisterRejectedMessage,
                format!("Caller {sender} is not allowed to access canister logs"),
            ));
        }
        let records = hosted.log.records().filter(|record| wanted(args.filter.as_ref(), record));
        reply(&FetchCanisterLogsResult { canister_log_records: records.cloned().collect() })
    })
}

fn visible(hosted: &Hosted, sender: &Principal) -> bool {
    let controls = hosted.canister.settings().controllers.contains(sender);
    match &hosted.settings.log_visibility {
        LogVisibility::Public => true,
        LogVisibility::Controllers => controls,
        LogVisibility::AllowedViewers(viewers) => controls || viewers.contains(sender),
    }
}

fn wanted(filter: Option<&CanisterLogFilter>, record: &CanisterLogRecord) -> bool {
    match filter {
        None => true,
        Some(CanisterLogFilter::ByIdx { start, end }) => (*start..*end).contains(&record.idx),
        Some(CanisterLogFilter::ByTimestampNanos { start, end }) => {
            (*start..*end).contains(&record.timestamp_nanos)
        }
    }
}
