//! The state machines of one agent: its registration or start, the texts that are typed to it, its turns, its exit.
//!
//! From the bottom up; a point of this list uses only points before it:
//!
//! - `context_usage`: how full its context is, and what follows. `cli_limits`: what stops its CLI, and what follows.
//!   `unlocated`: agents known only by their own events. `start_dialog`: a dialog in the pane of an agent that is
//!   starting. `alerts`: what the operator is told of an agent outside a handoff.
//! - A text may first wait in `queue`. `typing` has it typed and takes the receipt, `acceptance` looks for a better
//!   proof where a receipt does not prove enough, and `verdict` ends the delivery. `queue` uses `typing`, `typing` uses
//!   `acceptance`, and both `typing` and `acceptance` use `verdict`.
//! - `priming`: the first text of an agent that tasuki has started. `idle`: the end of a turn that no event reports.
//! - `reopen`: the session of an agent that has ended, opened again as an agent to which nothing is typed.
//! - `start`: from a new agent's row to its readiness; answers the request `agent_create`.
//! - `exit`: the exit of any agent: requested, or detected because its process is dead or its pane is gone.
//! - `unwanted`: the end of an agent that was started early as a successor, and is not needed.
//! - `register`: agents that already run; takes the requests `agent_register` and `agent_send`.
//! - `shutdown`: takes the requests `agent_shutdown` and `agent_forget`.
//!
//! None of them calls anything above this module. They may read the step of their agent's handoff. If they learn
//! something that concerns the handoff or a work item, they queue a `Fact` (`core/fact.rs`). An agent's events come in
//! through `core/hooks.rs`, its deadlines through `core/due.rs`. Both also pass queued facts to the higher layers, so
//! they are above this module.

pub(crate) mod acceptance;
pub(crate) mod alerts;
pub(crate) mod cli_limits;
pub mod context_usage;
pub(crate) mod exit;
pub(crate) mod idle;
pub(crate) mod priming;
pub(crate) mod queue;
pub(crate) mod register;
pub(crate) mod reopen;
pub(crate) mod shutdown;
pub(crate) mod start;
pub(crate) mod start_dialog;
pub(crate) mod typing;
pub(crate) mod unlocated;
pub(crate) mod unwanted;
pub(crate) mod verdict;
