//! Brings the files that others read up to date with the store, and continues what was unfinished: at the start, and
//! after a commit whose result is unknown.

use super::history::History;
use super::kept::kept_views;
use super::parts::Sidecar;
use crate::contract;
use crate::core::effect::EffectKey;
use crate::core::event::Event;
use crate::core::id::ItemId;
use crate::core::text::plain_json;
use crate::core::time::{Now, rfc3339};
use crate::core::view;
use crate::spool::age::KEPT_MS;
use crate::spool::{OutputFile, ProjectionFolder};
use crate::store::{Error, Loaded};
use std::collections::BTreeSet;
use uuid::Uuid;

/// After a start with unfinished work, deadlines are handed to `decide` this much later, in milliseconds: a resumed
/// delivery reads its mark first.
const START_GRACE_MS: u64 = 5_000;

impl Sidecar {
    /// Called when all files that lay in both lanes at the start are decided. First the unsettled effects run again,
    /// then panes are looked at, then deadlines are handed to `decide`.
    pub(super) fn drained(&mut self, now: &Now) {
        self.intake.drained = true;
        if self.left.has_work {
            self.timers.give_grace(now, START_GRACE_MS);
        }
        self.resume_outbox();
        self.watches.panes_wanted = true;
    }

    /// Submits effects of the outbox that are not running: those that an earlier process, or a commit whose result is
    /// unknown, may have left. An effect that has ended and waits for its decision is not run again.
    pub(super) fn resume_outbox(&mut self) {
        let initial = std::mem::take(&mut self.left.effects);
        let ended: BTreeSet<EffectKey> = self.events.iter().filter_map(settled_key).collect();
        for (key, pending) in self.state.outbox.clone() {
            if !self.runner.has(key) && !ended.contains(&key) {
                self.submit(key, pending, initial.contains(&key));
            }
        }
    }

    /// Opens the store again and loads the state, after a failure whose result is unknown. Returns whether that is
    /// done; while the whole file is being checked first, it must be called again.
    ///
    /// # Errors
    /// It can't be opened or read; it stays closed.
    pub(super) fn reload_state(&mut self, now: &Now) -> Result<bool, Error> {
        let Some(mut loaded) = self.store.reopen()? else { return Ok(false) };
        let state = &mut loaded.state;
        state.settings = std::mem::take(&mut self.state.settings);
        state.server = self.state.server;
        state.roles = std::mem::take(&mut self.state.roles);
        // The file may be an older copy. Effects that are being carried out have their numbers, and what becomes of
        // them must not be taken for the outcome of others.
        state.next_effect = state.next_effect.max(self.state.next_effect);
        state.rebase(now);
        self.state = std::mem::take(state);
        self.history = History::default();
        self.reproject_all(loaded, now)?;
        let outbox = &self.state.outbox;
        self.runner.keep_only(|key| outbox.contains_key(&key));
        if self.intake.drained {
            self.resume_outbox();
        }
        Ok(true)
    }

    /// Writes what others may not have seen yet, and follows the processes of all agents.
    ///
    /// # Errors
    /// The store can't forget dismissed errors, or can't take errors that it does not know.
    pub(super) fn reproject_all(&mut self, loaded: Loaded, now: &Now) -> Result<(), Error> {
        let is_own = self.files_are_of_this_state(self.state.next_seq);
        self.tell_of_replacement(now)?;
        // Journal lines with numbers that the file has already would be skipped.
        self.state.next_seq = self.state.next_seq.max(self.projection.last_seq() + 1);
        let adopted_all = is_own || self.adopt_errors()?;
        let lines = loaded.journal.into_iter().map(|(seq, line)| (seq, line.to_string())).collect();
        self.projection.journal_lines(&self.spool, lines);
        let dismissed = self.projection.reproject_errors(&self.spool, loaded.errors, &loaded.written_errors, is_own);
        self.store.forget_errors(&dismissed)?;
        self.projection.reproject_results(&self.spool, loaded.results);
        let shows_all = self.reproject_views(loaded.dirty_views, is_own, now);
        if !is_own {
            self.mark_files(adopted_all && shows_all);
        }
        for agent in self.state.agents.values() {
            self.watches.follow_process(agent, &self.state);
        }
        Ok(())
    }

