use crate::entry::Entry;

pub fn sum(entries: &[Entry], currency: &str) -> i64 {
    let fits = |entry: &&Entry| entry.currency == currency;
    entries.iter().filter(fits).map(|entry| entry.cents).sum()
}
