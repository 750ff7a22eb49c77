//! The tables, and what one transaction writes into them.

use super::case_twins;
use super::history::{self, HistoryKind, HistoryTables};
use super::rows::{Batch, Checkpoint, Clocks, LedgerRow, RememberedAge, SeenEvent, StoredError, outbox_key};
use crate::core::decision::Decision;
use crate::core::id::RequestId;
use redb::{Database, ReadableTable, TableDefinition, WriteTransaction};
use serde::Serialize;
use std::collections::BTreeSet;
use uuid::Uuid;

/// The version of the tables that this program writes.
pub const SCHEMA: u64 = 5;

type Bytes = &'static [u8];

/// Numbers: `schema`, `home` (a random number that identifies the home, see `Store::home_tag`), `next_effect`,
/// `next_seq`, `journal_synced`, `ledger_synced`.
pub(crate) const META: TableDefinition<'static, &'static str, u64> = TableDefinition::new("meta");
/// Agents of the working set.
pub(crate) const AGENTS: TableDefinition<'static, u128, Bytes> = TableDefinition::new("agents");
/// Handoffs of the working set.
pub(crate) const HANDOFFS: TableDefinition<'static, u128, Bytes> = TableDefinition::new("handoffs");
/// Work items of the working set.
pub(crate) const WORK: TableDefinition<'static, u128, Bytes> = TableDefinition::new("work");
/// Recorded documents of handoffs that are neither done nor cancelled.
pub(crate) const DOCUMENTS: TableDefinition<'static, u128, &'static str> = TableDefinition::new("documents");
/// Effects whose outcome is not yet known.
pub(crate) const OUTBOX: TableDefinition<'static, u64, Bytes> = TableDefinition::new("outbox");
/// The ledger: requests that were decided, also those that were refused, and their answers.
pub(crate) const LEDGER: TableDefinition<'static, &'static str, Bytes> = TableDefinition::new("ledger");
/// Request ids, in the order in which they were decided or answered.
pub(crate) const LEDGER_ORDER: TableDefinition<'static, u64, &'static str> = TableDefinition::new("ledger_order");
/// The ids in the ledger that have capital letters, by the same id in small letters.
pub(crate) const LEDGER_CASES: TableDefinition<'static, &'static str, &'static str> =
    TableDefinition::new("ledger_cases");
/// Requests that were accepted and are not answered yet.
pub(crate) const OPEN_REQUESTS: TableDefinition<'static, &'static str, Bytes> = TableDefinition::new("open_requests");
/// Event files that were decided.
pub(crate) const SEEN: TableDefinition<'static, &'static str, Bytes> = TableDefinition::new("seen_events");
/// Names of event files, in the order in which they were decided.
pub(crate) const SEEN_ORDER: TableDefinition<'static, u64, &'static str> = TableDefinition::new("seen_order");
/// Failures that were not dismissed.
pub(crate) const ERRORS: TableDefinition<'static, u128, Bytes> = TableDefinition::new("errors");
/// Journal lines that are not known to be on the disk.
pub(crate) const JOURNAL: TableDefinition<'static, u64, Bytes> = TableDefinition::new("journal");
/// Views that are not known to be on the disk: `agents/<id>`, `handoffs/<id>`, `work/<id>`.
pub(crate) const DIRTY: TableDefinition<'static, &'static str, ()> = TableDefinition::new("dirty_views");

pub(crate) fn json<T: Serialize>(value: &T) -> Vec<u8> {
    serde_json::to_vec(value).expect("rows have string keys and no non-finite numbers")
}

/// Makes every table, so that no table is missing when it is read, and the numbers that every state file has.
/// `home_number`: the random number that identifies the home.
pub(crate) fn create(database: &Database, home_number: u64) -> Result<(), redb::Error> {
    let mut write = database.begin_write()?;
    write.set_quick_repair(true);
    open_all(&write)?;
    {
        let mut meta = write.open_table(META)?;
        meta.insert("schema", SCHEMA)?;
        meta.insert("home", home_number)?;
        meta.insert("next_seq", 1)?;
        meta.insert("next_effect", 1)?;
    }
    write.commit()?;
    Ok(())
}

