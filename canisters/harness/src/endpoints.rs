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

/// Exports the whole interface for a [`Canister`](crate::Canister).
///
/// Every update is for controllers alone. What does not measure is a query: its
/// changes (a page cache that was filled, a connection that was opened) are dropped,
/// so that looking does not change what is measured next. What the suites measure with can
/// carry an id, and is then done once: a repeat is refused.
#[macro_export]
macro_rules! canister {
    ($canister:ty) => {
        use stablebench_protocol::{
            Description, Digest, DigestPart, Engine, Inspected, Job, Measurement, Part,
            Performed, PhaseCost, Result, SqliteConfig, SqliteSettings, Work, Worked,
        };

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
        fn stage_work(work: Work) -> Result<()> {
            controlled(|host| host.stage_work(work))
        }

        #[ic_cdk::update]
        fn stage_part(part: Part) -> Result<()> {
            controlled(|host| host.stage_part(&part))
        }

        #[ic_cdk::update(
            hidden = true,
            decode_with = "stablebench_harness::wire::call_id",
            encode_with = "stablebench_harness::wire::worked"
        )]
        fn run(call_id: u64) -> Result<Worked> {
            once(Some(call_id), |host| host.run())
        }

        #[ic_cdk::query(hidden = true, encode_with = "stablebench_harness::wire::worked")]
        fn run_query() -> Result<Worked> {
            HOST.with_borrow_mut(|host| host.run_query())
        }

        // What the two are in Candid, which the attributes above cannot tell.
        #[candid::candid_method(update, rename = "run")]
        #[allow(dead_code, reason = "only its type counts")]
        fn candid_of_run(_call_id: u64) -> Result<Worked> {
            run(_call_id)
        }

        #[candid::candid_method(query, rename = "run_query")]
        #[allow(dead_code, reason = "only its type counts")]
        fn candid_of_run_query() -> Result<Worked> {
            run_query()
        }

        #[ic_cdk::query]
        fn results(part: Part) -> Result<Option<Digest>> {
            HOST.with_borrow_mut(|host| host.results(&part))
        }

        #[ic_cdk::update]
        fn work(work: Work, call_id: Option<u64>) -> Result<Worked> {
            once(call_id, |host| host.work(&work))
        }

        #[ic_cdk::query]
        fn look(work: Work) -> Result<Worked> {
            HOST.with_borrow_mut(|host| host.look(&work))
        }

        #[ic_cdk::update]
        fn perform(part: Part, call_id: Option<u64>) -> Result<Performed> {
            once(call_id, |host| host.perform(&part))
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

        #[ic_cdk::update]
        fn add_users_btree(first_id: u64, step: u64, rows: u64) -> Result<Measurement> {
            controlled(|host| host.add(Engine::Btree, first_id, step, rows))
        }

        #[ic_cdk::update]
        fn add_users_sqlite(first_id: u64, step: u64, rows: u64) -> Result<Measurement> {
            controlled(|host| host.add(Engine::Sqlite, first_id, step, rows))
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

        #[ic_cdk::update]
        fn close_connection() -> Result<()> {
            controlled(|host| host.close_connection())
        }

        #[ic_cdk::update]
        fn vacuum() -> Result<Measurement> {
            controlled(|host| host.vacuum())
        }

        #[ic_cdk::query]
        fn sqlite_settings() -> Result<SqliteSettings> {
            HOST.with_borrow_mut(|host| host.sqlite_settings())
        }

        #[ic_cdk::query]
        fn digest(engine: Engine, part: Option<DigestPart>, limit: u64) -> Result<DigestPart> {
            HOST.with_borrow_mut(|host| host.digest(engine, part, limit))
        }

        #[ic_cdk::query]
        fn describe() -> Result<Description> {
            HOST.with_borrow_mut(|host| host.describe())
        }

        #[ic_cdk::pre_upgrade]
        fn pre_upgrade() {
            // A trap here keeps the canister as it is, which is what a failure asks for.
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
