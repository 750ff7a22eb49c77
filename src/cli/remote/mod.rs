//! Agents and handoffs of other hosts, which are named as in `kai@b`: the agent `kai` on the host `b`. Each host of a
//! fleet publishes a roster, a list of its agents, handoffs and errors. The bridge writes the last roster of each host
//! to a file.
//!
//! 1. [`names`]: finds what a person has named, in the last roster of host b.
//! 2. [`request`]: leaves a request for the bridge, and waits for the answer of host b.
//! 3. [`views`]: asks host b for whole views.
//! 4. [`follow`]: follows a handoff on host b; meanwhile `looks` asks for its view.
//! 5. [`own`]: this host's agents, handoffs and errors in the form of a roster.
//! 6. [`list`]: lists agents, handoffs and errors of all hosts.

pub mod follow;
pub mod list;
mod looks;
pub mod names;
pub mod own;
pub mod request;
pub mod views;
