//! tasuki hands a coding agent's work to its successor, in tmux, and proves that every step happened. The glossary in
//! `.github/CONTRIBUTING.md` explains the words that tasuki uses in a sense of its own: persona, priming, mark, outbox
//! and others.
//!
//! # How it works
//!
//! **One event → one decision → one commit → then effects.**
//!
//! ```text
//! spool file ──► Event::Request, Event::Hook ─────────────────┐
//! report of tmux, dead process, growing document, deadline ───┤
//! runner ──► Event::Settled { key, outcome } ─────────────────┴─► core::decide(&State, Event, &Cycle) ─► Decision
//!    Decision: rows, effects to start and to cancel, answers, error files, journal lines
//!      ─► the state in memory ─► ONE redb transaction ─► views, journal, answers ─► remove spool file ─► start effects
//!    runner: look for the effect's own mark in its target ─► act if it is not there ─► Event::Settled ─► …
//! ```
//!
//! Each event has one decision, and each decision is in one commit. A commit may hold several decisions: tasuki decides
//! events that arrive together one after the other, each on the state that the one before it left, and their decisions
//! share one transaction. If the transaction fails, nobody outside has seen any of it: tasuki discards the state in
//! memory, loads it again from the store, and decides the events again.
//!
//! An effect that must not happen twice writes a mark, which identifies it, into its target in the same operation. One
//! tmux command line checks the pane's mark, writes the new one, and pastes the text. The command that makes an agent's
//! window also writes the agent's id into an option of it. A published document begins with a mark. Recovery after a
//! crash takes the same path as normal work. The outbox holds the effects whose outcome is not known: tasuki runs each
//! of them again. An effect with a mark looks for the mark first. If that look gives no answer, the outcome is reported
//! as unknown: a step of a handoff fails with a code that says so, and a person decides.
//!
//! # The flow of a handoff
//!
//! `waiting → instructing → writing → [checking] → recording → ending → starting → priming → briefing → reading →
//! [acknowledging] → done`, or `failed`, or `cancelled`. A handoff has `acknowledging` only if it is urgent. It has
//! `checking` if an agent writes its document and the document is to be checked or reviewed, or if a person must accept
//! the document. If tasuki or a person
//! writes the document, `waiting` is followed by `recording`, which also reads the document. If a person must accept
//! such a document, `recording` comes twice. The first time, tasuki writes the document's file and reads it. Then
//! `checking` waits for the person. The second time, tasuki records the document.
//!
//! The checks are in [`core::check`]; the facts that tasuki collects of an agent's work are in [`contract::facts`].
//! Only [`core::handoff`] knows what follows each step. Each step has a file in `core/handoff/steps`, and the three
//! ends share one. Only `core/handoff/driver.rs` moves a handoff from step to step. The acknowledgement of an urgent
//! handoff is in [`core::handoff::ack`]. `tests/it/sim/transitions.txt`, which the simulation writes, lists all
//! transitions and their causes.
//!
//! # The core's layers
//!
//! The rows are the lowest layer: what the store keeps of an agent, a handoff or a work item. Above them are the state
//! machines of one agent ([`core::agent`]: its start, what is typed to it, its turns, its exit), then work items, then
//! handoffs. No layer calls a higher one. When a state machine learns something that concerns a higher
//! layer, it queues a `core::fact::Fact`, and `core/follow.rs` passes the fact up within the same decision.
//! `tests/it/circles.rs` checks that nothing calls upward.
//!
//! # Work items
//!
//! A work item is a piece of work with a type, for agents whose persona has a role that the type asks for. Its states
//! are `ready → claimed → done`, or `escalated` to a person, or `withdrawn`, because the completed item that had
//! created it was rolled back. tasuki checks a completed item by the rules of its type, and creates the follow-up items
//! in the same commit. The code is in [`core::work`].
//!
//! # What tasuki never does
//!
//! - It never acts before the decision to act is durable, and never reads a clock, a file or a random number
//!   while it decides.
//! - It never types a text twice: not after a crash, not on a retry, not because a screen could not be read.
//! - It never publishes a document twice: if an upload may have been stored without an answer, tasuki looks for its
//!   mark first. If that look gives no answer, tasuki uploads again only if the operator says that nothing was stored.
//! - It never presses Enter before it has seen its text in the composer, never sends Escape, never answers a dialog,
//!   never touches a draft, and types nothing at all into an agent that has no persona.
//! - It never ends the agent of a handoff before its document is recorded, and never briefs a successor before it is
//!   primed.
//! - It never kills a process that it did not start, and never changes a user's focus, window sizes or paste buffers.
//! - It never overwrites a state file that it could not read, never deletes a document, and never follows a link that
//!   somebody has put into its folders.
//! - It never talks to a tmux server that another user could have started, and never runs a file of its home, or types
//!   the text of one, if another user could have written the file.
//! - It never retries a failed step of a handoff by itself (uploads are retried), and never fails a handoff without an
//!   error file, a journal line and a notice.
//! - It never logs the text of a prompt or a document, and never gives a text from outside to a shell.
//!
//! # Where to read
//!
//! A module uses only modules of earlier groups, and adapters do not use each other. `tests/it/house.rs` checks this.
//!
//! 1. [`contract`]: the files that tasuki writes for others, one type each.
//! 2. [`core`]: the pure part. Begin with [`core::decide`], then read [`core::agent`], [`core::work`] and
//!    [`core::handoff`], [`core::state`], and [`core::rows`], which is what the store keeps. Requests, which others
//!    write, are in [`core::request`] with their checks. [`core::needs`] lists what waits for a person. Beside `core`:
//!    [`files`], [`child`], [`exit`], [`limits`], [`darwin`] (system calls that only macOS has) and [`secrets`] (finds
//!    credentials in a text), which use only `contract`. `limits` knows when the machine has no file descriptors,
//!    threads or memory left.
//! 3. The adapters, each for one thing outside: [`spool`] (files in and out), [`store`] (the state file), [`tmux`]
//!    (panes), [`agents`] (profiles, screens, hooks and transcripts of agent CLIs), [`personas`], [`config`],
//!    [`notify`], [`publish`], `fleet` (keys, letters, rosters and rights of several hosts, and the server that carries
//!    them; only with the feature of this name), [`git`] (asks git for facts of a repository, whose content is not
//!    trusted, and looks up there what a document claims), [`process`], [`clock`], [`service`] (systemd and launchd).
//!    Also [`demo`]: an agent for demonstrations and tests, which is a terminal program with a composer, hooks and
//!    faults.
//! 4. [`runner`] carries out effects. An agent's start and the texts that are typed to it run one after the other.
//! 5. [`sidecar`], the process `tasuki run`, is the loop: the only caller of `decide` and of `Store::commit`.
//! 6. [`cli`] has one file or folder for each command. Commands write requests to the spool and read the views.
//! 7. `bridge`, only with the feature `fleet`: the program `tasuki-fleet`, which carries requests between hosts. It is
//!    a client of the spool, as commands are.
//!
//! Beside `src`: `data/` is built into the program (`config.toml`, `secrets.toml`, profiles of agent CLIs, prompts,
//! personas, rules, the guide, the page of `tasuki serve`). The schemas in `packaging/schemas` are generated from the
//! types in `contract` and from the request bodies. The tests in `tests/e2e` need tmux and other programs.
//! `cargo nextest run --lib --test it` runs the fast tests; they need git, and a few of them a tmux server.
//!
//! # How to add
//!
//! - **A step of a handoff**: its wire name in [`contract::Step`], with what it waits for; its file in
//!   `core/handoff/steps` (how it begins, its limit, what follows, what a retry does) and its line in `steps/mod.rs`;
//!   the step before it, which must return it as the next. A limit that users can set is in [`core::settings`] and
//!   `config/values.rs`. An effect that the step waits for is a variant in [`core::effect`]; [`runner`] carries it out,
//!   again after a crash.
//! - **A time limit of an agent**: its entry in the list of `core/rows/agent/timers.rs`; what happens when it has
//!   passed, in `core/due.rs`. The loop computes from this list when to wake up next, and what is left of each limit
//!   after a reboot.
//! - **A kind of request**: its body, with its checks and the list of rows and files to load for it, in `core/request`;
//!   its line in the table `core/request/kinds.rs`; the function that answers it, and the arm in `core/mod.rs` that
//!   calls this function. Schema, OpenAPI and the intake, which reads request files, follow from the table.
//! - **A notice to the operator**: its code in `contract/notice.rs`, its row in the guide's chapter `notices`, and a
//!   call of `Tx::notify_operator` with an `OperatorNotice` where the notice is due. A failure of an agent goes through
//!   `Tx::notify_agent_failure` instead and leaves an error file. `core/rows/agent/alerts.rs` remembers which causes
//!   were told, so that each is told once.
//! - **A journal line**: its wire name and fields in `contract/journal.rs`, and the function that writes it.
//! - **A field of an agent's view**: the type in [`contract`]; `core/view.rs`, which fills it; the row in
//!   [`core::rows`] if no field of the row says it yet. The page shows a plain field without further code;
//!   `cli/agents.rs` has the columns of `tasuki agents` and the details in `tasuki top`.
//! - **Something that waits for a person**: its word in `contract/needs.rs`, at its place by urgency; the function in
//!   `core/needs` that finds it in a view; its row in the guide's chapter `screen`. `tasuki status`, `tasuki top`,
//!   `/api/needs` and tmux's status line show it then.
//! - **A reason to refuse typing**: `core/pane.rs`, with its hint; whether it is temporary, in
//!   `core/handoff/ack/messages.rs`; the check itself, in [`tmux`].
//! - **An agent CLI**: a file in `data/profiles`, named in `agents/profile.rs`; its screens in `tests/screens`; the
//!   modes of its composer (such as vim's) in `tests/it/agents_modes.rs`.
//!
//! `.github/CONTRIBUTING.md` says how to regenerate schemas, traces and screens. `tests/it/promises.rs` names the test
//! for each sentence of "What tasuki never does".

pub mod contract;

pub mod core;

pub mod agents;
pub mod child;
pub mod clock;
pub mod config;
pub mod darwin;
pub mod files;
#[cfg(feature = "fleet")]
pub mod fleet;
pub mod git;
pub mod limits;
pub mod notify;
pub mod personas;
pub mod process;
pub mod publish;
pub mod secrets;
pub mod service;
pub mod spool;
pub mod store;
pub mod tmux;

pub mod runner;

pub mod sidecar;

#[cfg(feature = "fleet")]
pub mod bridge;
pub mod cli;
pub mod demo;
pub mod exit;
