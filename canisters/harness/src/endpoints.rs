//! The endpoints of every canister.

use stablebench_protocol::{Error, Result};

/// The interface of every canister.
pub const CANDID: [u8; include_bytes!("../../bench.did").len()] =
    *include_bytes!("../../bench.did");

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

/// Exports the interface for a [`Canister`](crate::Canister).
///
/// Updates are for controllers only. Methods that do not measure are queries: their changes (cached
/// pages, an opened connection) are dropped, so that looking does not change the next measurement.
/// The measuring methods of the suites take an id and execute each call once.
#[macro_export]
macro_rules! canister {
    ($canister:ty) => {
        use stablebench_protocol::{
            Description, Digest, DigestPart, Engine, Executed, Inspected, Job, Kept, Measurement, Part,
            PartCost, PhaseCost, Result, Setting, SqliteConfig, SqliteSettings,
        };

        /// The interface, for `dfx`, `icp` and web interfaces.
        #[used]
        #[cfg_attr(
            target_family = "wasm",
            unsafe(link_section = "icp:public candid:service")
        )]
        static CANDID: [u8; $crate::CANDID.len()] = $crate::CANDID;

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

        #[ic_cdk::update]
        fn add_users_btree(first_id: u64, step: u64, rows: u64) -> Result<Measurement> {
            controlled(|host| host.add(Engine::BTREE, first_id, step, rows))
        }

        #[ic_cdk::update]
        fn add_users_sqlite(first_id: u64, step: u64, rows: u64) -> Result<Measurement> {
            controlled(|host| host.add(Engine::SQLITE, first_id, step, rows))
        }

        #[ic_cdk::update]
        fn add_users(engine: Engine, first_id: u64, step: u64, rows: u64) -> Result<Measurement> {
            controlled(|host| host.add(engine, first_id, step, rows))
        }

        #[ic_cdk::update]
        fn insert_middle(engine: Engine, rows: u64) -> Result<Measurement> {
            controlled(|host| host.insert_middle(engine, rows))
        }

        #[ic_cdk::update]
        fn insert_end(engine: Engine, rows: u64) -> Result<Measurement> {
            controlled(|host| host.insert_end(engine, rows))
        }

        #[ic_cdk::update]
        fn read_users(engine: Engine, first_id: u64, step: u64, rows: u64) -> Result<Measurement> {
            controlled(|host| host.read(engine, first_id, step, rows))
        }

        #[ic_cdk::update]
        fn scan_users(engine: Engine, limit: u64) -> Result<Measurement> {
            controlled(|host| host.scan(engine, limit))
        }

        #[ic_cdk::update]
        fn update_users(
            engine: Engine,
            first_id: u64,
            step: u64,
            rows: u64,
        ) -> Result<Measurement> {
            controlled(|host| host.update(engine, first_id, step, rows))
        }

        #[ic_cdk::update]
        fn delete_users(
            engine: Engine,
            first_id: u64,
            step: u64,
            rows: u64,
        ) -> Result<Measurement> {
            controlled(|host| host.delete(engine, first_id, step, rows))
        }

        #[ic_cdk::update]
        fn set_payload(bytes: u32) -> Result<()> {
            controlled(|host| host.set_payload(bytes))
        }

        #[ic_cdk::update]
        fn reset(engine: Engine) -> Result<()> {
            controlled(|host| host.reset(engine))
        }

        #[ic_cdk::update]
        fn configure_sqlite(config: SqliteConfig) -> Result<SqliteSettings> {
            controlled(|host| host.configure_sqlite(config))
        }

        #[ic_cdk::query]
        fn sqlite_settings() -> Result<SqliteSettings> {
            HOST.with_borrow_mut(|host| host.sqlite_settings())
        }

        #[ic_cdk::update]
        fn close_connection() -> Result<()> {
            controlled(|host| host.close_connection())
        }

        #[ic_cdk::update]
        fn vacuum() -> Result<Measurement> {
            controlled(|host| host.vacuum())
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
