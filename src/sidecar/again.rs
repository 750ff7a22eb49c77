//! Brings what others read up to date with the store: at the start, and after a commit of which nothing was known.

use super::Sidecar;
use crate::contract;
use crate::core::decision::ErrorRow;
use crate::core::effect::EffectKey;
use crate::core::event::Event;
use crate::core::id::{ErrorId, RequestId};
use crate::core::text::plain_json;
use crate::core::time::{Now, stamp};
use crate::core::view;
use crate::spool::age::KEPT_MS;
use crate::spool::{Place, Shelf};
use crate::store::Error;
use serde_json::Value;
use std::collections::BTreeSet;

impl Sidecar {
    /// Submits what lies in the outbox and does not run: what a former process or a commit of which nothing was known
    /// may have left. What has ended, and waits to be decided, is not done again.
    pub(super) fn resume_outbox(&mut self) {
        let initial = std::mem::take(&mut self.pending.initial);
        let ended: BTreeSet<EffectKey> = self.pending.events.iter().filter_map(settled_key).collect();
        for (key, effect) in self.state.outbox.clone() {
            if !self.runner.has(key) && !ended.contains(&key) {
                self.runner.submit(key, effect, initial.contains(&key));
            }
        }
    }

    /// Opens the store anew and reads the state again, after a failure of which nothing is known. Says whether that is done:
    /// where all of the file is read first, it is to be asked for again.
    ///
    /// # Errors
    /// It can't be opened or read; it stays closed.
    pub(super) fn reload_state(&mut self, now: &Now) -> Result<bool, Error> {
        let Some(mut loaded) = self.store.reopen()? else { return Ok(false) };
        loaded.state.settings = std::mem::take(&mut self.state.settings);
        loaded.state.server = self.state.server;
        loaded.state.roles = std::mem::take(&mut self.state.roles);
        loaded.state.rebase(now);
        self.state = loaded.state;
        self.pending.paged_agents.clear();
        self.pending.paged_handoffs.clear();
        self.pending.paged_items.clear();
        let lines = loaded.journal.into_iter().map(|(seq, line)| (seq, line.to_string())).collect();
        self.projector.journal_lines(&self.spool, lines);
        self.errors_again(loaded.errors, &loaded.written_errors)?;
        self.results_again(loaded.results);
        self.views_again(loaded.dirty_views, now);
        for agent in self.state.agents.values().cloned().collect::<Vec<_>>() {
            self.watch_process(&agent);
        }
        let outbox = &self.state.outbox;
        self.runner.keep_only(|key| outbox.contains_key(&key));
        if self.pending.drained {
            self.resume_outbox();
        }
        Ok(true)
    }

    /// Writes error files that may be missing, and makes both sides agree on what was dismissed: a file that the store
    /// does not know was to be removed when the sidecar ended, and one that was written and is gone was deleted by hand.
    ///
    /// # Errors
    /// The store refuses to forget what was dismissed.
    pub(super) fn errors_again(&mut self, unwritten: Vec<ErrorRow>, written: &[ErrorId]) -> Result<(), Error> {
        let known: BTreeSet<ErrorId> =
            unwritten.iter().map(|row| row.error_id).chain(written.iter().copied()).collect();
        self.projector.error_rows(&self.spool, unwritten);
        let there: BTreeSet<ErrorId> = match self.spool.ids(Shelf::Errors) {
            Ok(ids) => ids.into_iter().map(ErrorId).collect(),
            Err(error) => {
                tracing::warn!(%error, "it can't be seen which errors were dismissed");
                return Ok(());
            }
        };
        for id in there.difference(&known) {
            if let Err(error) = self.spool.remove(&Place::Error(*id)) {
                tracing::warn!(%error, "a dismissed error file can't be removed");
            }
        }
        let deleted: Vec<ErrorId> = written.iter().filter(|id| !there.contains(id)).copied().collect();
        self.store.forget_errors(&deleted)
    }

    pub(super) fn results_again(&mut self, results: Vec<(RequestId, Value)>) {
        for (id, result) in results {
            let (place, text) = (Place::Result(id), result.to_string());
            if !self.spool.holds(&place, plain_json(&text).as_bytes()) {
                self.projector.put(&self.spool, place, &text);
            }
        }
    }

    /// Writes views that may be older than the store; all of them where the folder was not built by this home.
    pub(super) fn views_again(&mut self, dirty: Vec<String>, now: &Now) {
        let tag = self.store.home_tag().unwrap_or_default();
        let is_built = self.spool.holds(&Place::Built, tag.as_bytes());
        let mut views = dirty;
        let mut history = Vec::new();
        if !is_built {
            views.extend(self.state.agents.keys().map(|id| format!("agents/{id}")));
            views.extend(self.state.handoffs.keys().map(|id| format!("handoffs/{id}")));
            views.extend(self.state.items.values().map(|item| format!("work/{}", item.item_id)));
            if let Ok(past) = self.store.past_ids() {
                history.extend(past.agents.iter().map(|id| format!("agents/{id}")));
                history.extend(past.handoffs.iter().map(|id| format!("handoffs/{id}")));
                views.extend(past.items.iter().map(|id| format!("work/{id}")));
            }
        }
        for view in views {
            self.view_again(&view, None);
        }
        // Of history only what would not go again at once.
        let kept_ms = now.wall_ms.saturating_sub(KEPT_MS);
        for view in history {
            self.view_again(&view, Some(&stamp(kept_ms)));
        }
        self.open_items_again();
        if !is_built && let Err(error) = self.spool.put(&Place::Built, tag.as_bytes()) {
            tracing::warn!(%error, "the view folder can't be marked as built");
        }
    }

    /// Writes one view again, unless what it shows was over before `since`.
    pub(super) fn view_again(&mut self, name: &str, since: Option<&str>) {
        let was_before = |at: Option<&String>| since.zip(at).is_some_and(|(since, at)| at.as_str() < since);
        let Some((kind, id)) = name.split_once('/') else { return };
        let found = match (kind, id.parse(), id.parse()) {
            ("agents", Ok(id), _) => {
                let row = self.state.agents.get(&id).cloned();
                let row = row.or_else(|| self.store.past_agent(&id).ok().flatten());
                let row = row.filter(|row| !was_before(row.ended_at.as_ref()));
                row.map(|row| (Place::Agent(id), contract::text(&view::agent(&row))))
            }
            ("handoffs", _, Ok(id)) => {
                let row = self.state.handoffs.get(&id).cloned();
                let row = row.or_else(|| self.store.past_handoff(&id).ok().flatten());
                let row = row.filter(|row| !was_before(row.steps.last().map(|span| &span.entered_at)));
                row.map(|row| (Place::Handoff(id), contract::text(&view::handoff(&row))))
            }
            ("work", ..) => self.item_again(id),
            _ => None,
        };
        let Some((place, text)) = found else { return };
        if !self.spool.holds(&place, plain_json(&text).as_bytes()) {
            self.projector.view(&self.spool, place, &text);
        }
    }
}

fn settled_key(event: &Event) -> Option<EffectKey> {
    match event {
        Event::Settled { key, .. } => Some(*key),
        _ => None,
    }
}
