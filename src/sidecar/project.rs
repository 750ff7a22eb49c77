//! What others read: results, views, error files and the journal. All of it is a projection of the store; what could
//! not be written is kept and tried again, and what was written since the last checkpoint is checked at the next start.

use super::Sidecar;
use super::answers::Judged;
use crate::contract::{self, Health, ServerView, SidecarView, Watch};
use crate::core::decision::{Decision, ErrorRow};
use crate::core::effect::Effect;
use crate::core::id::{ErrorId, ItemId};
use crate::core::pane::ServerId;
use crate::core::rows::item::Item;
use crate::core::text::plain_json;
use crate::core::time::{Deadline, Now};
use crate::core::view;
use crate::limits;
use crate::spool::watch::Checked;
use crate::spool::{Journal, Old, Place, Spool};
use crate::store::PURGE_BATCH;
use std::cmp::Reverse;
use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

/// Pause between two heartbeats, in milliseconds; a client gives a sidecar up after three of them.
pub(super) const TICK_MS: u64 = 5_000;
/// So many files may be written before a checkpoint is due at once.
const CHECKPOINT_AFTER: usize = 4_000;
/// Files that are removed from `state/reap/` between two ticks.
const REAP_AT_TICK: usize = 20_000;
/// Files of the spool that are looked at in one tick whether they are old: 34 million a day.
const SWEEP_AT_TICK: usize = 2_000;
/// Ticks between two clean-ups of the spool and the ledger. Each goes on at every tick until it has caught up.
const CLEAN_EVERY: u64 = 120;

/// Writes for others.
pub(super) struct Projector {
    pub(super) journal: Journal,
    lines: Vec<(u64, String)>,
    pub(super) waiting: VecDeque<(Place, String)>,
    errors: Vec<ErrorRow>,
    pub(super) views: Vec<String>,
    pub(super) written: Vec<ErrorId>,
    /// Items whose mark is there.
    pub(super) open_items: BTreeSet<ItemId>,
    pub(super) since_checkpoint: usize,
    started_at: String,
    ticks: u64,
    /// Why commits fail, while they do.
    pub(super) problem: Option<String>,
    /// Why the spool can't be read, while it can't.
    pub(super) intake_problem: Option<String>,
    /// What is wrong with the folders, while it is.
    pub(super) folder_problem: Option<String>,
    /// Why something that others read can't be written, while it can't.
    unwritten: Option<String>,
    /// Why what needs a thread waits, while none can be begun.
    pub(super) no_thread: Option<String>,
    /// When a turn last looked at the requests that lay there, and made durable and showed what it decided.
    pub(super) taken_at: Option<String>,
    /// Whether requests are answered.
    pub(super) judged: Judged,
    /// When it was last said that they are.
    beat: Option<String>,
    /// An effect or a command that did not end in its time.
    pub(super) late: Option<String>,
    /// `rejected/` is full.
    pub(super) rejected_full: bool,
    /// `armed` or `poll`.
    pub(super) watch_mode: Watch,
}

impl Projector {
    pub(super) fn new(journal: Journal, now: &Now) -> Self {
        Projector {
            journal,
            lines: Vec::new(),
            waiting: VecDeque::new(),
            errors: Vec::new(),
            views: Vec::new(),
            written: Vec::new(),
            open_items: BTreeSet::new(),
            since_checkpoint: 0,
            started_at: now.stamp(),
            ticks: 0,
            problem: None,
            intake_problem: None,
            folder_problem: None,
            unwritten: None,
            no_thread: None,
            taken_at: None,
            judged: Judged::default(),
            beat: None,
            late: None,
            rejected_full: false,
            watch_mode: Watch::Armed,
        }
    }

