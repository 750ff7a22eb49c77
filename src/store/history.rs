//! History: rows of ended agents, finished handoffs and finished work items. They are not part of the working set and
//! their number only grows, so they must cost little. A start may have to check the whole file, so when there are
//! enough of them, tasuki packs them: many rows in one compressed value, a tenth of their size.
//!
//! A row is either *loose*, which means alone in its table, or in a *pack*, whose number is in the index under the
//! row's id. A packed row that is written again becomes loose and leaves the index. Its old copy stays in the pack, but
//! no lookup finds it.

use redb::{ReadableTable, ReadableTableMetadata, Table, TableDefinition, WriteTransaction};
use serde::de::DeserializeOwned;

type Loose = TableDefinition<'static, u128, &'static [u8]>;
type Index = TableDefinition<'static, u128, u64>;

/// Agents that are history, and not packed.
const AGENTS_PAST: Loose = TableDefinition::new("agents_past");
/// Handoffs that are history, and not packed.
const HANDOFFS_PAST: Loose = TableDefinition::new("handoffs_past");
/// Work items that are done or withdrawn, and not packed.
const WORK_PAST: Loose = TableDefinition::new("work_past");
/// The index of each kind: the number of the pack that holds a row.
const AGENTS_PACKED: Index = TableDefinition::new("agents_packed");
const HANDOFFS_PACKED: Index = TableDefinition::new("handoffs_packed");
const WORK_PACKED: Index = TableDefinition::new("work_packed");
/// The packs, by number. Each is its uncompressed size and an LZ4 block. The block holds rows one after the other, each
/// an id of 16 bytes, a length of 4 bytes, and the row. All numbers are little-endian.
const PACKS: TableDefinition<'static, u64, &'static [u8]> = TableDefinition::new("packs");

/// When at least this many rows of one kind are loose, tasuki packs the loose rows of all kinds.
const PACK_FROM: u64 = 256;
/// The most rows of a kind that one commit packs: it must not delay the loop.
const PACK_AT_ONCE: usize = 1_024;
/// The most bytes of a kind that one commit packs: a row may hold a whole document.
const PACK_BYTES_AT_ONCE: usize = 4 * 1024 * 1024;
/// A pack is full at this size, in bytes before compression.
const PACK_BYTES: usize = 96 * 1024;
/// The largest size that a pack's header may claim, in bytes. Real packs are far smaller.
const MAX_PACK_BYTES: usize = 64 * 1024 * 1024;

/// The kinds of rows in the history. Each kind has a table and an index; all kinds share the packs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HistoryKind {
    Agents,
    Handoffs,
    Work,
}

impl HistoryKind {
    const ALL: [HistoryKind; 3] = [HistoryKind::Agents, HistoryKind::Handoffs, HistoryKind::Work];

    fn loose(self) -> Loose {
        match self {
            HistoryKind::Agents => AGENTS_PAST,
            HistoryKind::Handoffs => HANDOFFS_PAST,
            HistoryKind::Work => WORK_PAST,
        }
    }

    fn index(self) -> Index {
        match self {
            HistoryKind::Agents => AGENTS_PACKED,
            HistoryKind::Handoffs => HANDOFFS_PACKED,
            HistoryKind::Work => WORK_PACKED,
        }
    }
}

/// Why a row of the history could not be read.
#[derive(Debug)]
pub(super) enum HistoryError {
    Store(Box<redb::Error>),
    /// The row itself, or the pack that holds it, can't be parsed.
    Row(String),
}

impl<E: Into<redb::Error>> From<E> for HistoryError {
    fn from(error: E) -> HistoryError {
        HistoryError::Store(Box::new(error.into()))
    }
}

/// Makes the tables of the history that are missing.
pub(super) fn create(write: &WriteTransaction) -> Result<(), redb::Error> {
    for kind in HistoryKind::ALL {
        write.open_table(kind.loose())?;
        write.open_table(kind.index())?;
    }
    write.open_table(PACKS)?;
    Ok(())
}

/// A kind's tables, open for one transaction.
pub(super) struct HistoryTables<'t> {
    loose: Table<'t, u128, &'static [u8]>,
    index: Table<'t, u128, u64>,
}

