//! The one integration binary: real tmux servers, real files, the real program.

mod support;
mod tmux_crash;
mod tmux_create;
mod tmux_server;
mod tmux_type;
