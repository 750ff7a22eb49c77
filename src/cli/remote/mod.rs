//! Agents and handoffs of other hosts, which are named as in `kai@b`: the agent `kai` on the host `b`.
//!
//! 1. [`names`]: finds what was named in what host b has told of itself.
//! 2. [`request`]: leaves a request for the bridge, and waits for the answer of host b.
//! 3. [`views`]: asks host b for whole views.
//! 4. [`follow`]: follows a handoff on host b, with `looks`, which ask for its view meanwhile.
//! 5. [`own`]: this host's agents, handoffs and errors in the same form as those of the others.
//! 6. [`list`]: lists of all hosts.

pub mod follow;
pub mod list;
mod looks;
pub mod names;
pub mod own;
pub mod request;
pub mod views;
