//! Processes of this machine: which they are, whether they run, and when they exit.

mod exits;
mod look;
mod running;

pub use exits::{ExitWatch, wait_for_end};
pub use look::{
    ProcessState, ancestors, arguments, argv, environ_var, environment, environment_all, exists, find, front, identify,
    is_alive, is_program, is_stopped, life, start_ticks,
};
pub use running::below;
