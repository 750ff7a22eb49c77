use crate::entry::Entry;

pub fn sum(entries: &[Entry]) -> i64 {
    entries.iter().map(|entry| entry.cents).sum()
}
