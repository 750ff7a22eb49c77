//! tasuki hands a coding agent's work to its successor, in tmux, and proves that every step happened.
//!
//! # The contract
//!
//! **One event → one decision → one commit → then effects.**
//!
//! ```text
//! spool file ──► Event::Request, Event::Hook ─────────────────┐
//! tmux notice, dead process, growing document, deadline ──────┤
//! runner ──► Event::Settled { key, outcome } ─────────────────┴─► core::decide(&State, Event, &Turn) ─► Decision
//!    Decision: rows, effects, effects dropped, answers, error files, journal lines
//!      ─► the state in memory ─► ONE redb transaction ─► views, journal, results ─► the spool file goes ─► effects start
//!    runner: look for the effect's own mark in its target ─► act if it is not there ─► Event::Settled ─► …
//! ```
//!
//! Events that arrive together are decided one after the other, each on the state that the one before it left, and go
//! into one transaction. If the transaction fails, nobody outside has seen any of it: the state in memory is discarded,
//! loaded again from the store, and the events are decided again.
//!
//! An effect that must not happen twice puts its mark into its target in the same step in which it happens: tmux itself
//! compares a pane's mark before it takes a text, a window carries the id of its agent, a comment carries the handoff's
//! mark. Recovery after a crash takes the same path: effects in the outbox run again, and each looks for its mark
//! first. Where the look can't tell, the handoff stops and asks a person.
//!
//! # The flow of a handoff
//!
//! `waiting → instructing → writing → recording → ending → starting → priming → briefing → reading → [acknowledging] →
//! done`, or `failed`, or `cancelled`. Only [`core::handoff`] knows these steps. Each is a file in
//! `core/handoff/steps`, which says what follows from each event; only `core/handoff/driver.rs` moves a handoff from
//! step to step. The acknowledgement of an urgent handoff is [`core::handoff::ack`]. The simulation writes a table of
//! all transitions and their causes: `tests/it/sim/transitions.txt`.
//!
//! # The core's layers
//!
//! Rows are below everything that changes them. Above them are the machines of one agent ([`core::agent`]: its start,
//! what is typed to it, its turns, its exit), then work items, then handoffs. Nobody calls upward. When a machine
//! learns something that concerns a higher layer, it queues a `core::fact::Fact` in the decision that is being written,
//! and `core/follow.rs` hands the fact over in the same commit. `tests/it/circles.rs` checks both.
//!
//! # Work items
//!
//! Typed pieces of work go from role to role: `ready → claimed → done`, or `escalated` to a person. A completion is
//! checked by the rules of its type, and makes its children in the same commit; it can be undone. All of it is in
//! [`core::work`].
//!
//! # What tasuki never does
//!
//! - It never acts before the decision to act is durable, and never decides with a clock, a file or chance in its hand.
//! - It never types a text twice: not after a crash, not on a retry, not because a screen could not be read.
//! - It never publishes a document twice: what may have been stored without an answer is looked for by its mark first.
//! - It never presses Enter before it has seen its text in the composer, never sends Escape, never answers a dialog,
//!   never touches a draft, and types nothing at all into an agent that has no persona.
//! - It never ends an agent before its document is recorded, and never briefs a successor before it is primed.
//! - It never ends a process that it did not start, and never changes a user's focus, window sizes or paste buffers.
//! - It never overwrites a state file that it could not read, never deletes a document, and never follows a link that
//!   somebody has put into its folders.
//! - It never speaks to a tmux server, and never runs or types what lies in its home, that another user could have put
//!   there.
//! - It never retries behind the operator's back, and never fails without a file, a journal line and a notice.
//! - It never logs the text of a prompt or a document, and never gives a text from outside to a shell.
//!
//! # Where to read
//!
//! A module uses only modules that come before it here, and adapters do not use each other. `tests/it/house.rs` checks
//! this.
//!
//! 1. [`contract`]: the types of what others read, one for each file (requests, which others write, are with their
//!    checks in [`core::request`]). [`core`]: the pure part. Begin with [`core::decide`], then read [`core::agent`],
//!    [`core::work`] and [`core::handoff`], [`core::state`], and [`core::rows`], which is what the store keeps.
//! 2. The adapters, each for one thing outside: [`spool`] (files in and out), [`store`] (the one truth), [`tmux`]
//!    (panes), [`agents`] (profiles, screens, hooks and transcripts of agent CLIs), [`personas`], [`config`],
//!    [`notify`], [`publish`], [`process`], [`clock`], [`service`] (systemd and launchd); and [`files`], [`child`] and
//!    [`limits`] (of the machine: descriptors, threads, memory), which several of them use.
//! 3. [`runner`] carries out effects, one lane for each pane.
//! 4. [`sidecar`] is the loop: the only caller of `decide` and of `commit`.
//! 5. [`cli`] is one file or folder for each command: clients of the spool and the views.
//! 6. [`demo`] is an agent to try all this with: a terminal program with a composer, hooks and faults.
//!
//! Beside `src`: `data/` holds what is built in (`config.toml`, profiles of agent CLIs, prompts, rules, the page of
//! `tasuki serve`), and `packaging/schemas` what is generated from the types. The tests in `tests/e2e` wait for real
//! programs. Those in `tests/it` and beside the code need none; `cargo nextest run --lib --test it` runs these alone.
//!
//! # To add one
//!
//! - **A step of the flow**: its wire name in [`contract::Step`], with what it waits for; its file in
//!   `core/handoff/steps`, which says what it begins with, what follows, its limit and what a retry does; its line in
//!   the table there; and in the step before it, that it follows. A limit that users can set is in [`core::settings`]
//!   and `config/values.rs`. An effect that it waits for is one of [`core::effect`], with its waiter in the outbox, and
//!   [`runner`] carries it out; it may run again after a crash.
//! - **A limit of an agent**: the list in `core/rows/agent/timers.rs`, from which everything else about time follows;
//!   what happens when it has passed, in `core/due.rs`.
//! - **A kind of request**: its body, with its checks and what must be loaded for it, in `core/request`; its line in
//!   the table `core/request/kinds.rs`; what answers it, and the route to that in `core/mod.rs`. Schema, OpenAPI and
//!   intake follow.
//! - **A journal line**: its wire name and fields in `contract/journal.rs`, and the place that writes it.
//! - **A field of an agent's view**: the row in [`core::rows`], the type in [`contract`], `core/view.rs`. Rust code
//!   reads it by type; `data/page/page.js` reads it by its name, which a test compares with the schema.
//! - **A reason for which nothing is typed**: `core/pane.rs`, with its hint; whether it may pass, in
//!   `core/handoff/ack/messages.rs`; the place that looks, in [`tmux`].
//! - **An agent CLI**: a file in `data/profiles`, named in `agents/profile.rs`, its screens in `tests/screens`, its
//!   modes in `tests/it/agents_modes.rs`.
//!
//! Generated files are written again with `TASUKI_WRITE_SCHEMAS=1` (`test(/^examples/)`), `TASUKI_WRITE_TRACE=1`
//! (`test(/^sim/)`: what two thousand lives do, and all transitions of handoffs) and `TASUKI_WRITE_SCREENS=1`
//! (`test(/^top_screens/)`); read their diff. `tests/it/promises.rs` names the test for each sentence of what tasuki
//! never does.

pub mod contract;

pub mod core;

pub mod agents;
pub mod child;
pub mod clock;
pub mod config;
pub mod files;
pub mod limits;
pub mod notify;
pub mod personas;
pub mod process;
pub mod publish;
pub mod service;
pub mod spool;
pub mod store;
pub mod tmux;

pub mod runner;

pub mod sidecar;

pub mod cli;
pub mod demo;
pub mod exit;