/// Opens every table, which makes those that are missing.
pub(crate) fn open_all(write: &WriteTransaction) -> Result<(), redb::Error> {
    history::create(write)?;
    write.open_table(AGENTS)?;
    write.open_table(HANDOFFS)?;
    write.open_table(WORK)?;
    write.open_table(DOCUMENTS)?;
    write.open_table(OUTBOX)?;
    write.open_table(LEDGER)?;
    write.open_table(LEDGER_ORDER)?;
    write.open_table(LEDGER_CASES)?;
    write.open_table(OPEN_REQUESTS)?;
    write.open_table(SEEN)?;
    write.open_table(SEEN_ORDER)?;
    write.open_table(ERRORS)?;
    write.open_table(JOURNAL)?;
    write.open_table(DIRTY)?;
    Ok(())
}

/// Writes one batch. Returns the next numbers of the ledger and of the seen events.
pub(crate) fn put_batch(
    write: &WriteTransaction,
    batch: &Batch<'_>,
    next_ledger: u64,
    next_seen: u64,
) -> Result<(u64, u64), redb::Error> {
    let decision = batch.decision;
    put_agents(write, decision)?;
    put_handoffs(write, decision)?;
    put_items(write, decision)?;
    put_outbox(write, decision)?;
    put_errors(write, decision)?;
    if !decision.journal.is_empty() {
        let mut journal = write.open_table(JOURNAL)?;
        for (seq, line) in &decision.journal {
            journal.insert(seq, json(line).as_slice())?;
        }
    }
    if decision.next_effect > 0 {
        put_number(write, "next_effect", decision.next_effect)?;
        put_number(write, "next_seq", decision.next_seq)?;
    }
    let next_ledger = put_requests(write, batch, next_ledger)?;
    let next_seen = put_seen(write, batch.seen, next_seen)?;
    Ok((next_ledger, next_seen))
}

/// Writes a number only if it has changed, because a changed page must be written to the disk.
fn put_number(write: &WriteTransaction, name: &str, number: u64) -> Result<(), redb::Error> {
    let mut meta = write.open_table(META)?;
    let is_so = meta.get(name)?.is_some_and(|found| found.value() == number);
    if !is_so {
        meta.insert(name, number)?;
    }
    Ok(())
}

fn put_agents(write: &WriteTransaction, decision: &Decision) -> Result<(), redb::Error> {
    let rows = decision.agents.iter().map(|(id, agent)| (id.0, agent, agent.is_past()));
    put_rows(write, AGENTS, HistoryKind::Agents, "agents", rows)
}

fn put_handoffs(write: &WriteTransaction, decision: &Decision) -> Result<(), redb::Error> {
    let rows = decision.handoffs.iter().map(|(id, handoff)| (id.0, handoff, handoff.is_past()));
    put_rows(write, HANDOFFS, HistoryKind::Handoffs, "handoffs", rows)?;
    if !decision.documents.is_empty() {
        let mut documents = write.open_table(DOCUMENTS)?;
        for (id, text) in &decision.documents {
            match text {
                Some(text) => documents.insert(id.0.as_u128(), text.as_str())?,
                None => documents.remove(id.0.as_u128())?,
            };
        }
    }
    Ok(())
}

fn put_items(write: &WriteTransaction, decision: &Decision) -> Result<(), redb::Error> {
    let rows = decision.items.iter().map(|(id, item)| (id.0, item, item.is_past()));
    put_rows(write, WORK, HistoryKind::Work, "work", rows)
}

