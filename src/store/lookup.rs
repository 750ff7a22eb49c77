//! Looks up single rows.

use super::error::Error;
use super::history::{self, HistoryError, HistoryKind};
use super::rows::{LedgerRow, NamedInErrors, SeenEvent, StoredError};
use super::{Store, case_twins, tables};
use crate::core::event::LedgerEntry;
use crate::core::id::{AgentId, ErrorId, HandoffId, ItemId, RequestId};
use crate::core::rows::agent::Agent;
use crate::core::rows::handoff::Handoff;
use crate::core::rows::item::Item;
use redb::{ReadableTable, TableHandle};
use serde::Deserialize;

impl Store {
    /// The ledger's entry for a request id.
    ///
    /// # Errors
    /// [`Error::Row`] where its row is damaged, or what the disk refused.
    pub fn ledger_entry(&self, id: &RequestId) -> Result<Option<LedgerEntry>, Error> {
        let row: Option<LedgerRow> = self.get(tables::LEDGER, id.as_str())?;
        Ok(row.map(|row| LedgerEntry { sha256: row.sha256, result: row.result }))
    }

    /// Whether the ledger has a request whose id differs from this one by case alone.
    ///
    /// # Errors
    /// What the disk refused.
    pub fn has_case_twin(&self, id: &RequestId) -> Result<bool, Error> {
        let read = self.read()?;
        let look = || -> Result<bool, redb::Error> {
            let (ledger, cases) = (read.open_table(tables::LEDGER)?, read.open_table(tables::LEDGER_CASES)?);
            case_twins::has(&ledger, &cases, id.as_str())
        };
        look().map_err(|error| self.failed("read", error))
    }

    /// Whether this event file was decided before.
    ///
    /// # Errors
    /// [`Error::Row`] where its row is damaged, or what the disk refused.
    pub fn was_seen(&self, event: &SeenEvent) -> Result<bool, Error> {
        let row: Option<SeenEvent> = self.get(tables::SEEN, event.name.as_str())?;
        Ok(row.is_some_and(|row| row.is_same_file(event)))
    }

    /// Finds an agent in the history.
    ///
    /// # Errors
    /// [`Error::Row`] where its row is damaged, or what the disk refused.
    pub fn past_agent(&self, id: &AgentId) -> Result<Option<Agent>, Error> {
        history::get(&self.read()?, HistoryKind::Agents, id.0.as_u128()).map_err(|fault| self.history_failed(fault))
    }

    /// Finds a handoff in the history.
    ///
    /// # Errors
    /// [`Error::Row`] where its row is damaged, or what the disk refused.
    pub fn past_handoff(&self, id: &HandoffId) -> Result<Option<Handoff>, Error> {
        history::get(&self.read()?, HistoryKind::Handoffs, id.0.as_u128()).map_err(|fault| self.history_failed(fault))
    }

    /// Finds a work item in the history.
    ///
    /// # Errors
    /// [`Error::Row`] where its row is damaged, or what the disk refused.
    pub fn past_item(&self, id: &ItemId) -> Result<Option<Item>, Error> {
        history::get(&self.read()?, HistoryKind::Work, id.0.as_u128()).map_err(|fault| self.history_failed(fault))
    }

    /// Whether the error exists and was not dismissed.
    ///
    /// # Errors
    /// [`Error::Row`] where its row is damaged, or what the disk refused.
    pub fn has_error(&self, id: &ErrorId) -> Result<bool, Error> {
        let found: Option<StoredError> = self.get(tables::ERRORS, id.0.as_u128())?;
        Ok(found.is_some())
    }

    /// The agents and handoffs that undismissed errors name. A damaged row names nothing.
    ///
    /// # Errors
    /// What the disk refused.
    pub fn what_errors_name(&self) -> Result<NamedInErrors, Error> {
        let table = self.read()?.open_table(tables::ERRORS).map_err(|error| self.failed("read", error))?;
        let mut named = NamedInErrors::default();
        for entry in table.iter().map_err(|error| self.failed("read", error))? {
            let (_, value) = entry.map_err(|error| self.failed("read", error))?;
            if let Ok(StoredError { row, .. }) = serde_json::from_slice(value.value()) {
                named.agents.extend(row.agent_id);
                named.handoffs.extend(row.handoff_id);
            }
        }
        Ok(named)
    }

    /// The recorded document of a handoff that is neither done nor cancelled.
    ///
    /// # Errors
    /// What the disk refused.
    pub fn document(&self, id: &HandoffId) -> Result<Option<String>, Error> {
        let table = self.read()?.open_table(tables::DOCUMENTS).map_err(|error| self.failed("read", error))?;
        let found = table.get(id.0.as_u128()).map_err(|error| self.failed("read", error))?;
        Ok(found.map(|value| value.value().to_owned()))
    }

    fn history_failed(&self, fault: HistoryError) -> Error {
        match fault {
            HistoryError::Store(error) => self.failed("read", *error),
            HistoryError::Row(why) => self.row_corrupt("history", &why),
        }
    }

    fn get<'k, K, T>(
        &self,
        table: redb::TableDefinition<'static, K, &'static [u8]>,
        key: impl std::borrow::Borrow<K::SelfType<'k>>,
    ) -> Result<Option<T>, Error>
    where
        K: redb::Key + 'static,
        T: for<'de> Deserialize<'de>,
    {
        let name = table.name().to_owned();
        let table = self.read()?.open_table(table).map_err(|error| self.failed("read", error))?;
        let Some(found) = table.get(key).map_err(|error| self.failed("read", error))? else { return Ok(None) };
        serde_json::from_slice(found.value()).map(Some).map_err(|error| self.row_corrupt(&name, &error))
    }
}
