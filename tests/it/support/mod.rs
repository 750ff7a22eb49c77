//! What tests share.

pub(crate) mod tmux;
