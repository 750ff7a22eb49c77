//! What tests share.

pub(crate) mod demo_tmux;