    /// Writes the views that may be older than the store, and those of history that are needed and gone. If the folder
    /// was not written from this state file, writes all views and removes those of others. Returns whether the folder
    /// now shows what the store knows.
    fn reproject_views(&mut self, dirty: Vec<String>, is_own: bool, now: &Now) -> bool {
        let mut views = dirty;
        let mut history = Vec::new();
        let mut shows_all = true;
        match kept_views(&self.state, &self.store) {
            Ok(kept) => {
                let is_gone = |file: OutputFile| self.spool.exists(&file).is_ok_and(|is_there| !is_there);
                let agents = kept.agents.iter().filter(|id| is_gone(OutputFile::Agent(**id)));
                views.extend(agents.map(|id| format!("agents/{id}")));
                let handoffs = kept.handoffs.iter().filter(|id| is_gone(OutputFile::Handoff(**id)));
                views.extend(handoffs.map(|id| format!("handoffs/{id}")));
            }
            Err(error) => tracing::warn!(%error, "could not find out which views of the past are needed"),
        }
        if is_own {
            views.extend(self.missing_items());
        } else {
            views.extend(self.state.agents.keys().map(|id| format!("agents/{id}")));
            views.extend(self.state.handoffs.keys().map(|id| format!("handoffs/{id}")));
            views.extend(self.state.items.values().map(|item| format!("work/{}", item.item_id)));
            match self.store.past_ids() {
                Ok(past) => {
                    shows_all = self.remove_unknown_views(&past);
                    history.extend(past.agents.iter().map(|id| format!("agents/{id}")));
                    history.extend(past.handoffs.iter().map(|id| format!("handoffs/{id}")));
                    views.extend(past.items.iter().map(|id| format!("work/{id}")));
                }
                Err(error) => {
                    tracing::warn!(%error, "could not find out which views of the past are missing");
                    shows_all = false;
                }
            }
        }
        for view in views {
            self.reproject_view(&view, None);
        }
        // Of the rest of history, only the views that the clean-up would keep.
        let kept_ms = now.wall_ms.saturating_sub(KEPT_MS);
        for view in history {
            self.reproject_view(&view, Some(&rfc3339(kept_ms)));
        }
        let open = self.state.items.values().filter(|item| item.is_open()).map(|item| item.item_id).collect();
        self.projection.reproject_open_items(&self.spool, &open);
        shows_all
    }

    /// The views of work items that somebody has removed. No view of an item goes by its age.
    fn missing_items(&self) -> Vec<String> {
        let (Ok(there), Ok(past)) = (self.spool.ids(ProjectionFolder::Work), self.store.past_items()) else {
            // What keeps the folder or the store from being read is told by those who need them.
            return Vec::new();
        };
        let there: BTreeSet<Uuid> = there.into_iter().collect();
        let all = self.state.items.values().map(|item| item.item_id).chain(past);
        all.filter(|id| !there.contains(&id.0)).map(|id| format!("work/{id}")).collect()
    }

    /// Marks the views and the errors as those of this state file. If they are not yet (`is_complete`), removes the
    /// mark, so that the next start removes no error that it does not know, and tries again.
    fn mark_files(&self, is_complete: bool) {
        let tag = self.store.home_tag().ok().filter(|_| is_complete);
        let marked = match tag {
            Some(tag) => self.spool.put(&OutputFile::ViewsTag, tag.as_bytes()),
            None => self.spool.remove(&OutputFile::ViewsTag).map(drop),
        };
        if let Err(error) = marked {
            tracing::warn!(%error, is_complete, "could not mark whether the views are complete");
        }
    }

    /// Writes one view again, unless what it shows was over before `since`.
    pub(super) fn reproject_view(&mut self, name: &str, since: Option<&str>) {
        let was_before = |at: Option<&String>| since.zip(at).is_some_and(|(since, at)| at.as_str() < since);
        let Some((kind, id)) = name.split_once('/') else { return };
        let found = match (kind, id.parse(), id.parse()) {
            ("agents", Ok(id), _) => {
                let row = self.state.agents.get(&id).cloned();
                let row = row.or_else(|| self.store.past_agent(&id).ok().flatten());
                let row = row.filter(|row| !was_before(row.ended_at.as_ref()));
                row.map(|row| (OutputFile::Agent(id), contract::text(&view::agent(&row, &self.state.settings))))
            }
            ("handoffs", _, Ok(id)) => {
                let row = self.state.handoffs.get(&id).cloned();
                let row = row.or_else(|| self.store.past_handoff(&id).ok().flatten());
                let row = row.filter(|row| !was_before(row.steps.last().map(|span| &span.entered_at)));
                row.map(|row| (OutputFile::Handoff(id), contract::text(&view::handoff(&row, &self.state.settings))))
            }
            ("work", ..) => {
                let row = id.parse().ok().and_then(|id: ItemId| {
                    self.state.items.get(&id).cloned().or_else(|| self.store.past_item(&id).ok().flatten())
                });
                row.map(|row| (OutputFile::Work(row.item_id.0), contract::text(&view::item(&row))))
            }
            _ => None,
        };
        let Some((place, text)) = found else { return };
        if !self.spool.holds(&place, plain_json(&text).as_bytes()) {
            self.projection.view(&self.spool, place, &text);
        }
    }
}

fn settled_key(event: &Event) -> Option<EffectKey> {
    match event {
        Event::Settled { key, .. } => Some(*key),
        _ => None,
    }
}
