//! Catalogs that follow the log of another process.

use super::*;
use crate::AuthError;
use crate::log::entry;
use lodestone_io::store::BlobStore;
use lodestone_types::limits::FOLLOWERS_MILLIS;

impl Machines {
    pub(super) fn follow(&self, store: Arc<dyn BlobStore>) -> Result<Machine, CatalogError> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("catalog.sqlite");
        let log = CatalogLog::open(store, self.ids.clone())?;
        let (clock, ids) = (self.clock.clone(), self.ids.clone());
        let catalog = Catalog::follow(&path, options(), clock, ids, &log)?;
        Ok(Machine { catalog, directory, clock: self.clock.clone() })
    }

    fn follower(&self) -> Machine {
        self.follow(self.store.clone()).unwrap()
    }
}

impl Machine {
    /// Lets followers have this much more time to see what is stored, whatever the clock says.
    fn pass(&self, millis: u64) {
        let log = self.catalog.inner.log.as_ref().unwrap();
        for (noted, _) in &mut log.stored.lock().recent {
            *noted = noted.checked_sub(Duration::from_millis(millis)).unwrap();
        }
    }
}

/// Goal: followers keep up across laps, new bases, removed entries and takeovers, however long they
/// were away.
#[test]
fn a_follower_has_the_rows_of_the_process_that_writes() {
    let machines = Machines::new(SMALL);
    let mut writer = machines.start();
    let collection = writer.tenant("a");
    let (often, seldom) = (machines.follower(), machines.follower());
    let first_file = often.catalog.inner.readers.path().to_owned();
    let mut shortened = 0;
    for round in 0..120 {
        for n in 0..=round % 3 {
            writer.submit(collection, &format!("{round}-{n}")).unwrap();
        }
        if round % 40 == 39 {
            writer = machines.start();
        }
        let changed = often.catalog.catch_up().unwrap();
        assert!(changed, "round {round}");
        assert_eq!(often.rows(), writer.rows(), "round {round}");
        if round % 30 == 29 {
            let next = seldom.catalog.follow_state().unwrap().entry + 1;
            let is_gone = !machines.entries().contains(&next);
            shortened += usize::from(is_gone);
            seldom.catalog.catch_up().unwrap();
            assert_eq!(seldom.rows(), writer.rows(), "round {round}");
        }
    }
    assert!(shortened > 0, "no follower was overtaken by a base");
    assert!(!often.catalog.catch_up().unwrap(), "there is nothing new");
    assert_eq!(often.catalog.inner.readers.path(), first_file);
    often.catalog.verify().unwrap();
}

/// Goal: whatever part of the log a follower sees, it has the rows of complete commits.
#[test]
fn a_follower_sees_whole_commits() {
    let machines = Machines::new(LogLimits { piece_bytes: 9000, ..LogLimits::default() });
    let writer = machines.start();
    let mut states = vec![writer.rows()];
    writer.catalog.write(|connection| Ok(connection.execute_batch("CREATE TABLE t (x)")?)).unwrap();
    states.push(writer.rows());
    for round in 0..12 {
        // One commit that takes several entries.
        let sql = format!(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {})
             INSERT INTO t SELECT printf('{round} %0500d', i) FROM n",
            1 + round * 10
        );
        writer.catalog.write(move |connection| Ok(connection.execute_batch(&sql)?)).unwrap();
        states.push(writer.rows());
    }
    let entries = machines.entries();
    assert!(entries.len() > states.len() + 10, "{} entries are of one commit each", entries.len());
    let part = Arc::new(MemoryBlobs::default());
    for key in machines.store.list(&entry::bases()).unwrap() {
        part.put(&key, &machines.store.get(&key).unwrap()).unwrap();
    }
    let copy = |number: u64| {
        let key = entry::key(number);
        part.put(&key, &machines.store.get(&key).unwrap()).unwrap();
    };
    // A claim and the first base.
    entries[..2].iter().copied().for_each(copy);
    let late = machines.follow(part.clone()).unwrap();
    let mut reached = 0;
    for number in &entries[2..] {
        copy(*number);
        late.catalog.catch_up().unwrap();
        let fresh = machines.follow(part.clone()).unwrap();
        assert_eq!(late.rows(), fresh.rows(), "entry {number}");
        reached = (reached..states.len())
            .find(|state| states[*state] == late.rows())
            .unwrap_or_else(|| panic!("entry {number}: rows of no commit after {reached}"));
    }
    assert_eq!(reached, states.len() - 1);
}

