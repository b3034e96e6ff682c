//! The methods that are called by hand: they check ids first, and then do the work, measured.

use super::{
    KeyValue, Manner, PayloadBytes, RowEngines, ValidOperation, Write, check_payload, check_rows,
};
use crate::job::{Operation, Selection};
use crate::work::Ids;
use stablebench_harness::{Host, max_rows, measure_step};
use stablebench_protocol::{Engine, Measurement, Result, SqliteConfig, SqliteSettings};

/// The methods of a canister that offers the suite.
pub trait ByHand {
    /// Adds `rows` rows, `step` apart, starting at `first`.
    ///
    /// # Errors
    ///
    /// If the ids are invalid or exist.
    fn add(&mut self, engine: Engine, first: u64, step: u64, rows: u64) -> Result<Measurement>;

    /// Adds rows between the rows around the half; see [`Ids::middle`].
    ///
    /// # Errors
    ///
    /// If they do not fit there, or exist.
    fn insert_middle(&mut self, engine: Engine, rows: u64) -> Result<Measurement>;

    /// Adds rows after the last; see [`Ids::end`].
    ///
    /// # Errors
    ///
    /// If ids would overflow.
    fn insert_end(&mut self, engine: Engine, rows: u64) -> Result<Measurement>;

    /// Looks rows up one by one. The measurement's `rows` are those that exist.
    ///
    /// # Errors
    ///
    /// If the ids are invalid.
    fn read(&mut self, engine: Engine, first: u64, step: u64, rows: u64) -> Result<Measurement>;

    /// Reads the first `limit` rows.
    ///
    /// # Errors
    ///
    /// If the limit is 0 or too large.
    fn scan(&mut self, engine: Engine, limit: u64) -> Result<Measurement>;

    /// Replaces the payloads of rows by those of updated rows.
    ///
    /// # Errors
    ///
    /// If the ids are invalid or one does not exist.
    fn update(&mut self, engine: Engine, first: u64, step: u64, rows: u64) -> Result<Measurement>;

    /// Removes rows.
    ///
    /// # Errors
    ///
    /// If the ids are invalid or one does not exist.
    fn delete(&mut self, engine: Engine, first: u64, step: u64, rows: u64) -> Result<Measurement>;

    /// Sets the payload of rows that methods called by hand write.
    ///
    /// # Errors
    ///
    /// If it is too long.
    fn set_payload(&mut self, bytes: u32) -> Result<()>;

    /// Removes all rows of an engine.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn reset(&mut self, engine: Engine) -> Result<()>;

    /// Opens SQLite's connection again with these settings.
    ///
    /// # Errors
    ///
    /// If a setting was not taken.
    fn configure_sqlite(&mut self, config: SqliteConfig) -> Result<SqliteSettings>;

    /// Returns the settings of SQLite's connection.
    ///
    /// # Errors
    ///
    /// SQLite's.
    fn sqlite_settings(&mut self) -> Result<SqliteSettings>;

    /// Closes SQLite's connection: the next work opens it, and pays for that.
    ///
    /// # Errors
    ///
    /// If there is no SQLite.
    fn close_connection(&mut self) -> Result<()>;

    /// `VACUUM` on an open connection.
    ///
    /// # Errors
    ///
    /// SQLite's.
    fn vacuum(&mut self) -> Result<Measurement>;
}

impl<C: RowEngines> ByHand for Host<C> {
    fn add(&mut self, engine: Engine, first: u64, step: u64, rows: u64) -> Result<Measurement> {
        whole(self.canister(), engine, Operation::Insert(Selection::Step { first, step, rows }))
    }

    fn insert_middle(&mut self, engine: Engine, rows: u64) -> Result<Measurement> {
        insert_at(self.canister(), engine, rows, Ids::middle)
    }

    fn insert_end(&mut self, engine: Engine, rows: u64) -> Result<Measurement> {
        insert_at(self.canister(), engine, rows, Ids::end)
    }

