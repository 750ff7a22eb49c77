//! What tests of the fleet share with others, of what lies in `tests/support`.
#![allow(dead_code, reason = "the parts are made for more tests than these")]

#[path = "../support/processes.rs"]
pub(crate) mod processes;
#[path = "../support/random.rs"]
pub(crate) mod random;
#[path = "../support/said.rs"]
pub(crate) mod said;
#[path = "../support/service_user.rs"]
pub(crate) mod service_user;
#[path = "../support/small_disk.rs"]
pub(crate) mod small_disk;
#[path = "../support/stage.rs"]
pub(crate) mod stage;
#[path = "../support/stage_checks.rs"]
pub(crate) mod stage_checks;
#[path = "../support/stage_files.rs"]
pub(crate) mod stage_files;
#[path = "../support/stage_hostile.rs"]
pub(crate) mod stage_hostile;
#[path = "../support/tally.rs"]
pub(crate) mod tally;