#[test]
fn a_follower_answers_only_while_it_is_waited_for_and_knows_the_newest_state() {
    let machines = Machines::new(LogLimits::default());
    let alone = machines.start();
    let follower = machines.follower();
    let refused = |machine: &Machine| machine.catalog.require_current().unwrap_err().to_string();
    assert!(refused(&follower).contains("--with-query-nodes"), "{}", refused(&follower));
    drop(alone);
    let machine = machines.start_followed();
    let writer = &machine.catalog;
    follower.catalog.catch_up().unwrap();
    follower.catalog.require_current().unwrap();
    machines.clock.advance_millis(FOLLOWERS_MILLIS - 1);
    follower.catalog.require_current().unwrap();
    machines.clock.advance_millis(1);
    assert!(refused(&follower).contains("behind"), "{}", refused(&follower));
    let behind = follower.catalog.authenticate("lode_unknown").unwrap_err();
    let AuthError::Storage { source } = behind else { panic!("{behind}") };
    assert!(matches!(source, CatalogError::Behind { .. }), "whose it is cannot be said here");
    machines.store.set(|_, _| Fault::Before);
    assert!(matches!(follower.catalog.catch_up(), Err(CatalogError::LogAway { .. })));
    assert!(matches!(follower.catalog.require_current(), Err(CatalogError::Behind { .. })));
    machines.store.set(|_, _| Fault::None);
    assert!(!follower.catalog.catch_up().unwrap());
    follower.catalog.require_current().unwrap();
    let unknown = follower.catalog.authenticate("lode_unknown").unwrap_err();
    assert!(matches!(unknown, AuthError::Invalid), "{unknown}");
    assert!(writer.require_current().is_ok() && writer.follow_state().is_none());
}

#[test]
fn a_follower_writes_nothing() {
    let machines = Machines::new(LogLimits::default());
    let writer = machines.start();
    let collection = writer.tenant("a");
    let entries = machines.entries();
    let follower = machines.follower();
    let error = follower.submit(collection, "x").unwrap_err();
    assert!(matches!(error, CatalogError::ReadOnly), "{error}");
    assert_eq!(machines.entries(), entries);
    drop(follower);
    assert_eq!(machines.entries(), entries);
    writer.submit(collection, "x").unwrap();
}

#[test]
fn releases_that_do_not_understand_one_another_say_so() {
    let machines = Machines::new(LogLimits::default());
    drop(machines.start());
    let follower = machines.follower();
    let store: Arc<dyn BlobStore> = machines.store.clone();
    let ids: Arc<dyn lodestone_types::IdSource> = machines.ids.clone();
    crate::log::appender::Appender::claim(&store, &ids, 99, true).unwrap();
    let error = follower.catalog.catch_up().unwrap_err();
    assert!(matches!(error, CatalogError::TooNew { found: 99, .. }), "{error}");
}

