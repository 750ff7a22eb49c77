//! What the tests share.

pub(crate) mod ack_world;
pub(crate) mod decided;
pub(crate) mod demo_tmux;
pub(crate) mod facts;
pub(crate) mod fake_sidecar;
pub(crate) mod github;
pub(crate) mod home;
pub(crate) mod intake;
pub(crate) mod nasty;
pub(crate) mod random;
pub(crate) mod schema;
pub(crate) mod server;
pub(crate) mod small_disk;
pub(crate) mod stage;
pub(crate) mod stage_checks;
pub(crate) mod stage_files;
pub(crate) mod stage_hostile;
pub(crate) mod stage_work;
pub(crate) mod strace;
pub(crate) mod tally;
pub(crate) mod terminal;
pub(crate) mod tmux;
pub(crate) mod typed;
