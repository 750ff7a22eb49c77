//! Processes of this machine: who they are, whether they live, and the moment at which they end.

mod exits;
mod look;

pub use exits::ExitWatch;
pub use look::{
    Life, ancestors, arguments, argv, environ_var, environment, exists, find, front, identify, is_alive, is_program,
    is_stopped, life, start_ticks,
};