/// Goal: a follower of an earlier release knows which process writes now, to forward requests to
/// it; also after the next takeover. Entries of a later format are not damage.
#[test]
fn a_follower_knows_a_writer_of_a_later_release_by_its_name() {
    let machines = Machines::new(LogLimits::default());
    let machine = machines.start_followed();
    let followed = machine.catalog.writer_name().unwrap();
    let follower = machines.follower();
    let is_written_by = |name| follower.catalog.is_written_by(name).unwrap();
    assert!(is_written_by(followed) && !follower.catalog.follow_state().unwrap().is_later);
    drop(machine);
    let store: Arc<dyn BlobStore> = machines.store.clone();
    let ids: Arc<dyn lodestone_types::IdSource> = machines.ids.clone();
    let newest = || crate::log::reader::newest(&*store).unwrap().unwrap();
    let mut names = vec![followed];
    for _ in 0..2 {
        crate::log::appender::Appender::claim(&store, &ids, 99, true).unwrap();
        let name = newest().1.nonce;
        assert!(is_written_by(name));
        assert!(names.iter().all(|before| !is_written_by(*before)));
        names.push(name);
        assert!(follower.catalog.catch_up().is_err());
        let state = follower.catalog.follow_state().unwrap();
        assert!(state.is_later && state.writer == followed);
    }
    let key = crate::log::entry::key(newest().0 + 1);
    let later = lodestone_io::sealed::seal("lodestone catalog log 2", b"of another shape");
    store.put(&key, &later).unwrap();
    for error in
        [machines.log().unwrap_err(), follower.catalog.is_written_by(names[2]).unwrap_err()]
    {
        assert!(matches!(error, CatalogError::TooNew { found: 2, supported: 1, .. }), "{error}");
    }
}

/// Goal: readers never see a file that is being written.
#[test]
fn reads_go_on_while_a_follower_catches_up() {
    let machines = Machines::new(SMALL);
    let writer = machines.start();
    let collection = writer.tenant("a");
    let follower = machines.follower();
    let catalog = follower.catalog.clone();
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..6)
            .map(|_| {
                scope.spawn(|| {
                    let (mut before, mut reads) = (0, 0);
                    while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                        let count = |connection: &Connection| {
                            let sql =
                                "SELECT (SELECT count(*) FROM jobs), sum(jobs) FROM job_counts";
                            Ok(connection.query_row(sql, [], |row| {
                                Ok((row.get::<_, i64>(0)?, row.get::<_, Option<i64>>(1)?))
                            })?)
                        };
                        let (jobs, counted) = catalog.read(count).unwrap();
                        assert_eq!(jobs, counted.unwrap_or_default(), "a commit is whole");
                        assert!(jobs >= before, "it goes forward");
                        (before, reads) = (jobs, reads + 1);
                    }
                    reads
                })
            })
            .collect();
        for n in 0..150 {
            writer.submit(collection, &n.to_string()).unwrap();
            catalog.catch_up().unwrap();
        }
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(readers.into_iter().all(|reader| reader.join().unwrap() > 0));
    });
    assert_eq!(follower.rows(), writer.rows());
}

/// Goal: a change that is visible here but waits for an unreachable store is not announced; once
/// stored, it is, after followers had time to see it.
#[test]
fn a_change_that_is_not_stored_is_not_told() {
    let machines = Machines::new(LogLimits::default());
    let machine = machines.start_followed();
    let writer = &machine.catalog;
    // Followers know everything that is stored.
    machine.pass(FOLLOWERS_MILLIS);
    machines.clock.advance_millis(1);
    machines.store.set(|call, _| if call == Call::Create { Fault::Before } else { Fault::None });
    let name = TenantId::parse("a").unwrap();
    let made = writer.create_tenant(name.clone(), TenantMode::Standard, None);
    assert!(matches!(made, Err(CatalogError::InDoubt { .. })));
    assert!(writer.tenant(&name).unwrap().is_some(), "it is visible here");
    let changed = machines.clock.now();
    machines.clock.advance_millis(1);
    assert!(writer.known_before() <= changed);
    let refused = writer.await_followers(changed).unwrap_err();
    assert!(matches!(refused, CatalogError::LogAway { .. }), "{refused}");
    machines.store.set(|_, _| Fault::None);
    // Not before the store is retried.
    machines.clock.advance_millis(60_000);
    writer.write(|_| Ok(())).unwrap();
    assert!(writer.known_before() <= changed, "it is stored, and nobody had time to see it");
    machine.pass(FOLLOWERS_MILLIS / 4);
    assert!(writer.known_before() <= changed);
    machine.pass(FOLLOWERS_MILLIS);
    assert!(writer.known_before() > changed);
    writer.await_followers(changed).unwrap();
}

