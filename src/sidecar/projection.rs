//! Writes what others read: results, views, error files and the journal. All of it is a projection of the store. If
//! something could not be written, it is kept and tried again. The next start checks what was written since the last
//! checkpoint.

use super::waiting::WaitingFiles;
use crate::contract;
use crate::core::decision::{Decision, ErrorRow};
use crate::core::id::{ErrorId, ItemId, RequestId};
use crate::core::rows::item::Item;
use crate::core::settings::Settings;
use crate::core::text::plain_json;
use crate::core::time::Now;
use crate::core::view;
use crate::spool::{Journal, OutputFile, ProjectionFolder, Spool};
use crate::store::Checkpoint;
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// After so many files in a row that could not be written, the rest waits for the next tick: most likely none can be
/// written.
const MOST_FAILURES: usize = 1_000;

/// After this many writes a checkpoint is due at once. Otherwise it waits for the next tick.
const CHECKPOINT_AFTER: usize = 4_000;

pub(super) struct Projection {
    journal: Journal,
    /// Journal lines that are not written yet.
    lines: Vec<(u64, String)>,
    /// Files that could not be written, with their text.
    waiting: WaitingFiles,
    /// Error files that are not written yet.
    errors: Vec<ErrorRow>,
    /// Views that were written since the last checkpoint.
    views: BTreeSet<String>,
    /// Error files that were written since the last checkpoint.
    written: Vec<ErrorId>,
    /// Items that have a mark in `view/work/open`.
    open_items: BTreeSet<ItemId>,
    since_checkpoint: usize,
    /// Why something that others read can't be written at the moment.
    pub(super) unwritten: Option<String>,
}

impl Projection {
    pub(super) fn new(journal: Journal) -> Self {
        Projection {
            journal,
            lines: Vec::new(),
            waiting: WaitingFiles::default(),
            errors: Vec::new(),
            views: BTreeSet::new(),
            written: Vec::new(),
            open_items: BTreeSet::new(),
            since_checkpoint: 0,
            unwritten: None,
        }
    }

    /// Shows what was committed: views and journal first, so that a client that sees a result finds what it refers to.
    pub(super) fn show(&mut self, spool: &Spool, now: &Now, decision: &Decision, settings: &Settings) {
        // A file is written before another file names it: error files before views and journal, all of it before
        // results.
        self.errors.extend(decision.errors.iter().cloned());
        self.write_errors(spool);
        for agent in decision.agents.values() {
            self.view(spool, OutputFile::Agent(agent.agent_id), &contract::text(&view::agent(agent, settings)));
        }
        for handoff in decision.handoffs.values() {
            let text = contract::text(&view::handoff(handoff, settings));
            self.view(spool, OutputFile::Handoff(handoff.handoff_id), &text);
        }
        // A child is younger than its parent, whose view names it.
        let mut items: Vec<&Item> = decision.items.values().collect();
        items.sort_by_key(|item| Reverse(item.order));
        for item in items {
            self.view(spool, OutputFile::Work(item.item_id.0), &contract::text(&view::item(item)));
            self.mark_open(spool, item.item_id, item.is_open());
        }
        self.lines.extend(decision.journal.iter().map(|(seq, line)| (*seq, line.to_string())));
        self.append(spool);
        for id in &decision.dismissed {
            self.errors.retain(|row| row.error_id != *id);
            if let Err(error) = spool.remove(&OutputFile::Error(*id)) {
                tracing::warn!(%error, "could not delete the file of a dismissed error");
            }
        }
        for answer in &decision.answers {
            self.put(spool, OutputFile::Result(answer.request_id.clone()), &answer.to_json(now).to_string());
        }
    }

    pub(super) fn view(&mut self, spool: &Spool, place: OutputFile, text: &str) {
        self.views.extend(view_name(&place));
        self.put(spool, place, text);
    }

