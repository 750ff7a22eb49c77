//! Tidying up, a bounded step at each tick: files that were put away, old files of the spool, old rows of the store.

use crate::core::effect::Effect;
use crate::core::state::State;
use crate::core::time::Now;
use crate::spool::{Old, Spool};
use crate::store::{Error, PURGE_BATCH, Store};
use std::collections::BTreeSet;
use std::io;
use std::thread::JoinHandle;

/// Files that are removed from `state/reap/` between two ticks.
const REAP_AT_TICK: usize = 20_000;
/// Files of the spool that are looked at in one tick whether they are old: 34 million a day.
const SWEEP_AT_TICK: usize = 2_000;
/// Ticks between two clean-ups of the spool and the ledger. Each goes on at every tick until it has caught up.
const CLEAN_EVERY: u64 = 120;

/// What is left to be tidied up.
#[derive(Debug, Default)]
pub(super) struct Tidy {
    ticks: u64,
    /// Files lie in `state/reap/`.
    pub(super) reap: bool,
    reaping: Option<JoinHandle<()>>,
    /// Old files of the spool are looked for.
    sweep: bool,
    /// Views and texts of history are looked for.
    age: bool,
    /// Old rows of the store are taken away.
    purge: bool,
}

impl Tidy {
    /// At the start files may lie in `state/reap/`.
    pub(super) fn new() -> Tidy {
        Tidy { reap: true, ..Tidy::default() }
    }

    /// Counts a tick. Says whether it is one of those, one in half a minute, at which more is looked at.
    pub(super) fn ticked(&mut self) -> bool {
        self.ticks += 1;
        if self.ticks % CLEAN_EVERY == 1 {
            (self.sweep, self.age, self.purge) = (true, true, true);
        }
        self.ticks.is_multiple_of(6)
    }

    /// Removes what was put away, beside the loop.
    ///
    /// # Errors
    /// There is no thread for it.
    pub(super) fn reap(&mut self, spool: &Spool) -> io::Result<()> {
        if !self.reap || self.reaping.as_ref().is_some_and(|task| !task.is_finished()) {
            return Ok(());
        }
        match spool.reaper() {
            Ok(reaper) => {
                let thread = std::thread::Builder::new().name("reap".to_owned());
                let reap = move || {
                    let _ = reaper.reap(REAP_AT_TICK);
                };
                let reaping = thread.spawn(reap).inspect_err(|error| {
                    tracing::warn!(%error, "files that were put away wait: there is no thread for it");
                })?;
                (self.reap, self.reaping) = (false, Some(reaping));
            }
            Err(error) => tracing::warn!(%error, "files that were put away can't be removed"),
        }
        Ok(())
    }

    /// A bounded step of the clean-up of the spool, where there is something left of it.
    pub(super) fn clean_spool(&mut self, spool: &mut Spool, state: &State, now: &Now) {
        if self.sweep {
            let _ = spool.sweep(SWEEP_AT_TICK, now);
            self.sweep = !spool.is_swept();
        }
        if self.age {
            let in_flight = texts_in_flight(state);
            let is_wanted = |old: Old<'_>| match old {
                Old::Agent(id) => state.agents.contains_key(&id),
                Old::Handoff(id) => state.handoffs.contains_key(&id),
                Old::Text(name) => in_flight.contains(name),
            };
            let _ = spool.age(SWEEP_AT_TICK, now, is_wanted);
            self.age = !spool.is_aged();
        }
    }

    /// The same of the store.
    ///
    /// # Errors
    /// What the disk refused.
    pub(super) fn clean_store(&mut self, store: &mut Store, now: &Now) -> Result<(), Error> {
        if self.purge {
            self.purge = store.purge(now)? >= PURGE_BATCH;
        }
        Ok(())
    }
}

/// The files of texts that are typed, or wait for a receipt.
fn texts_in_flight(state: &State) -> BTreeSet<String> {
    let typed = state.outbox.values().filter_map(|pending| match &pending.effect {
        Effect::Type(plan) => plan.attachment.as_ref().map(|attachment| attachment.file_name.clone()),
        _ => None,
    });
    let awaited = state.agents.values().filter_map(|agent| agent.typing.as_ref());
    typed.chain(awaited.map(|typing| format!("{}.md", typing.delivery_id))).collect()
}
