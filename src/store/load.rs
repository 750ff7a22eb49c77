//! Loads the working set, and finds which files the last run may not have written.

use super::error::Error;
use super::history::{self, HistoryKind};
use super::rows::{LedgerRow, StoredError};
use super::{Store, tables};
use crate::core::decision::ErrorRow;
use crate::core::effect::EffectKey;
use crate::core::id::{AgentId, ErrorId, HandoffId, ItemId, RequestId};
use crate::core::rows::items::Items;
use crate::core::state::State;
use redb::{ReadableTable, TableDefinition, TableHandle};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;
use uuid::Uuid;

/// What a start loads from the store.
pub struct Loaded {
    /// The working set. Settings, rules and roles come from other files.
    pub state: State,
    /// Lines that may be missing in the journal's file, by number.
    pub journal: Vec<(u64, Value)>,
    /// Answers whose result file may be missing in `spool/results/`, by request id.
    pub results: Vec<(RequestId, Value)>,
    /// Views that may be older than the store: `agents/<id>`, `handoffs/<id>`, `work/<id>`.
    pub dirty_views: Vec<String>,
    /// Error files that may not have been written.
    pub errors: Vec<ErrorRow>,
    /// Errors whose file was written. If the file is missing now, somebody has deleted it, which dismisses the error.
    pub written_errors: Vec<ErrorId>,
}

/// The ids of the history.
pub struct PastIds {
    pub agents: Vec<AgentId>,
    pub handoffs: Vec<HandoffId>,
    /// Work items that are done or withdrawn.
    pub items: Vec<ItemId>,
}

fn load_state(store: &Store, read: &redb::ReadTransaction) -> Result<State, Error> {
    let agents = rows(store, read, tables::AGENTS)?.into_iter();
    let handoffs = rows(store, read, tables::HANDOFFS)?.into_iter();
    let mut items = Items::default();
    for (_, item) in rows(store, read, tables::WORK)? as Vec<(u128, _)> {
        items.insert(item);
    }
    let outbox = rows(store, read, tables::OUTBOX)?.into_iter();
    Ok(State {
        agents: agents.map(|(key, row)| (AgentId(Uuid::from_u128(key)), row)).collect(),
        handoffs: handoffs.map(|(key, row)| (HandoffId(Uuid::from_u128(key)), row)).collect(),
        items,
        open_requests: open_requests(store, read)?,
        outbox: outbox.map(|(key, row)| (EffectKey(key), row)).collect(),
        next_effect: store.number("next_effect")?,
        next_seq: store.number("next_seq")?,
        ..State::default()
    })
}

fn open_requests(
    store: &Store,
    read: &redb::ReadTransaction,
) -> Result<BTreeMap<RequestId, crate::core::rows::lookup::OpenRequest>, Error> {
    let table = read.open_table(tables::OPEN_REQUESTS).map_err(|error| store.failed("read", error))?;
    let mut open = BTreeMap::new();
    for entry in table.iter().map_err(|error| store.failed("read", error))? {
        let (key, value) = entry.map_err(|error| store.failed("read", error))?;
        let id = key.value().parse().map_err(|error| store.corrupt("open_requests", &error))?;
        let row = serde_json::from_slice(value.value()).map_err(|error| store.corrupt("open_requests", &error))?;
        open.insert(id, row);
    }
    Ok(open)
}

/// All rows of a table.
fn rows<K, T>(
    store: &Store,
    read: &redb::ReadTransaction,
    table: TableDefinition<'static, K, &'static [u8]>,
) -> Result<Vec<(K, T)>, Error>
where
    K: redb::Key + 'static + for<'a> redb::Value<SelfType<'a> = K> + Copy,
    T: DeserializeOwned,
{
    let name = table.name().to_owned();
    let table = read.open_table(table).map_err(|error| store.failed("read", error))?;
    let mut rows = Vec::new();
    for entry in table.iter().map_err(|error| store.failed("read", error))? {
        let (key, value) = entry.map_err(|error| store.failed("read", error))?;
        let row = serde_json::from_slice(value.value()).map_err(|error| store.corrupt(&name, &error))?;
        rows.push((key.value(), row));
    }
    Ok(rows)
}

/// The answers since the last checkpoint: their result files may not have been written, or not synced.
fn unsynced_results(store: &Store, read: &redb::ReadTransaction) -> Result<Vec<(RequestId, Value)>, redb::Error> {
    let synced = store.meta("ledger_synced").ok().flatten().unwrap_or(0);
    let (order, ledger) = (read.open_table(tables::LEDGER_ORDER)?, read.open_table(tables::LEDGER)?);
    let mut results = Vec::new();
    for entry in order.range(synced..)? {
        let (_, id) = entry?;
        let row: Option<LedgerRow> =
            ledger.get(id.value())?.and_then(|value| serde_json::from_slice(value.value()).ok());
        if let (Some(result), Ok(id)) = (row.and_then(|row| row.result), id.value().parse()) {
            results.push((id, result));
        }
    }
    Ok(results)
}

fn dirty_views(read: &redb::ReadTransaction) -> Result<Vec<String>, redb::Error> {
    let table = read.open_table(tables::DIRTY)?;
    let mut dirty = Vec::new();
    for entry in table.iter()? {
        let (key, ()) = entry.map(|(key, _)| (key, ()))?;
        dirty.push(key.value().to_owned());
    }
    Ok(dirty)
}

impl Store {
    /// Reads the working set, and what the last run may not have written to files.
    ///
    /// # Errors
    /// [`Error::Unreadable`] if a row can't be parsed, or what the disk refused.
    pub fn load(&self) -> Result<Loaded, Error> {
        let read = self.read()?;
        let state = load_state(self, &read)?;
        let failed = |error: redb::Error| self.failed("read", error);
        let journal = rows(self, &read, tables::JOURNAL)?;
        let stored: Vec<(u128, StoredError)> = rows(self, &read, tables::ERRORS)?;
        let (written, errors): (Vec<_>, Vec<_>) =
            stored.into_iter().map(|(_, error)| error).partition(|error| error.written);
        let written_errors = written.into_iter().map(|error| error.row.error_id).collect();
        let errors = errors.into_iter().map(|error| error.row).collect();
        let results = unsynced_results(self, &read).map_err(failed)?;
        let dirty_views = dirty_views(&read).map_err(failed)?;
        Ok(Loaded { state, journal, results, dirty_views, errors, written_errors })
    }

    /// Ids of all work items of the history.
    ///
    /// # Errors
    /// What the disk refused.
    pub fn past_items(&self) -> Result<Vec<ItemId>, Error> {
        let ids = history::ids(&self.read()?, HistoryKind::Work).map_err(|error| self.failed("read", error))?;
        Ok(ids.into_iter().map(|id| ItemId(Uuid::from_u128(id))).collect())
    }

    /// Ids of all agents, handoffs and work items of the history. Needed only to write all views again.
    ///
    /// # Errors
    /// What the disk refused.
    pub fn past_ids(&self) -> Result<PastIds, Error> {
        let read = self.read()?;
        let ids = |kind| history::ids(&read, kind).map_err(|error| self.failed("read", error));
        let agents = ids(HistoryKind::Agents)?.into_iter().map(|id| AgentId(Uuid::from_u128(id))).collect();
        let handoffs = ids(HistoryKind::Handoffs)?.into_iter().map(|id| HandoffId(Uuid::from_u128(id))).collect();
        Ok(PastIds { agents, handoffs, items: self.past_items()? })
    }
}
