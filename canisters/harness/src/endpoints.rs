//! The endpoints of every canister.

use stablebench_protocol::{Error, Result};

/// Refuses callers that are not controllers.
///
/// # Errors
///
/// [`Error::NotController`].
pub fn require_controller() -> Result<()> {
    if ic_cdk::api::is_controller(&ic_cdk::api::msg_caller()) {
        Ok(())
    } else {
        Err(Error::NotController)
    }
}

/// Exports the methods of `canisters/harness/harness.did` for a [`Canister`](crate::Canister), and its
/// interface in Candid, `include_bytes!` of a file. A suite may have a macro for methods of its own, which
/// follows this one and uses its `controlled` and `HOST`.
///
/// Updates are for controllers only. Methods that do not measure are queries: their changes (cached
/// pages, an opened connection) are dropped, so that looking does not change the next measurement.
/// The measuring methods of the suites take an id and execute each call once.
#[macro_export]
macro_rules! canister {
    ($canister:ty, $candid:expr) => {
        use stablebench_protocol::{
            Description, Digest, DigestPart, Executed, Inspected, Job, Kept, Part, PartCost, PhaseCost,
            Result, Setting,
        };

        /// The interface, for `dfx`, `icp` and web interfaces.
        #[used]
        #[cfg_attr(
            target_family = "wasm",
            unsafe(link_section = "icp:public candid:service")
        )]
        static CANDID: [u8; $candid.len()] = *$candid;

        thread_local! {
            static HOST: std::cell::RefCell<$crate::Host<$canister>> = std::cell::RefCell::default();
        }

        fn controlled<T>(
            call: impl FnOnce(&mut $crate::Host<$canister>) -> Result<T>,
        ) -> Result<T> {
            $crate::require_controller()?;
            HOST.with_borrow_mut(call)
        }

        fn once<T>(
            call_id: Option<u64>,
            call: impl FnOnce(&mut $crate::Host<$canister>) -> Result<T>,
        ) -> Result<T> {
            controlled(|host| {
                host.admit(call_id)?;
                call(host)
            })
        }

        #[ic_cdk::update]
        fn stage(part: Part) -> Result<()> {
            controlled(|host| host.stage(&part))
        }

        #[ic_cdk::update(
            hidden = true,
            decode_with = "stablebench_harness::wire::call_id",
            encode_with = "stablebench_harness::wire::part_cost"
        )]
        fn run(call_id: u64) -> Result<PartCost> {
            once(Some(call_id), |host| host.run())
        }

        #[ic_cdk::query(hidden = true, encode_with = "stablebench_harness::wire::part_cost")]
        fn run_query() -> Result<PartCost> {
            HOST.with_borrow_mut(|host| host.run_query())
        }

        // The types of both in Candid, which the attributes above cannot express.
        #[candid::candid_method(update, rename = "run")]
        #[allow(dead_code, reason = "only the type is used")]
        fn candid_of_run(_call_id: u64) -> Result<PartCost> {
            run(_call_id)
        }

        #[candid::candid_method(query, rename = "run_query")]
        #[allow(dead_code, reason = "only the type is used")]
        fn candid_of_run_query() -> Result<PartCost> {
            run_query()
        }

        #[ic_cdk::query]
        fn results(part: Part) -> Result<Option<Digest>> {
            HOST.with_borrow_mut(|host| host.results(&part))
        }

        #[ic_cdk::update]
        fn execute(part: Part, call_id: Option<u64>) -> Result<Executed> {
            once(call_id, |host| host.execute(&part))
        }

        #[ic_cdk::update]
        fn phases(part: Part, call_id: Option<u64>) -> Result<Vec<PhaseCost>> {
            once(call_id, |host| host.phases(&part))
        }

        #[ic_cdk::query]
        fn content(job: Job, part: Option<DigestPart>, limit: u64) -> Result<DigestPart> {
            HOST.with_borrow_mut(|host| host.content(&job, part, limit))
        }

        #[ic_cdk::query]
        fn inspect(job: Job) -> Result<Inspected> {
            HOST.with_borrow_mut(|host| host.inspect(&job))
        }

        #[ic_cdk::query]
        fn kept(job: Job, position: u64) -> Result<Kept> {
            HOST.with_borrow_mut(|host| host.kept(&job, position))
        }

        #[ic_cdk::update]
        fn configure(settings: Vec<Setting>) -> Result<Vec<Setting>> {
            controlled(|host| host.configure(&settings))
        }

        #[ic_cdk::query]
        fn describe() -> Result<Description> {
            HOST.with_borrow_mut(|host| host.describe())
        }

        #[ic_cdk::pre_upgrade]
        fn pre_upgrade() {
            // A trap keeps the canister as it is.
            if let Err(error) = HOST.with_borrow_mut(|host| host.pre_upgrade()) {
                ic_cdk::api::trap(error.to_string());
            }
        }

        #[ic_cdk::post_upgrade]
        fn post_upgrade() {
            HOST.with_borrow_mut(|host| host.post_upgrade());
        }
    };
}