    /// Writes or removes the mark of an item that is not done: an empty file, so that nobody has to read all views to
    /// find such items.
    pub(super) fn mark_open(&mut self, spool: &Spool, id: ItemId, open: bool) {
        let place = OutputFile::OpenWork(id.0);
        if open && self.open_items.insert(id) {
            self.put(spool, place, "");
        } else if !open && self.open_items.remove(&id) {
            self.waiting.remove(&place);
            if let Err(error) = spool.remove(&place) {
                tracing::warn!(%error, "could not remove the mark of a work item that is done");
            }
        }
    }

    /// Writes one file, or keeps it for the next tick.
    pub(super) fn put(&mut self, spool: &Spool, place: OutputFile, text: &str) {
        self.try_to_put(spool, place, text);
    }

    /// As [`Projection::put`]. Returns whether the file was written.
    fn try_to_put(&mut self, spool: &Spool, place: OutputFile, text: &str) -> bool {
        self.since_checkpoint += 1;
        let text = plain_json(text);
        self.waiting.remove(&place);
        let Err(error) = spool.put(&place, text.as_bytes()) else { return true };
        if self.unwritten.is_none() {
            tracing::warn!(%error, "could not write a view, a result or a mark; tasuki tries again");
        }
        self.unwritten = Some(error.to_string());
        self.waiting.push(place, text.into_owned());
        false
    }

