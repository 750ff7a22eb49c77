//! Processes of this machine: which they are, whether they run, and when they exit.
//!
//! What the system says of them comes from `linux` (`/proc`), `mac` (system calls) or `ps` (the program of that name,
//! on other systems). The flag `--cfg tasuki_portable` builds `ps` on every system, so that it is tested.

mod exits;
#[cfg(all(target_os = "linux", not(tasuki_portable)))]
mod linux;
mod look;
#[cfg(all(target_os = "macos", not(tasuki_portable)))]
mod mac;
#[cfg(any(tasuki_portable, not(any(target_os = "linux", target_os = "macos"))))]
mod ps;
#[cfg(all(target_os = "macos", not(tasuki_portable)))]
mod queue;
mod running;
mod stat;
mod system;
#[cfg(any(all(target_os = "macos", not(tasuki_portable)), test))]
mod waiters;

pub use exits::{ExitWatch, wait_for_end};
pub use look::{
    ProcessState, READS_ENVIRONMENTS, all, ancestors, arguments, argv, environ_var, environment, environment_all,
    exists, find, front, identify, is_alive, is_child, is_program, is_stopped, life, start_ticks, started_ms,
};
pub use running::below;
