//! The bare program: the floor under every intake of this kind. It waits by inotify, lists the folder, reads up to 256
//! files, commits them as rows in one redb transaction, renames a result file for each and renames the files away.
//! It checks nothing, decides nothing and forgets nothing.

use crate::drops::Arrivals;
use redb::{Database, Durability, TableDefinition};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// The word on the command line that makes this program the bare one.
pub(crate) const WORD: &str = "bare-program";

const ROWS: TableDefinition<'static, &'static str, &'static [u8]> = TableDefinition::new("rows");
const BATCH: usize = 256;

/// Works until it is killed.
pub(crate) fn main(home: &Path) {
    let mut builder = Database::builder();
    let database = builder.set_cache_size(16 * 1024 * 1024).create(home.join("state/bare.redb")).expect("a database");
    let arrivals = Arrivals::into_folder(&home.join("spool/requests"));
    commit(&database, &[]);
    fs::write(home.join("ready"), "").expect("written");
    loop {
        while take(&database, home) {}
        arrivals.some(Duration::from_secs(5));
    }
}

/// One listing, in batches; whether there was anything.
fn take(database: &Database, home: &Path) -> bool {
    let entries = fs::read_dir(home.join("spool/requests")).expect("a folder");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    for names in names.chunks(BATCH) {
        let rows: Vec<(&str, Vec<u8>)> = names.iter().map(|name| (name.as_str(), row(home, name))).collect();
        commit(database, &rows);
        for (name, row) in &rows {
            let temp = home.join("spool/results/.new");
            fs::write(&temp, row).expect("written");
            fs::rename(temp, home.join("spool/results").join(name)).expect("renamed");
        }
        for name in names {
            let (from, to) = (home.join("spool/requests").join(name), home.join("state/reap").join(name));
            fs::rename(from, to).expect("renamed");
        }
    }
    !names.is_empty()
}

/// A row as large as the ledger's own for the same request.
fn row(home: &Path, name: &str) -> Vec<u8> {
    let mut row = fs::read(home.join("spool/requests").join(name)).expect("read");
    row.resize(360, b' ');
    row
}

fn commit(database: &Database, rows: &[(&str, Vec<u8>)]) {
    let mut write = database.begin_write().expect("a transaction");
    write.set_durability(Durability::Immediate).expect("durable");
    write.set_quick_repair(true);
    {
        let mut table = write.open_table(ROWS).expect("a table");
        for (name, row) in rows {
            table.insert(*name, row.as_slice()).expect("inserted");
        }
    }
    write.commit().expect("committed");
}