    pub(super) fn journal_lines(&mut self, spool: &Spool, lines: Vec<(u64, String)>) {
        self.lines.extend(lines);
        // If lines could not be written, they were kept, and now come again from the store.
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
                tracing::warn!(%error, "could not write the journal; tasuki tries again");
                self.unwritten = Some(error.to_string());
            }
        }
    }

    /// Writes error files. Rows that wait to be written, or were written since the last checkpoint, are left out: the
    /// store gives them again each time it is read.
    pub(super) fn error_rows(&mut self, spool: &Spool, mut rows: Vec<ErrorRow>) {
        let known: BTreeSet<ErrorId> =
            self.errors.iter().map(|row| row.error_id).chain(self.written.iter().copied()).collect();
        rows.retain(|row| !known.contains(&row.error_id));
        self.errors.extend(rows);
        self.write_errors(spool);
    }

    fn write_errors(&mut self, spool: &Spool) {
        let rows = std::mem::take(&mut self.errors);
        for row in rows {
            match spool.put_error(&row.error_id, plain_json(&contract::text(&row.file())).as_bytes()) {
                Ok(_) => self.written.push(row.error_id),
                Err(error) => {
                    tracing::error!(%error, "could not write an error file; tasuki tries again");
                    self.unwritten = Some(error.to_string());
                    self.errors.push(row);
                }
            }
        }
    }

    /// For tests: how many error files wait to be written, and how many were written since the last checkpoint.
    #[cfg(test)]
    pub(super) fn pending_errors(&self) -> (usize, usize) {
        (self.errors.len(), self.written.len())
    }

    pub(super) fn retry(&mut self, spool: &Spool) {
        self.unwritten = None;
        let mut failures = 0;
        for _ in 0..self.waiting.len() {
            let Some((place, text)) = self.waiting.pop() else { break };
            failures = if self.try_to_put(spool, place, &text) { 0 } else { failures + 1 };
            if failures == MOST_FAILURES {
                break;
            }
        }
        self.append(spool);
        self.write_errors(spool);
    }

    pub(super) fn withdraw(&self, spool: &Spool) {
        if let Err(error) = spool.remove(&OutputFile::Sidecar) {
            tracing::warn!(%error, "could not delete the heartbeat, view/sidecar.json");
        }
    }

    pub(super) fn last_seq(&self) -> u64 {
        self.journal.last_seq()
    }

    pub(super) fn wants_checkpoint(&self, is_tick: bool) -> bool {
        self.since_checkpoint >= CHECKPOINT_AFTER || (is_tick && self.since_checkpoint > 0) || !self.written.is_empty()
    }

    /// What was written since the last checkpoint, for the next one. `ledger_below`: requests with lower ledger numbers
    /// were answered.
    pub(super) fn take_checkpoint(&mut self, ledger_below: u64) -> Checkpoint {
        self.since_checkpoint = 0;
        let all_written = self.waiting.is_empty();
        let waiting: BTreeSet<String> = self.waiting.places().filter_map(view_name).collect();
        let all = std::mem::take(&mut self.views).into_iter();
        let (waiting, views): (Vec<String>, Vec<String>) = all.partition(|view| waiting.contains(view));
        self.views.extend(waiting);
        Checkpoint {
            journal_below: self.journal.last_seq() + 1,
            ledger_below: if all_written { ledger_below } else { 0 },
            views,
            errors: std::mem::take(&mut self.written),
        }
    }

    /// Takes back a checkpoint that is not known to be on the disk: the next one covers the same files.
    pub(super) fn give_back(&mut self, checkpoint: Checkpoint) {
        self.written.extend(checkpoint.errors);
        self.views.extend(checkpoint.views);
        self.since_checkpoint = self.since_checkpoint.max(1);
    }

    /// Leaves out the views that were written again since: their newer content may not be on the disk.
    pub(super) fn without_newer(&self, mut checkpoint: Checkpoint) -> Checkpoint {
        checkpoint.views.retain(|view| !self.views.contains(view));
        checkpoint
    }

    /// Writes error files that may be missing, and finds out which errors were dismissed. If the store does not know a
    /// file, its error was dismissed and the sidecar ended before it removed the file, so it is removed now. If a file
    /// was written and is gone, a person has deleted it, and its id is returned. `is_own`: the files were written from
    /// this state file; otherwise no file is removed.
    pub(super) fn reproject_errors(
        &mut self,
        spool: &Spool,
        unwritten: Vec<ErrorRow>,
        written: &[ErrorId],
        is_own: bool,
    ) -> Vec<ErrorId> {
        let known: BTreeSet<ErrorId> =
            unwritten.iter().map(|row| row.error_id).chain(written.iter().copied()).collect();
        self.error_rows(spool, unwritten);
        let there: BTreeSet<ErrorId> = match spool.ids(ProjectionFolder::Errors) {
            Ok(ids) => ids.into_iter().map(ErrorId).collect(),
            Err(error) => {
                tracing::warn!(%error, "could not find out which errors were dismissed");
                return Vec::new();
            }
        };
        for id in there.difference(&known).filter(|_| is_own) {
            if let Err(error) = spool.remove(&OutputFile::Error(*id)) {
                tracing::warn!(%error, "could not delete the file of a dismissed error");
            }
        }
        written.iter().filter(|id| !there.contains(id)).copied().collect()
    }

    pub(super) fn reproject_results(&mut self, spool: &Spool, results: Vec<(RequestId, Value)>) {
        for (id, result) in results {
            let (place, text) = (OutputFile::Result(id), result.to_string());
            if !spool.holds(&place, plain_json(&text).as_bytes()) {
                self.put(spool, place, &text);
            }
        }
    }

    /// Brings the marks of items that are not done up to date.
    pub(super) fn reproject_open_items(&mut self, spool: &Spool, open: &BTreeSet<ItemId>) {
        let there: BTreeSet<ItemId> = match spool.ids(ProjectionFolder::OpenWork) {
            Ok(ids) => ids.into_iter().map(ItemId).collect(),
            Err(error) => {
                tracing::warn!(%error, "could not find out which work items are marked as open");
                return;
            }
        };
        self.open_items.clone_from(&there);
        for id in there.symmetric_difference(open) {
            self.mark_open(spool, *id, open.contains(id));
        }
    }
}

/// The name by which the store notes that a view was written; none if the file is not such a view.
fn view_name(place: &OutputFile) -> Option<String> {
    match place {
        OutputFile::Agent(id) => Some(format!("agents/{id}")),
        OutputFile::Handoff(id) => Some(format!("handoffs/{id}")),
        OutputFile::Work(id) => Some(format!("work/{}", id.as_hyphenated())),
        _ => None,
    }
}