/// Writes each row into the working set's table or into the history, and notes that its view, a file in
/// `view/<view_folder>/`, is out of date.
fn put_rows<'r, R: Serialize + 'r>(
    write: &WriteTransaction,
    live: TableDefinition<'static, u128, Bytes>,
    kind: HistoryKind,
    view_folder: &str,
    rows: impl ExactSizeIterator<Item = (Uuid, &'r R, bool)>,
) -> Result<(), redb::Error> {
    if rows.len() == 0 {
        return Ok(());
    }
    let (mut live, mut past) = (write.open_table(live)?, HistoryTables::open(write, kind)?);
    let mut dirty = write.open_table(DIRTY)?;
    for (id, row, is_past) in rows {
        let key = id.as_u128();
        if is_past {
            past.put(key, &json(row))?;
            live.remove(key)?;
        } else {
            live.insert(key, json(row).as_slice())?;
            past.remove(key)?;
        }
        dirty.insert(format!("{view_folder}/{id}").as_str(), ())?;
    }
    Ok(())
}

fn put_outbox(write: &WriteTransaction, decision: &Decision) -> Result<(), redb::Error> {
    if !decision.effects.is_empty() || !decision.dropped.is_empty() {
        let mut outbox = write.open_table(OUTBOX)?;
        for (key, pending) in &decision.effects {
            outbox.insert(outbox_key(*key), json(pending).as_slice())?;
        }
        for key in &decision.dropped {
            outbox.remove(outbox_key(*key))?;
        }
    }
    Ok(())
}

pub(crate) fn put_errors(write: &WriteTransaction, decision: &Decision) -> Result<(), redb::Error> {
    if decision.errors.is_empty() && decision.dismissed.is_empty() {
        return Ok(());
    }
    let mut errors = write.open_table(ERRORS)?;
    for row in &decision.errors {
        let stored = StoredError { row: row.clone(), written: false };
        errors.insert(row.error_id.0.as_u128(), json(&stored).as_slice())?;
    }
    for id in &decision.dismissed {
        errors.remove(id.0.as_u128())?;
    }
    Ok(())
}

fn put_requests(write: &WriteTransaction, batch: &Batch<'_>, mut next: u64) -> Result<u64, redb::Error> {
    let decision = batch.decision;
    if decision.opened.is_empty() && decision.answers.is_empty() {
        return Ok(next);
    }
    let mut ledger = write.open_table(LEDGER)?;
    let mut order = write.open_table(LEDGER_ORDER)?;
    let mut open = write.open_table(OPEN_REQUESTS)?;
    let mut cases = write.open_table(LEDGER_CASES)?;
    let answered: BTreeSet<&RequestId> = decision.answers.iter().map(|answer| &answer.request_id).collect();
    for (id, request) in decision.opened.iter().filter(|(id, _)| !answered.contains(id)) {
        let row = LedgerRow {
            kind: Some(request.kind.clone()),
            sha256: request.sha256.clone(),
            at_ms: batch.now.wall_ms,
            boot: Some((batch.now.boot, batch.now.boot_ms)),
            seen_ahead: None,
            result: None,
        };
        ledger.insert(id.as_str(), json(&row).as_slice())?;
        case_twins::note(&mut cases, id.as_str())?;
        open.insert(id.as_str(), json(request).as_slice())?;
        order.insert(next, id.as_str())?;
        next += 1;
    }
    for answer in &decision.answers {
        let row = LedgerRow {
            kind: answer.kind.clone(),
            sha256: answer.request_sha256.clone(),
            at_ms: batch.now.wall_ms,
            boot: Some((batch.now.boot, batch.now.boot_ms)),
            seen_ahead: None,
            result: Some(answer.to_json(&batch.now)),
        };
        ledger.insert(answer.request_id.as_str(), json(&row).as_slice())?;
        case_twins::note(&mut cases, answer.request_id.as_str())?;
        open.remove(answer.request_id.as_str())?;
        order.insert(next, answer.request_id.as_str())?;
        next += 1;
    }
    Ok(next)
}

fn put_seen(write: &WriteTransaction, events: &[SeenEvent], mut next: u64) -> Result<u64, redb::Error> {
    if events.is_empty() {
        return Ok(next);
    }
    let (mut seen, mut order) = (write.open_table(SEEN)?, write.open_table(SEEN_ORDER)?);
    for event in events {
        seen.insert(event.name.as_str(), json(event).as_slice())?;
        order.insert(next, event.name.as_str())?;
        next += 1;
    }
    Ok(next)
}

/// Notes that files are on the disk. Journal lines and dirty views are removed; answers and errors stay.
pub(crate) fn put_checkpoint(write: &WriteTransaction, checkpoint: &Checkpoint) -> Result<(), redb::Error> {
    let mut meta = write.open_table(META)?;
    if checkpoint.journal_below > 0 {
        let mut journal = write.open_table(JOURNAL)?;
        journal.retain_in(..checkpoint.journal_below, |_, _| false)?;
        meta.insert("journal_synced", checkpoint.journal_below)?;
    }
    if checkpoint.ledger_below > 0 {
        meta.insert("ledger_synced", checkpoint.ledger_below)?;
    }
    if !checkpoint.views.is_empty() {
        let mut dirty = write.open_table(DIRTY)?;
        for view in &checkpoint.views {
            dirty.remove(view.as_str())?;
        }
    }
    if !checkpoint.errors.is_empty() {
        let mut errors = write.open_table(ERRORS)?;
        for id in &checkpoint.errors {
            let key = id.0.as_u128();
            let stored: Option<StoredError> =
                errors.get(key)?.and_then(|value| serde_json::from_slice(value.value()).ok());
            if let Some(mut stored) = stored {
                stored.written = true;
                errors.insert(key, json(&stored).as_slice())?;
            }
        }
    }
    Ok(())
}

/// Whether [`purge`] would change anything. `LEDGER_ORDER` begins with the oldest row of the ledger, so only that row
/// is read.
pub(crate) fn has_purgeable(
    read: &redb::ReadTransaction,
    clocks: &Clocks,
    seen_below: u64,
) -> Result<bool, redb::Error> {
    let seen = read.open_table(SEEN_ORDER)?;
    if seen.first()?.is_some_and(|(key, _)| key.value() < seen_below) {
        return Ok(true);
    }
    let (order, ledger) = (read.open_table(LEDGER_ORDER)?, read.open_table(LEDGER)?);
    let Some((_, id)) = order.first()? else { return Ok(false) };
    let row: Option<LedgerRow> = ledger.get(id.value())?.and_then(|value| serde_json::from_slice(value.value()).ok());
    Ok(row.is_none_or(|row| row.age(clocks) != RememberedAge::Young))
}

/// Removes at most `most` requests that are old enough, and at most `most` seen events whose number is below
/// `seen_below`. Returns how many requests and events it has handled.
pub(crate) fn purge(
    write: &WriteTransaction,
    clocks: &Clocks,
    seen_below: u64,
    most: usize,
) -> Result<usize, redb::Error> {
    let purged = purge_ledger(write, clocks, most)?;
    let (mut seen, mut order) = (write.open_table(SEEN)?, write.open_table(SEEN_ORDER)?);
    let old: Vec<(u64, String)> = order
        .range(..seen_below)?
        .take(most)
        .map(|entry| entry.map(|(key, name)| (key.value(), name.value().to_owned())))
        .collect::<Result<_, _>>()?;
    for (key, name) in &old {
        order.remove(key)?;
        seen.remove(name.as_str())?;
    }
    Ok(purged + old.len())
}

fn purge_ledger(write: &WriteTransaction, clocks: &Clocks, most: usize) -> Result<usize, redb::Error> {
    let (mut ledger, mut order) = (write.open_table(LEDGER)?, write.open_table(LEDGER_ORDER)?);
    let (mut old, mut ahead) = (Vec::new(), Vec::new());
    for entry in order.iter()?.take(most) {
        let (key, id) = entry?;
        let row: Option<LedgerRow> =
            ledger.get(id.value())?.and_then(|value| serde_json::from_slice(value.value()).ok());
        match row.map(|row| (row.age(clocks), row)) {
            Some((RememberedAge::Young, _)) => break,
            Some((RememberedAge::Ahead, row)) => {
                ahead.push((id.value().to_owned(), LedgerRow { seen_ahead: Some(clocks.now), ..row }));
            }
            Some((RememberedAge::Old, row)) if row.result.is_some() => {
                old.push((key.value(), Some(id.value().to_owned())))
            }
            // The request is still open, or its row can't be understood. The row stays, because without it the request
            // could be carried out a second time. Only its number is removed; an answer gets a new number.
            _ => old.push((key.value(), None)),
        }
    }
    for (id, row) in &ahead {
        ledger.insert(id.as_str(), json(row).as_slice())?;
    }
    let mut cases = write.open_table(LEDGER_CASES)?;
    for (key, id) in &old {
        order.remove(key)?;
        if let Some(id) = id {
            ledger.remove(id.as_str())?;
            case_twins::forget(&mut cases, id)?;
        }
    }
    Ok(old.len() + ahead.len())
}