    /// Shows what was committed: views and journal first, so that whoever sees a result finds what it speaks of.
    pub(super) fn show(&mut self, spool: &Spool, now: &Now, decision: &Decision) {
        // What is named is there before what names it: error files before views and journal, all of it before results.
        self.errors.extend(decision.errors.iter().cloned());
        self.write_errors(spool);
        for agent in decision.agents.values() {
            self.view(spool, Place::Agent(agent.agent_id), &contract::text(&view::agent(agent)));
        }
        for handoff in decision.handoffs.values() {
            self.view(spool, Place::Handoff(handoff.handoff_id), &contract::text(&view::handoff(handoff)));
        }
        // A child is younger than its parent, whose view names it.
        let mut items: Vec<&Item> = decision.items.values().collect();
        items.sort_by_key(|item| Reverse(item.order));
        for item in items {
            self.view(spool, Place::Work(item.item_id.0), &contract::text(&view::item(item)));
            self.mark_open(spool, item.item_id, item.is_open());
        }
        self.lines.extend(decision.journal.iter().map(|(seq, line)| (*seq, line.to_string())));
        self.append(spool);
        for id in &decision.dismissed {
            self.errors.retain(|row| row.error_id != *id);
            if let Err(error) = spool.remove(&Place::Error(*id)) {
                tracing::warn!(%error, "a dismissed error file can't be removed");
            }
        }
        for answer in &decision.answers {
            self.put(spool, Place::Result(answer.request_id.clone()), &answer.to_json(now).to_string());
        }
    }

    pub(super) fn view(&mut self, spool: &Spool, place: Place, text: &str) {
        match &place {
            Place::Agent(id) => self.views.push(format!("agents/{id}")),
            Place::Handoff(id) => self.views.push(format!("handoffs/{id}")),
            Place::Work(id) => self.views.push(format!("work/{}", id.as_hyphenated())),
            _ => {}
        }
        self.put(spool, place, text);
    }

    /// Puts or removes the empty file by which an item that is not done is found without looking at all.
    pub(super) fn mark_open(&mut self, spool: &Spool, id: ItemId, open: bool) {
        let place = Place::OpenWork(id.0);
        if open && self.open_items.insert(id) {
            self.put(spool, place, "");
        } else if !open && self.open_items.remove(&id) {
            self.waiting.retain(|(other, _)| *other != place);
            if let Err(error) = spool.remove(&place) {
                tracing::warn!(%error, "the mark of an item that is done can't be removed");
            }
        }
    }

    /// Writes one file, or keeps it for the next tick.
    pub(super) fn put(&mut self, spool: &Spool, place: Place, text: &str) {
        self.since_checkpoint += 1;
        let text = plain_json(text);
        self.waiting.retain(|(other, _)| *other != place);
        if let Err(error) = spool.put(&place, text.as_bytes()) {
            if self.unwritten.is_none() {
                tracing::warn!(%error, "files for others can't be written; they are tried again");
            }
            self.unwritten = Some(error.to_string());
            self.waiting.push_back((place, text.into_owned()));
        }
    }

    pub(super) fn journal_lines(&mut self, spool: &Spool, lines: Vec<(u64, String)>) {
        self.lines.extend(lines);
        // Lines that were kept because they could not be written come again from the store.
        self.lines.sort_by_key(|(seq, _)| *seq);
        self.lines.dedup_by_key(|(seq, _)| *seq);
        self.append(spool);
    }

    fn append(&mut self, spool: &Spool) {
        if self.lines.is_empty() {
            return;
        }
        match self.journal.append(spool, &self.lines) {
            Ok(()) => {
                self.lines.clear();
                self.since_checkpoint += 1;
            }
            Err(error) => {
                tracing::warn!(%error, "the journal can't be written; it is tried again");
                self.unwritten = Some(error.to_string());
            }
        }
    }

    pub(super) fn error_rows(&mut self, spool: &Spool, rows: Vec<ErrorRow>) {
        self.errors.extend(rows);
        self.write_errors(spool);
    }