/// Goal: however the clock is set, a change is announced only after followers had time to see it.
#[test]
fn a_clock_that_is_set_announces_nothing_early() {
    let machines = Machines::new(LogLimits::default());
    let machine = machines.start_followed();
    let writer = &machine.catalog;
    // Followers know everything that is stored.
    machine.pass(FOLLOWERS_MILLIS);
    machines.clock.advance_millis(FOLLOWERS_MILLIS);
    let known = writer.known_before();
    machines.clock.set_back_millis(500_000);
    let name = TenantId::parse("a").unwrap();
    writer.create_tenant(name, TenantMode::Standard, None).unwrap();
    let changed = machines.clock.now();
    assert!(changed < known && writer.known_before() <= changed, "set back");
    machines.clock.advance_millis(1_000_000);
    assert!(writer.known_before() <= changed, "set forward");
    machine.pass(FOLLOWERS_MILLIS);
    assert!(writer.known_before() > changed);
}

/// Goal: a follower whose newest entry is a claim recognises the end of the log, reads entries that
/// arrive meanwhile, and starts anew if the log was shortened.
#[test]
fn a_follower_at_a_claim_misses_nothing() {
    let machines = Machines::new(SMALL);
    let writer = machines.start();
    let collection = writer.tenant("a");
    writer.submit(collection, "one").unwrap();
    drop(writer);
    let writer = machines.start();
    let follower = machines.follower();
    assert_eq!(follower.catalog.follow_state().unwrap().entry, *machines.entries().last().unwrap());
    assert_eq!(
        follower.catalog.follow_state().unwrap().writer,
        writer.catalog.writer_name().unwrap()
    );
    assert!(!follower.catalog.catch_up().unwrap(), "a claim at the end");
    // The next entry arrives between the look-up and the listing.
    let (own, mut is_first) = (Arc::new(writer), true);
    let other = own.clone();
    let store = Arc::new(FaultyBlobs::new(machines.store.clone()));
    let late = machines.follow(store.clone()).unwrap();
    store.set(move |call, _| {
        if call == Call::List && std::mem::take(&mut is_first) {
            other.submit(collection, "two").unwrap();
        }
        Fault::None
    });
    assert!(late.catalog.catch_up().unwrap());
    assert_eq!(late.rows(), own.rows());
    // Entries after the claim are removed.
    for n in 0..200 {
        own.submit(collection, &format!("s{n}")).unwrap();
    }
    let next = follower.catalog.follow_state().unwrap().entry + 1;
    own.wait(|state| {
        state.entries_since_base <= 2 * SMALL.base_entries && !machines.entries().contains(&next)
    });
    assert!(follower.catalog.catch_up().unwrap());
    assert_eq!(follower.rows(), own.rows());
    store.set(|call, _| if call == Call::Get { Fault::Before } else { Fault::None });
    let error = late.catalog.catch_up().unwrap_err();
    assert!(matches!(error, CatalogError::LogAway { .. }), "{error}");
}

