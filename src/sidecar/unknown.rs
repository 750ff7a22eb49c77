//! Deals with views and error files that the state file does not know because it was replaced, by a new file or by an
//! older copy of itself. Such an error file is a failure that nobody has dismissed, so it stays, and its error is taken
//! into the store. Such a view shows something that tasuki does not know any more, so it is removed.

use super::parts::Sidecar;
use crate::contract::{self, ErrorFile};
use crate::core::decision::ErrorRow;
use crate::core::id::{AgentId, ErrorId, HandoffId, ItemId};
use crate::core::time::Now;
use crate::spool::{self, OutputFile, ProjectionFolder};
use crate::store::{Error, PastIds};
use std::collections::BTreeSet;
use uuid::Uuid;

/// The code of the error that says so.
const STATE_REPLACED: &str = "state_replaced";

impl Sidecar {
    /// Whether the views, errors and journal of this home were written from this state file, as it is now or as it was
    /// earlier. `next_seq`: the number of its next journal line. If the journal already has this number, it was written
    /// from a later state.
    pub(super) fn files_are_of_this_state(&self, next_seq: u64) -> bool {
        let tag = self.store.home_tag().unwrap_or_default();
        self.spool.holds(&OutputFile::ViewsTag, tag.as_bytes()) && self.projection.last_seq() < next_seq
    }

    /// Leaves an error for the operator if the journal was written from a later state than the present one: the state
    /// file was lost, or somebody has put back an older copy. An agent that has started since may still run, and tasuki
    /// does not know of it: a second one would do the same work.
    ///
    /// # Errors
    /// The store can't be written.
    pub(super) fn tell_of_replacement(&mut self, now: &Now) -> Result<(), Error> {
        let (written, known) = (self.projection.last_seq(), self.state.next_seq.saturating_sub(1));
        if written <= known {
            return Ok(());
        }
        let row = ErrorRow {
            error_id: ErrorId(Uuid::new_v4()),
            at: now.rfc3339(),
            code: STATE_REPLACED.to_owned(),
            message: format!(
                "The state file is new, or an older copy: it ends at line {known} of the journal, and the journal has \
                 {written}. tasuki does not know what has happened since"
            ),
            hint: "Before you start or hand off an agent, look in tmux for agents that still run. Tell tasuki of each that \
                   `tasuki agents` does not show: tasuki agent register PANE --persona NAME."
                .to_owned(),
            handoff_id: None,
            agent_id: None,
            step: None,
        };
        tracing::error!("{}", row.message);
        self.store.adopt_errors(std::slice::from_ref(&row))?;
        self.projection.error_rows(&self.spool, vec![row]);
        Ok(())
    }

    /// Takes the errors that lie in `errors/` into the store, if it does not know them. Returns whether it has taken
    /// all of them.
    ///
    /// # Errors
    /// The store can't be read or written.
    pub(super) fn adopt_errors(&mut self) -> Result<bool, Error> {
        let there = match self.spool.ids(ProjectionFolder::Errors) {
            Ok(there) => there,
            Err(error) => {
                tracing::warn!(%error, "could not find out which errors the state file does not know; they stay");
                return Ok(false);
            }
        };
        let (mut rows, mut has_all) = (Vec::new(), true);
        for id in there.into_iter().map(ErrorId) {
            if self.store.has_error(&id)? {
                continue;
            }
            match self.read_error(id) {
                Ok(row) => rows.extend(row),
                Err(error) => {
                    let file = self.spool.path_of(&OutputFile::Error(id)).display().to_string();
                    tracing::warn!(file, error, "could not read an error that the state file does not know; it stays");
                    has_all = false;
                }
            }
        }
        if rows.is_empty() {
            return Ok(has_all);
        }
        tracing::warn!(
            errors = rows.len(),
            "the state file is new, or an older copy, and does not know these errors; they stay until they are dismissed"
        );
        self.store.adopt_errors(&rows)?;
        self.projection.error_rows(&self.spool, rows);
        Ok(has_all)
    }

    /// The error in a file; `None` if somebody has deleted the file meanwhile.
    fn read_error(&self, id: ErrorId) -> Result<Option<ErrorRow>, String> {
        let bytes = self.spool.get(&OutputFile::Error(id)).map_err(|error| error.to_string())?;
        let Some(bytes) = bytes else { return Ok(None) };
        let read = contract::read::<ErrorFile>(&bytes).map_err(|error| error.to_string())?;
        let file = read.ok_or("it is not a JSON object")?;
        let uuid = |text: Option<String>| text.and_then(|text| text.parse::<Uuid>().ok());
        Ok(Some(ErrorRow {
            error_id: id,
            at: file.at,
            code: file.code,
            message: file.message,
            hint: file.hint,
            handoff_id: uuid(file.handoff_id).map(HandoffId),
            agent_id: uuid(file.agent_id).map(AgentId),
            step: file.step,
        }))
    }

    /// Removes the views of agents, handoffs and work items that the store does not know. `past`: what it knows beside
    /// the working set. Returns whether all of them are gone.
    pub(super) fn remove_unknown_views(&mut self, past: &PastIds) -> bool {
        let agents = self.state.agents.keys().chain(&past.agents).map(|id| id.0).collect();
        let handoffs = self.state.handoffs.keys().chain(&past.handoffs).map(|id| id.0).collect();
        let items = self.state.items.values().map(|item| &item.item_id).chain(&past.items).map(|id| id.0).collect();
        let (mut removed, mut is_done) = (0, true);
        for done in [
            self.remove_others(ProjectionFolder::Agents, &agents, |id| OutputFile::Agent(AgentId(id))),
            self.remove_others(ProjectionFolder::Handoffs, &handoffs, |id| OutputFile::Handoff(HandoffId(id))),
            self.remove_others(ProjectionFolder::Work, &items, |id| OutputFile::Work(ItemId(id).0)),
        ] {
            match done {
                Ok(count) => removed += count,
                Err(error) => {
                    tracing::warn!(%error, "could not remove all views that the state file does not know");
                    is_done = false;
                }
            }
        }
        if removed > 0 {
            tracing::warn!(
                removed,
                "removed the views of agents, handoffs and work items that the state file does not know"
            );
        }
        is_done
    }

    fn remove_others(
        &self,
        folder: ProjectionFolder,
        known: &BTreeSet<Uuid>,
        file: fn(Uuid) -> OutputFile,
    ) -> Result<usize, spool::Error> {
        let mut removed = 0;
        for id in self.spool.ids(folder)?.into_iter().filter(|id| !known.contains(id)) {
            removed += usize::from(self.spool.remove(&file(id))?);
        }
        Ok(removed)
    }
}