    fn read(&mut self, engine: Engine, first: u64, step: u64, rows: u64) -> Result<Measurement> {
        whole(self.canister(), engine, Operation::Read(Selection::Step { first, step, rows }))
    }

    fn scan(&mut self, engine: Engine, limit: u64) -> Result<Measurement> {
        whole(self.canister(), engine, Operation::Scan(limit))
    }

    fn update(&mut self, engine: Engine, first: u64, step: u64, rows: u64) -> Result<Measurement> {
        whole(self.canister(), engine, Operation::Update(Selection::Step { first, step, rows }))
    }

    fn delete(&mut self, engine: Engine, first: u64, step: u64, rows: u64) -> Result<Measurement> {
        whole(self.canister(), engine, Operation::Delete(Selection::Step { first, step, rows }))
    }

    fn set_payload(&mut self, bytes: u32) -> Result<()> {
        check_payload(bytes)?;
        *self.canister().payload() = PayloadBytes(bytes);
        Ok(())
    }

    fn reset(&mut self, engine: Engine) -> Result<()> {
        let engine = self.canister().engine(engine)?;
        engine.prepare()?;
        engine.reset()
    }

    fn configure_sqlite(&mut self, config: SqliteConfig) -> Result<SqliteSettings> {
        self.canister().database()?.configure(config)
    }

    fn sqlite_settings(&mut self) -> Result<SqliteSettings> {
        self.canister().database()?.settings()
    }

    fn close_connection(&mut self) -> Result<()> {
        self.canister().database()?.close();
        Ok(())
    }

    fn vacuum(&mut self) -> Result<Measurement> {
        let database = self.canister().database()?;
        database.open()?;
        measure_step(|| database.vacuum())
    }
}

/// The payload of rows that are written.
fn payload(canister: &mut impl RowEngines) -> u32 {
    canister.payload().0
}

/// All rows of an operation, checked and then measured.
fn whole<C: RowEngines>(
    canister: &mut C,
    engine: Engine,
    operation: Operation,
) -> Result<Measurement> {
    let work = ValidOperation::new(&operation, max_rows(payload(canister)))?;
    checked(canister, engine, |_| Ok(work))
}

fn insert_at<C: RowEngines>(
    canister: &mut C,
    engine: Engine,
    rows: u64,
    choose: impl FnOnce(Option<u64>, u64) -> Result<Ids>,
) -> Result<Measurement> {
    check_rows(rows, max_rows(payload(canister)))?;
    checked(canister, engine, |engine| {
        Ok(ValidOperation::Write(Write::Insert, choose(engine.last_id()?, rows)?.into()))
    })
}

/// Does the checks, which leave the engine as they found it, and then the work.
fn checked<'a, C: RowEngines>(
    canister: &mut C,
    engine: Engine,
    choose: impl FnOnce(&mut dyn KeyValue) -> Result<ValidOperation<'a>>,
) -> Result<Measurement> {
    let payload_bytes = payload(canister);
    let engine = canister.engine(engine)?;
    engine.prepare()?;
    let checked = choose(engine).and_then(|work| {
        work.check(engine, payload_bytes)?;
        Ok(work)
    });
    engine.settle();
    let work = checked?;
    let cost = work.measure(engine, &work.text(payload_bytes), Manner::default())?;
    Ok(cost.measurement)
}

/// Exports the methods that are called by hand. It follows `stablebench_harness::canister!`.
#[macro_export]
macro_rules! methods_by_hand {
    () => {
        use stablebench_protocol::{Engine, Measurement, SqliteConfig, SqliteSettings};
        use $crate::canister::ByHand as _;

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
    };
}

/// Exports the method `sql` of a canister that has the interface of those with SQL, and no SQL.
#[macro_export]
macro_rules! no_sql_method {
    () => {
        #[ic_cdk::update]
        fn sql(_text: candid::Reserved, _parameters: candid::Reserved) -> Result<candid::Empty> {
            let operation = "execute any SQL in this canister; call bench".to_owned();
            controlled(|_| Err(Error::Unsupported { engine: Engine::SQLITE, operation }))
        }
    };
}