    fn write_errors(&mut self, spool: &Spool) {
        let rows = std::mem::take(&mut self.errors);
        for row in rows {
            match spool.put_error(&row.error_id, plain_json(&contract::text(&row.file())).as_bytes()) {
                Ok(_) => self.written.push(row.error_id),
                Err(error) => {
                    tracing::error!(%error, "an error file can't be written; it is tried again");
                    self.unwritten = Some(error.to_string());
                    self.errors.push(row);
                }
            }
        }
    }

    fn retry(&mut self, spool: &Spool) {
        self.unwritten = None;
        for (place, text) in std::mem::take(&mut self.waiting) {
            self.put(spool, place, &text);
        }
        self.append(spool);
        self.write_errors(spool);
    }

    /// Says that the sidecar lives and answers: while it does not, the heart stands still, and the view says why.
    pub(super) fn heartbeat(&mut self, spool: &Spool, now: &Now, server: Option<&ServerId>) {
        if !self.is_silent() || self.beat.is_none() {
            self.beat = Some(now.stamp());
        }
        // Nothing of it is lost: the store has it, and it is written when the disk lets us.
        let short = limits::shortage().or_else(|| self.no_thread.clone());
        let problem = self.obstacle().or(self.unwritten.as_ref()).or(short.as_ref());
        let problem = problem.or(self.judged.problem.as_ref()).or(self.late.as_ref());
        let full = self.rejected_full.then(|| "rejected/ is full: bad files stay where they are".to_owned());
        let view = SidecarView {
            v: 1,
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started_at: self.started_at.clone(),
            heartbeat: self.beat.clone().unwrap_or_default(),
            taken_at: Some(self.taken_at.clone()),
            tmux: server.map(|server| ServerView { pid: server.pid, start_time: server.start_time }),
            state: if problem.is_some() { Health::Degraded } else { Health::Running }.into(),
            problem: problem.cloned().or(full),
            watch: self.watch_mode.into(),
            journal_seq: self.journal.last_seq(),
        };
        if let Err(error) = spool.put_sidecar(plain_json(&contract::text(&view)).as_bytes()) {
            tracing::warn!(%error, "the heartbeat can't be written");
        }
    }

    /// Says that it lives no more.
    pub(super) fn withdraw(&self, spool: &Spool) {
        if let Err(error) = spool.remove(&Place::Sidecar) {
            tracing::warn!(%error, "the heartbeat can't be withdrawn");
        }
    }

    fn wants_checkpoint(&self, is_tick: bool) -> bool {
        self.since_checkpoint >= CHECKPOINT_AFTER || (is_tick && self.since_checkpoint > 0) || !self.written.is_empty()
    }
}

impl Sidecar {
    /// Looks whether the folders are those that are held, and nobody else can get at them; while not, nothing is taken in.
    pub(super) fn check_folders(&mut self) {
        match self.watch.check(&mut self.spool) {
            Ok(checked) => {
                self.projector.folder_problem = None;
                if checked == Checked::Rescan {
                    tracing::info!("folders were opened or watched anew");
                }
            }
            Err(error) => self.projector.folder_problem = Some(error.to_string()),
        }
    }

