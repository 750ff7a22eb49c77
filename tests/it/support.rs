//! What tests of the fast part share, of what lies in `tests/support`. What starts a tmux server or a program that runs
//! on is not here, so that no test of this part can reach it.

#[path = "../support/ack_world.rs"]
pub(crate) mod ack_world;
#[path = "../support/decided.rs"]
pub(crate) mod decided;
#[path = "../support/facts.rs"]
pub(crate) mod facts;
#[path = "../support/fake_bridge.rs"]
pub(crate) mod fake_bridge;
#[path = "../support/fake_sidecar.rs"]
pub(crate) mod fake_sidecar;
#[path = "../support/fleet_home.rs"]
pub(crate) mod fleet_home;
#[path = "../support/flow_world.rs"]
pub(crate) mod flow_world;
#[path = "../support/home.rs"]
pub(crate) mod home;
#[path = "../support/nasty.rs"]
pub(crate) mod nasty;
#[path = "../support/package.rs"]
pub(crate) mod package;
#[allow(dead_code, reason = "most of it is for tests that start programs that run on")]
#[path = "../support/processes.rs"]
pub(crate) mod processes;
#[path = "../support/readme.rs"]
pub(crate) mod readme;
#[path = "../support/said.rs"]
pub(crate) mod said;
#[path = "../support/schema.rs"]
pub(crate) mod schema;
#[path = "../support/service_user.rs"]
pub(crate) mod service_user;
#[path = "../support/sources.rs"]
pub(crate) mod sources;
#[path = "../support/steps.rs"]
pub(crate) mod steps;
#[path = "../support/tally.rs"]
pub(crate) mod tally;
