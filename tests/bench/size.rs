//! How large the program is.

use crate::Length;
use crate::place::{Place, TASUKI};
use crate::table::Row;

const MIB: f64 = 1024.0 * 1024.0;

pub(crate) fn measure(_place: &Place, _length: Length) -> Vec<Row> {
    let bytes = std::fs::metadata(TASUKI).expect("the program is built").len() as f64;
    vec![Row::alone("size of the program", format!("{:.1} MiB", bytes / MIB), "< 10 MiB", bytes < 10.0 * MIB)]
}
