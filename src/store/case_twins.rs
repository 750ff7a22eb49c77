//! Finds request ids that differ only in upper and lower case. The ledger's keys are the ids as they were sent. A
//! second table holds the ids that have capital letters, each under the same id in small letters.

use redb::{ReadableTable, Table};

type Cases<'t> = Table<'t, &'static str, &'static str>;

/// The id in small letters, if it has capital letters.
fn small(id: &str) -> Option<String> {
    id.bytes().any(|byte| byte.is_ascii_uppercase()).then(|| id.to_ascii_lowercase())
}

/// Notes an id that is added to the ledger.
pub(super) fn note(cases: &mut Cases<'_>, id: &str) -> Result<(), redb::Error> {
    if let Some(small) = small(id) {
        cases.insert(small.as_str(), id)?;
    }
    Ok(())
}

/// Forgets an id that is removed from the ledger.
pub(super) fn forget(cases: &mut Cases<'_>, id: &str) -> Result<(), redb::Error> {
    let Some(small) = small(id) else { return Ok(()) };
    let is_noted = cases.get(small.as_str())?.is_some_and(|noted| noted.value() == id);
    if is_noted {
        cases.remove(small.as_str())?;
    }
    Ok(())
}

/// Notes all ids of a ledger that is older than the second table.
pub(super) fn note_all(
    ledger: &impl ReadableTable<&'static str, &'static [u8]>,
    cases: &mut Cases<'_>,
) -> Result<(), redb::Error> {
    for entry in ledger.iter()? {
        let (id, _) = entry?;
        note(cases, id.value())?;
    }
    Ok(())
}

/// Whether the ledger has an id that differs from this one by case alone.
pub(super) fn has(
    ledger: &impl ReadableTable<&'static str, &'static [u8]>,
    cases: &impl ReadableTable<&'static str, &'static str>,
    id: &str,
) -> Result<bool, redb::Error> {
    let small = small(id);
    if let Some(small) = &small
        && ledger.get(small.as_str())?.is_some()
    {
        return Ok(true);
    }
    let noted = cases.get(small.as_deref().unwrap_or(id))?;
    Ok(noted.is_some_and(|noted| noted.value() != id))
}