/// Goal: a follower whose file could not be written reports that, answers nothing from it, and
/// rebuilds it on the next poll.
#[test]
fn a_follower_that_lost_its_file_makes_it_anew() {
    let machines = Machines::new(LogLimits::default());
    let writer = machines.start();
    let collection = writer.tenant("a");
    let follower = machines.follower();
    let path = follower.directory.path().join("catalog.sqlite");
    writer.submit(collection, "s").unwrap();
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    let error = follower.catalog.catch_up().unwrap_err();
    assert_eq!(error.kind(), lodestone_types::ErrorKind::Corrupt, "{error}");
    let state = follower.catalog.follow_state().unwrap();
    assert!(state.last_error.unwrap().contains("catalog.sqlite"));
    assert!(follower.catalog.read(|_| Ok(())).is_err());
    std::fs::remove_dir(&path).unwrap();
    assert!(follower.catalog.catch_up().unwrap());
    assert_eq!(follower.rows(), writer.rows());
    assert_eq!(follower.catalog.follow_state().unwrap().last_error, None);
}

/// Goal: a follower refuses a log of an earlier format, which it would have to migrate.
#[test]
fn a_follower_of_an_earlier_release_is_told_which_to_upgrade() {
    let machines = Machines::new(LogLimits::default());
    super::durability::old_base(&machines, 2);
    let error = machines.follow(machines.store.clone()).map(drop).unwrap_err();
    assert!(matches!(error, CatalogError::TooOld { found: 2, needed: 8 }), "{error}");
    assert!(error.to_string().contains("upgrade the writer first"), "{error}");
}

/// Goal: a writing process waits just as long as its followers need to see a change.
#[test]
fn a_change_is_told_when_followers_had_their_time() {
    let machines = Machines::new(LogLimits::default());
    let machine = machines.start_followed();
    let writer = &machine.catalog;
    assert_eq!(writer.followers_delay(), Duration::from_millis(FOLLOWERS_MILLIS));
    let (changed, start, mut passed) = (machines.clock.now(), Instant::now(), Duration::ZERO);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| writer.await_followers(changed).unwrap());
        while !waiting.is_finished() {
            machine.pass(1);
            passed += Duration::from_millis(1);
            std::thread::yield_now();
        }
    });
    assert!(passed + start.elapsed() >= writer.followers_delay());
    // The lease is checked before anything is announced.
    writer.require_current().unwrap();
    writer.set_lease_check(Box::new(|| Some("the lease has ended".into())));
    writer.set_lease_check(Box::new(|| None));
    let error = writer.require_current().unwrap_err();
    assert!(error.to_string().contains("the lease has ended"), "{error}");
    assert!(!writer.catch_up().unwrap(), "it follows nobody");
}

/// Goal: an event is delivered once every follower knows what it reports, even if nothing is
/// written after it and it was stored in the very millisecond in which it occurred.
#[test]
fn an_event_waits_for_the_followers() {
    let machines = Machines::new(LogLimits::default());
    let machine = machines.start_followed();
    let catalog = &machine.catalog;
    let name = TenantId::parse("a").unwrap();
    let of = catalog.create_tenant(name, TenantMode::Standard, None).unwrap().collection;
    let new = crate::NewWebhook {
        url: lodestone_types::WebUrl::parse("https://hooks.example/").unwrap(),
        description: String::new(),
        kinds: lodestone_types::EventKind::ALL.to_vec(),
        scope: lodestone_types::KeyScope::AllTenants,
    };
    catalog.create_webhook(&Catalog::operator_grant(), new).unwrap();
    let source = SourceId::parse("s").unwrap();
    catalog.submit(job(of, "s", machines.clock.now())).unwrap();
    catalog.cancel_sources(of, &SubTenantId::default_name(), &[source]).unwrap();
    let next = || catalog.next_delivery("", &Default::default()).unwrap();
    let now = machines.clock.now();
    assert_eq!(next(), crate::NextDelivery::Wait(Some(now.plus_millis(100))));
    machine.pass(FOLLOWERS_MILLIS / 4);
    machines.clock.advance_millis(1);
    assert!(matches!(next(), crate::NextDelivery::Wait(Some(_))));
    machine.pass(FOLLOWERS_MILLIS);
    assert!(matches!(next(), crate::NextDelivery::Due(_)), "{:?}", next());
}