impl<'t> HistoryTables<'t> {
    pub(super) fn open(write: &'t WriteTransaction, kind: HistoryKind) -> Result<HistoryTables<'t>, redb::Error> {
        Ok(HistoryTables { loose: write.open_table(kind.loose())?, index: write.open_table(kind.index())? })
    }

    /// Writes a row, replacing an older one.
    pub(super) fn put(&mut self, id: u128, row: &[u8]) -> Result<(), redb::Error> {
        self.loose.insert(id, row)?;
        self.index.remove(id)?;
        Ok(())
    }

    /// Removes a row that belongs to the working set again.
    pub(super) fn remove(&mut self, id: u128) -> Result<(), redb::Error> {
        self.loose.remove(id)?;
        self.index.remove(id)?;
        Ok(())
    }
}

/// Finds a row, loose or packed.
///
/// # Errors
/// [`HistoryError`].
pub(super) fn get<T: DeserializeOwned>(
    read: &redb::ReadTransaction,
    kind: HistoryKind,
    id: u128,
) -> Result<Option<T>, HistoryError> {
    if let Some(row) = read.open_table(kind.loose())?.get(id)? {
        return parse(row.value()).map(Some);
    }
    let Some(number) = read.open_table(kind.index())?.get(id)?.map(|number| number.value()) else { return Ok(None) };
    let packs = read.open_table(PACKS)?;
    let pack = packs.get(number)?.ok_or_else(|| HistoryError::Row(format!("history pack {number} is missing")))?;
    let rows =
        unpack(pack.value()).ok_or_else(|| HistoryError::Row(format!("history pack {number} can't be unpacked")))?;
    let row = find(&rows, id).ok_or_else(|| HistoryError::Row(format!("history pack {number} lacks a row")))?;
    parse(row).map(Some)
}

/// The ids of all rows of a kind, loose and packed.
pub(super) fn ids(read: &redb::ReadTransaction, kind: HistoryKind) -> Result<Vec<u128>, redb::Error> {
    let mut ids = Vec::new();
    for entry in read.open_table(kind.loose())?.iter()? {
        ids.push(entry?.0.value());
    }
    for entry in read.open_table(kind.index())?.iter()? {
        ids.push(entry?.0.value());
    }
    Ok(ids)
}

/// Whether there are enough loose rows of some kind to pack.
pub(super) fn is_packing_due(read: &redb::ReadTransaction) -> Result<bool, redb::Error> {
    for kind in HistoryKind::ALL {
        if read.open_table(kind.loose())?.len()? >= PACK_FROM {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Packs loose rows of all kinds, a bounded number of each, and returns how many.
pub(super) fn pack(write: &WriteTransaction) -> Result<usize, redb::Error> {
    let mut packed = 0;
    for kind in HistoryKind::ALL {
        let (mut tables, mut packs) = (HistoryTables::open(write, kind)?, write.open_table(PACKS)?);
        let ids = some_ids(&tables)?;
        let mut number = packs.last()?.map_or(0, |(number, _)| number.value() + 1);
        let mut rows = Vec::with_capacity(PACK_BYTES + 8 * 1024);
        for (at, id) in ids.iter().enumerate() {
            if let Some(row) = tables.loose.remove(id)? {
                append(&mut rows, *id, row.value());
                tables.index.insert(id, number)?;
            }
            if rows.len() >= PACK_BYTES || at + 1 == ids.len() {
                packs.insert(number, lz4_flex::compress_prepend_size(&rows).as_slice())?;
                rows.clear();
                number += 1;
            }
        }
        packed += ids.len();
    }
    Ok(packed)
}

/// The first ids of the loose rows, as many as one commit may pack.
fn some_ids(tables: &HistoryTables<'_>) -> Result<Vec<u128>, redb::Error> {
    let (mut ids, mut bytes) = (Vec::new(), 0);
    for entry in tables.loose.iter()?.take(PACK_AT_ONCE) {
        let (id, row) = entry?;
        ids.push(id.value());
        bytes += row.value().len();
        if bytes >= PACK_BYTES_AT_ONCE {
            break;
        }
    }
    Ok(ids)
}

fn append(rows: &mut Vec<u8>, id: u128, row: &[u8]) {
    let length = u32::try_from(row.len()).expect("a row has at most some megabytes");
    rows.extend_from_slice(&id.to_le_bytes());
    rows.extend_from_slice(&length.to_le_bytes());
    rows.extend_from_slice(row);
}

/// The rows of a pack, uncompressed; none if it is damaged.
fn unpack(pack: &[u8]) -> Option<Vec<u8>> {
    let size = u32::from_le_bytes(*pack.first_chunk::<4>()?) as usize;
    if size > MAX_PACK_BYTES {
        return None;
    }
    lz4_flex::decompress_size_prepended(pack).ok()
}

/// The row with this id among the rows of a pack.
fn find(mut rows: &[u8], id: u128) -> Option<&[u8]> {
    loop {
        let (key, rest) = rows.split_first_chunk::<16>()?;
        let (length, rest) = rest.split_first_chunk::<4>()?;
        let (row, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        if u128::from_le_bytes(*key) == id {
            return Some(row);
        }
        rows = rest;
    }
}

fn parse<T: DeserializeOwned>(row: &[u8]) -> Result<T, HistoryError> {
    serde_json::from_slice(row).map_err(|error| HistoryError::Row(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use redb::{Database, ReadableDatabase, backends::InMemoryBackend};
    use serde_json::{Value, json};

    fn database() -> Database {
        let database = Database::builder().create_with_backend(InMemoryBackend::new()).expect("a database");
        write(&database, create);
        database
    }

    fn write<T>(database: &Database, work: impl FnOnce(&WriteTransaction) -> Result<T, redb::Error>) -> T {
        let write = database.begin_write().expect("a transaction");
        let done = work(&write).expect("written");
        write.commit().expect("committed");
        done
    }

    fn put(database: &Database, ids: impl Iterator<Item = u128>, word: &str) {
        write(database, |write| {
            let mut tables = HistoryTables::open(write, HistoryKind::Handoffs)?;
            for id in ids {
                tables.put(id, json!({ "id": id.to_string(), "word": word }).to_string().as_bytes())?;
            }
            Ok(())
        });
    }

    fn word(database: &Database, kind: HistoryKind, id: u128) -> Option<String> {
        let row: Option<Value> = get(&database.begin_read().expect("a transaction"), kind, id).expect("readable");
        row.map(|row| {
            assert_eq!(row["id"], json!(id.to_string()), "no row is taken for another");
            row["word"].as_str().expect("a word").to_owned()
        })
    }

    fn is_due(database: &Database) -> bool {
        is_packing_due(&database.begin_read().expect("a transaction")).expect("readable")
    }

    #[test]
    fn every_row_is_found_loose_and_packed() {
        let database = database();
        put(&database, 0..3_000, &"long ".repeat(60));
        assert!(is_due(&database));
        while is_due(&database) {
            assert!(write(&database, pack) > 0);
        }
        for id in 0..3_000 {
            assert!(word(&database, HistoryKind::Handoffs, id).is_some(), "{id}");
        }
        assert_eq!(word(&database, HistoryKind::Handoffs, 3_000), None);
        assert_eq!(word(&database, HistoryKind::Agents, 1), None, "kinds don't share ids");
        let ids = ids(&database.begin_read().expect("a transaction"), HistoryKind::Handoffs).expect("readable");
        assert_eq!(ids.len(), 3_000);
    }

    #[test]
    fn a_rewritten_row_hides_its_packed_copy_and_a_removed_row_is_gone() {
        let database = database();
        put(&database, 0..300, "old");
        assert_eq!(write(&database, pack), 300);
        put(&database, 7..8, "new");
        write(&database, |write| HistoryTables::open(write, HistoryKind::Handoffs)?.remove(8));
        assert_eq!(word(&database, HistoryKind::Handoffs, 7).as_deref(), Some("new"));
        assert_eq!(word(&database, HistoryKind::Handoffs, 8), None);
        assert_eq!(word(&database, HistoryKind::Handoffs, 9).as_deref(), Some("old"));
        assert_eq!(write(&database, pack), 1, "it is packed with the next ones");
        assert_eq!(word(&database, HistoryKind::Handoffs, 7).as_deref(), Some("new"));
    }

    #[test]
    fn a_store_of_the_first_schema_is_brought_up_to_date_and_keeps_its_history() {
        use crate::core::id::AgentId;
        use crate::core::rows::agent::Agent;
        use crate::store::{Store, tables};
        let dir = tempfile::tempdir().expect("a temporary folder");
        let agent = Agent::new(AgentId(uuid::Uuid::from_u128(5)), "demo".to_owned(), "then".to_owned());
        let old = Database::create(dir.path().join("tasuki.redb")).expect("a database");
        tables::create(&old, 1).expect("tables");
        write(&old, |write| {
            write.open_table(tables::META)?.insert("schema", 1)?;
            write.open_table(AGENTS_PAST)?.insert(5, serde_json::to_vec(&agent).expect("a row").as_slice())?;
            write.delete_table(PACKS)?;
            write.delete_table(AGENTS_PACKED)?;
            write.delete_table(HANDOFFS_PACKED)?;
            Ok(())
        });
        drop(old);
        let store = Store::open(dir.path()).expect("upgraded");
        assert_eq!(store.past_agent(&agent.agent_id).expect("readable"), Some(agent));
        drop(store);
        Store::open(dir.path()).expect("and opened again");
    }

    #[test]
    fn rows_that_hold_documents_are_packed_a_few_at_a_time() {
        let database = database();
        put(&database, 0..300, &"d".repeat(256 * 1024));
        assert_eq!(write(&database, pack), 16, "4 MiB in one commit");
        assert!(
            word(&database, HistoryKind::Handoffs, 0).is_some()
                && word(&database, HistoryKind::Handoffs, 299).is_some()
        );
    }

    #[test]
    fn a_few_loose_rows_are_not_packed() {
        let database = database();
        put(&database, 0..u128::from(PACK_FROM) - 1, "word");
        assert!(!is_due(&database));
    }

    #[test]
    fn a_pack_that_lies_about_its_size_is_not_believed() {
        assert_eq!(unpack(&[0xff, 0xff, 0xff, 0xff, 1, 2, 3]), None);
        assert_eq!(unpack(b"ab"), None);
        assert_eq!(find(b"too short", 1), None);
    }
}
