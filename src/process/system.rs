//! Re-exports the functions for this system, from `linux`, `mac` or `ps`; all three have the same functions.

#[cfg(all(target_os = "linux", not(tasuki_portable)))]
pub(super) use super::linux::{
    KNOWS_STARTS, READS_ENVIRONMENTS, arguments, children, environment, environment_all, look, processes, started_ms,
};
#[cfg(all(target_os = "macos", not(tasuki_portable)))]
pub(super) use super::mac::{
    KNOWS_STARTS, READS_ENVIRONMENTS, arguments, environment, environment_all, look, processes, started_ms,
};
#[cfg(any(tasuki_portable, not(any(target_os = "linux", target_os = "macos"))))]
pub(super) use super::ps::{
    KNOWS_STARTS, READS_ENVIRONMENTS, arguments, environment, environment_all, look, processes, started_ms,
};

/// The children of a process. None, because this system keeps no list of them.
#[cfg(not(all(target_os = "linux", not(tasuki_portable))))]
pub(super) fn children(_pid: u32) -> Option<Vec<u32>> {
    None
}