    /// What is done every 5 seconds: looks whether the folders are still the same, writes what could not be written,
    /// confirms what was, says that the sidecar lives, and tidies up.
    pub(super) fn tick_if_due(&mut self, now: &Now) {
        let is_tick = self.pending.tick.is_none_or(|tick| tick.is_due(now));
        self.confirm_checkpoint(now, Duration::ZERO);
        if self.projector.wants_checkpoint(is_tick) {
            self.begin_checkpoint();
        }
        if !is_tick {
            return;
        }
        self.pending.tick = Some(Deadline::after(now, u64::try_from(self.watch.tick().as_millis()).unwrap_or(TICK_MS)));
        self.pending.files = true;
        self.check_folders();
        self.projector.watch_mode = match self.watch.mode() {
            crate::spool::watch::Mode::Armed => Watch::Armed,
            crate::spool::watch::Mode::Poll => Watch::Poll,
        };
        if self.pending.store_again.is_none() {
            self.look_at_documents();
            if let Err(error) = self.store.check_in_place() {
                self.store_failed(now, &error);
            }
        }
        self.projector.retry(&self.spool);
        // Looked for only where one was missing: an idle loop begins none.
        if self.projector.no_thread.is_some() {
            self.projector.no_thread = limits::no_thread();
        }
        self.judge_answers(now);
        self.projector.late = self.tools.late.told();
        self.projector.heartbeat(&self.spool, now, self.state.server.as_ref());
        self.projector.ticks += 1;
        self.count_failures();
        self.update_glance(now);
        self.look_at_rules(now);
        if self.projector.ticks.is_multiple_of(6) {
            self.panes.wanted = true;
            self.learn_roles();
        }
        self.reap();
        if self.pending.store_again.is_none() {
            self.grant_wishes();
        }
        if self.pending.store_again.is_none()
            && let Err(error) = self.store.pack()
        {
            tracing::warn!(%error, "history can't be packed");
        }
        self.projector.rejected_full = self.spool.is_rejected_full();
        if self.projector.ticks % CLEAN_EVERY == 1 {
            (self.pending.sweep, self.pending.age, self.pending.purge) = (true, true, true);
        }
        self.clean_up(now);
    }

    /// The files of texts that are typed, or wait for a receipt.
    fn texts_in_flight(&self) -> BTreeSet<String> {
        let typed = self.state.outbox.values().filter_map(|effect| match effect {
            Effect::Type(plan) => plan.attachment.as_ref().map(|attachment| attachment.file_name.clone()),
            _ => None,
        });
        let awaited = self.state.agents.values().filter_map(|agent| agent.typing.as_ref());
        typed.chain(awaited.map(|typing| format!("{}.md", typing.delivery_id))).collect()
    }

    /// Writes the views again that somebody has asked for: history is kept in the store.
    fn grant_wishes(&mut self) {
        for (name, id) in self.spool.wishes() {
            self.view_again(&format!("agents/{id}"), None);
            self.view_again(&format!("handoffs/{id}"), None);
            self.spool.drop_wish(&name);
        }
    }

    /// Removes what was put away, beside the loop.
    fn reap(&mut self) {
        if !self.pending.reap || self.pending.reaping.as_ref().is_some_and(|task| !task.is_finished()) {
            return;
        }
        match self.spool.reaper() {
            Ok(reaper) => {
                let thread = std::thread::Builder::new().name("reap".to_owned());
                let reap = move || {
                    let _ = reaper.reap(REAP_AT_TICK);
                };
                match thread.spawn(reap) {
                    Ok(reaping) => (self.pending.reap, self.pending.reaping) = (false, Some(reaping)),
                    Err(error) => {
                        tracing::warn!(%error, "files that were put away wait: there is no thread for it");
                        self.projector.no_thread = limits::no_thread();
                    }
                }
            }
            Err(error) => tracing::warn!(%error, "files that were put away can't be removed"),
        }
    }

    /// A bounded step of the clean-up, where there is something left of it.
    fn clean_up(&mut self, now: &Now) {
        if self.pending.sweep {
            let _ = self.spool.sweep(SWEEP_AT_TICK, now);
            self.pending.sweep = !self.spool.is_swept();
        }
        if self.pending.age {
            let in_flight = self.texts_in_flight();
            let state = &self.state;
            let is_wanted = |old: Old<'_>| match old {
                Old::Agent(id) => state.agents.contains_key(&id),
                Old::Handoff(id) => state.handoffs.contains_key(&id),
                Old::Text(name) => in_flight.contains(name),
            };
            let _ = self.spool.age(SWEEP_AT_TICK, now, is_wanted);
            self.pending.age = !self.spool.is_aged();
        }
        if self.pending.purge && self.pending.store_again.is_none() {
            match self.store.purge(now) {
                Ok(purged) => self.pending.purge = purged >= PURGE_BATCH,
                Err(error) => self.store_failed(now, &error),
            }
        }
    }
}
