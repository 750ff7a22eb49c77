//! Tidies up, a bounded step at each tick: files in the trash, old files of the spool, old rows of the store, and what
//! a killed sidecar has left in the folders for temporary files.

use super::kept::kept_views;
use crate::core::effect::Effect;
use crate::core::state::State;
use crate::core::time::Now;
use crate::git;
use crate::limits;
use crate::spool::{AgingCandidate, Spool};
use crate::store::{Error, PURGE_BATCH, Store};
use std::collections::BTreeSet;
use std::io;
use std::thread::JoinHandle;

/// The most files that are removed from the trash between two ticks.
const TRASH_AT_TICK: usize = 20_000;
/// How many files of the spool are checked for their age in one tick: 34 million a day.
const SWEEP_AT_TICK: usize = 2_000;
/// Ticks between two clean-ups of the spool and the ledger. Each continues at every tick until it has caught up.
const CLEAN_EVERY: u64 = 120;

/// Ticks between two looks for temporary folders that a killed sidecar has left: a day, if the system reports changes.
const STAND_INS_EVERY: u64 = 17_280;

/// What is left to tidy up.
#[derive(Debug, Default)]
pub(super) struct Tidy {
    ticks: u64,
    /// There may be files in the trash.
    pub(super) has_trash: bool,
    /// The most files that are removed from the trash between two ticks.
    pub(super) trash_at_tick: usize,
    /// Something was decided since the last tick.
    pub(super) has_decided: bool,
    /// Earlier decisions may have left memory that nobody uses.
    holds_memory: bool,
    /// Returns how many files it has removed.
    emptying: Option<JoinHandle<usize>>,
    /// Whether folders of a killed sidecar are to be looked for.
    stand_ins: bool,
    /// Whether old files of the spool are being removed.
    sweep: bool,
    /// Whether old views and texts of history are being removed.
    age: bool,
    /// Whether old rows of the store are being removed.
    purge: bool,
}

impl Tidy {
    /// An earlier process may have left files in the trash.
    pub(super) fn new() -> Tidy {
        Tidy { has_trash: true, trash_at_tick: TRASH_AT_TICK, ..Tidy::default() }
    }

    /// Counts a tick. Returns true at every sixth one, when more is checked.
    pub(super) fn ticked(&mut self) -> bool {
        self.ticks += 1;
        if self.ticks % CLEAN_EVERY == 1 {
            (self.sweep, self.age, self.purge) = (true, true, true);
        }
        self.stand_ins |= self.ticks % STAND_INS_EVERY == 1;
        self.ticks.is_multiple_of(6)
    }

    /// Gives memory back to the system at the first tick before which nothing was decided.
    pub(super) fn give_back_memory(&mut self) {
        if std::mem::take(&mut self.has_decided) {
            self.holds_memory = true;
        } else if std::mem::take(&mut self.holds_memory) {
            limits::give_back_memory();
        }
    }

    /// Deletes the files in the trash, in parallel with the loop.
    ///
    /// # Errors
    /// The thread could not be started.
    pub(super) fn empty_trash(&mut self, spool: &Spool) -> io::Result<()> {
        if self.emptying.as_ref().is_some_and(|task| !task.is_finished()) {
            return Ok(());
        }
        // A thread that has removed as many files as it may has perhaps left some.
        let removed = self.emptying.take().and_then(|task| task.join().ok());
        self.has_trash |= removed.is_some_and(|removed| removed >= self.trash_at_tick);
        if !self.has_trash {
            return Ok(());
        }
        match spool.trash_emptier() {
            Ok(trash_emptier) => {
                let thread = std::thread::Builder::new().name("trash".to_owned());
                let most = self.trash_at_tick;
                let empty = move || trash_emptier.empty_trash(most);
                let emptying = thread.spawn(empty).inspect_err(|error| {
                    tracing::warn!(%error, "could not start a thread to delete handled spool files; they wait");
                })?;
                (self.has_trash, self.emptying) = (false, Some(emptying));
            }
            Err(error) => tracing::warn!(%error, "could not delete handled spool files"),
        }
        Ok(())
    }

    /// Removes temporary folders that a killed sidecar has left, in parallel with the loop.
    ///
    /// # Errors
    /// The thread could not be started.
    pub(super) fn remove_stand_ins(&mut self) -> io::Result<()> {
        if self.stand_ins {
            std::thread::Builder::new().name("stand-ins".to_owned()).spawn(git::remove_left_stand_ins)?;
            self.stand_ins = false;
        }
        Ok(())
    }

    /// One bounded step of the clean-up of the spool, if it has not finished.
    pub(super) fn clean_spool(&mut self, spool: &mut Spool, (state, store): (&State, &Store), now: &Now) {
        if self.sweep {
            let _ = spool.sweep(SWEEP_AT_TICK, now);
            self.sweep = !spool.is_swept();
        }
        if self.age {
            let in_flight = texts_in_flight(state);
            let Ok(kept) = kept_views(state, store) else { return };
            let is_in_use = |old: AgingCandidate<'_>| match old {
                AgingCandidate::Agent(id) => state.agents.contains_key(&id) || kept.agents.contains(&id),
                AgingCandidate::Handoff(id) => state.handoffs.contains_key(&id) || kept.handoffs.contains(&id),
                AgingCandidate::Text(name) => in_flight.contains(name),
            };
            let _ = spool.remove_old_views_and_texts(SWEEP_AT_TICK, now, is_in_use);
            self.age = !spool.is_aging_done();
        }
    }

    /// One bounded step of the clean-up of the store, if it has not finished.
    ///
    /// # Errors
    /// The disk refused something.
    pub(super) fn clean_store(&mut self, store: &mut Store, now: &Now) -> Result<(), Error> {
        if self.purge {
            self.purge = store.purge(now)? >= PURGE_BATCH;
        }
        Ok(())
    }
}

/// The files of texts that are being typed or wait for a receipt.
fn texts_in_flight(state: &State) -> BTreeSet<String> {
    let typed = state.outbox.values().filter_map(|pending| match &pending.effect {
        Effect::Type(plan) => plan.attachment.as_ref().map(|attachment| attachment.file_name.clone()),
        _ => None,
    });
    let awaited = state.agents.values().filter_map(|agent| agent.typing.as_ref());
    typed.chain(awaited.map(|typing| format!("{}.md", typing.delivery_id))).collect()
}
