//! What several modules of the integration tests share.

pub(crate) mod demo_tmux;
pub(crate) mod fake_sidecar;
pub(crate) mod home;
pub(crate) mod tmux;
