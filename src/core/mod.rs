//! The pure core: no file, no clock, no process and no randomness. [`decide`] takes the state and one event and returns
//! what to write and to do. It cannot fail, because bad input is data too.

// A new state or outcome must be handled in every match, so no match may have a wildcard.
#![warn(clippy::wildcard_enum_match_arm)]

pub mod agent;
pub mod check;
pub mod cut;
pub mod decision;
mod due;
pub mod effect;
pub mod event;
mod fact;
mod follow;
pub mod handoff;
pub mod hook;
mod hooks;
pub mod host;
pub mod id;
pub mod needs;
mod notice;
pub mod pane;
pub mod persona;
pub mod prompts;
pub mod reply;
pub mod request;
pub mod resume;
pub mod rows;
pub mod rules;
pub mod settings;
pub mod state;
pub mod status_line;
pub mod text;
pub mod time;
mod tx;
pub mod view;
pub mod work;

use crate::contract::reply::DismissReply;
use agent::{
    acceptance, cli_limits, context_usage, exit, idle, priming, queue, register, shutdown, start, typing, unwanted,
};
use decision::{Cycle, Decision};
use effect::{Effect, EffectKey, Outcome};
use event::{Event, IncomingRequest};
use hook::HookEvent;
use id::AgentId;
use reply::{Answer, Refused, Reply};
use request::Request;
use rows::agent::Agent;
use rows::lookup::OpenRequest;
use rows::outbox::{Pending, Waiter};
use state::State;
use std::collections::BTreeSet;
use tx::Tx;

/// Whether the caller must look up which of the processes above the hook are agent CLIs before it has this event
/// decided.
#[must_use]
pub fn wants_clis(state: &State, event: &HookEvent) -> bool {
    hooks::wants_clis(state, event)
}

/// Decides one event. The caller applies the decision to the state before it has the next event decided.
#[must_use]
pub fn decide(state: &State, event: Event, cycle: &Cycle) -> Decision {
    let mut tx = Tx::new(state, cycle);
    match event {
        Event::Request(arrived) => request_arrived(&mut tx, *arrived),
        Event::Hook(event) => hooks::arrived(&mut tx, &event),
        Event::Settled { key, outcome } => settled(&mut tx, key, outcome),
        Event::AgentExit { agent_id, how } => exit::detected(&mut tx, &agent_id, how),
        Event::DocumentGrew { handoff_id, bytes } => handoff::steps::writing::document_grew(&mut tx, handoff_id, bytes),
        Event::Server(server) => tx.out.server = Some(server),
        Event::Rules(rules) => work::people::rules_read(&mut tx, rules),
        Event::Roles(roles) => work::people::roles_read(&mut tx, roles),
        Event::Probe => tx.out.probed = true,
        Event::Deadlines => deadlines(&mut tx),
    }
    follow::facts(&mut tx);
    run_ready(&mut tx);
    tx.out
}

/// Runs what has become possible: a handoff or a waiting text may have waited for what this decision changes in an
/// agent or in a handoff.
fn run_ready(tx: &mut Tx<'_>) {
    let mut touched: BTreeSet<AgentId> = tx.out.agents.keys().copied().collect();
    for handoff in tx.out.handoffs.values() {
        touched.extend([Some(handoff.agent_id), handoff.successor_id].into_iter().flatten());
    }
    for agent_id in touched {
        if let Some(id) = tx.agent(&agent_id).and_then(|agent| agent.handoff_id) {
            handoff::driver::run_ready(tx, id);
            follow::facts(tx);
        }
        queue::type_next(tx, &agent_id);
        follow::facts(tx);
        work::notices::offer_next(tx, &agent_id);
        follow::facts(tx);
        idle::update_idle_watch(tx, &agent_id);
    }
    if !work::notices::is_news(tx) {
        return;
    }
    // Work may be free for agents that this decision has not touched: each free agent is notified of its next item.
    for agent_id in tx.agent_ids() {
        work::notices::offer_next(tx, &agent_id);
        follow::facts(tx);
    }
}

fn request_arrived(tx: &mut Tx<'_>, arrived: IncomingRequest) {
    let IncomingRequest { id, sha256, read, facts } = arrived;
    let request = match read.request {
        Ok(request) => request,
        Err(refused) => {
            let reply = Reply::Refused(refused);
            tx.out.answers.push(Answer { request_id: id, kind: read.kind, request_sha256: sha256, reply });
            if let Some(ack) = &read.malformed {
                handoff::ack::receive::malformed(tx, ack);
            }
            return;
        }
    };
    tx.out.opened.push((id.clone(), OpenRequest { kind: read.kind.unwrap_or_default(), sha256 }));
    match request {
        Request::Handoff(asked) => handoff::trigger::asked(tx, &id, asked, &facts),
        Request::HandoffRetry(asked) => handoff::ask::retry(tx, &id, &asked),
        Request::HandoffAbandon(asked) => handoff::ask::abandon(tx, &id, &asked.handoff_id),
        Request::HandoffCancel(asked) => handoff::ask::cancel(tx, &id, &asked.handoff_id),
        Request::HandoffAccept(asked) => handoff::ask::accept(tx, &id, &asked.handoff_id),
        Request::HandoffRework(asked) => handoff::ask::rework(tx, &id, asked),
        Request::HandoffReopen(asked) => handoff::reopen::asked(tx, &id, &asked.handoff_id),
        Request::AgentCreate(asked) => start::create_asked(tx, &id, &asked, &facts),
        Request::AgentRegister(asked) => register::register_asked(tx, &id, asked, &facts),
        Request::AgentShutdown(asked) => shutdown::shutdown_asked(tx, &id, &asked),
        Request::AgentForget(asked) => shutdown::forget_asked(tx, &id, &asked, &facts),
        Request::AgentSend(asked) => register::send_asked(tx, &id, asked),
        Request::Ack(asked) => handoff::ack::receive::asked(tx, &id, &asked),
        Request::Clarify(asked) => handoff::ack::answers::asked(tx, &id, asked, &facts),
        Request::AckOverride(asked) => handoff::ack::receive::overridden(tx, &id, &asked),
        Request::Publish(asked) => handoff::publish_now::asked(tx, &id, &asked, &facts),
        Request::WorkCreate(asked) => work::ask::create(tx, &id, asked),
        Request::WorkClaim(asked) => work::ask::claim(tx, &id, &asked),
        Request::WorkComplete(asked) => work::complete::complete(tx, &id, asked),
        Request::WorkRetryChildren(asked) => work::complete::retry(tx, &id, &asked),
        Request::WorkRelease(asked) => work::ask::release(tx, &id, &asked),
        Request::WorkEscalate(asked) => work::ask::escalate(tx, &id, &asked),
        Request::WorkRollback(asked) => work::rollback::asked(tx, &id, &asked),
        Request::WorkComment(asked) => work::ask::comment(tx, &id, asked),
        Request::WorkImport(asked) => work::import::asked(tx, &id, &asked),
        Request::ErrorDismiss(asked) => dismiss(tx, &id, &asked.error_id, facts.error_known),
    }
}

fn dismiss(tx: &mut Tx<'_>, request: &id::RequestId, text: &str, known: bool) {
    match text.parse() {
        Ok(error_id) if known => {
            tx.out.dismissed.push(error_id);
            tx.answer(
                request,
                Reply::ok(&DismissReply { status: "dismissed".to_owned(), error_id: error_id.to_string() }),
            );
        }
        _ => tx.refuse(request, Refused::new(404, "no_error", "Error not found")),
    }
}

/// Passes an effect's outcome to its waiter. If the effect has left the outbox, its outcome comes too late and is
/// ignored.
fn settled(tx: &mut Tx<'_>, key: EffectKey, outcome: Outcome) {
    let Some(Pending { waiter, effect }) = tx.state.outbox.get(&key) else { return };
    tx.out.dropped.push(key);
    match waiter {
        Waiter::Nobody => {}
        Waiter::Agent(agent_id) => settled_of_agent(tx, agent_id, effect, key, outcome),
        Waiter::Step(id) => handoff::driver::settled(tx, *id, key, outcome),
        Waiter::Publishing(id) => handoff::publish::settled(tx, *id, key, outcome),
        Waiter::Message(id, number) => handoff::ack::messages::notified(tx, *id, *number, outcome),
        Waiter::PaneLookup(lookup) => {
            let lookup = lookup.clone();
            if let Outcome::Pane(facts) = outcome {
                register::identified(tx, lookup, facts);
            } else {
                let why = if let Outcome::Failed { why } = &outcome { why } else { "nothing was seen" };
                register::not_identified(tx, lookup, why);
            }
        }
    }
}

/// Passes the outcome of an agent's effect to the state machine that waits for it.
fn settled_of_agent(tx: &mut Tx<'_>, agent_id: &AgentId, effect: &Effect, key: EffectKey, outcome: Outcome) {
    match (effect, outcome) {
        (Effect::Type(_), Outcome::Typed(typed)) => typing::settled(tx, agent_id, key, typed),
        (Effect::Start(_), Outcome::Started(started)) => {
            let end = match unwanted::is_unwanted(tx, agent_id) {
                true => unwanted::started(tx, agent_id, key, started),
                false => start::settled(tx, agent_id, key, started),
            };
            if let Some(state) = end {
                follow::facts(tx);
                exit::end(tx, agent_id, state);
            }
        }
        (Effect::AwaitIdle { .. }, Outcome::Readiness(readiness)) => idle::watch_ended(tx, agent_id, key, &readiness),
        (Effect::AwaitReady { .. }, Outcome::Readiness(readiness)) => {
            start::ready_settled(tx, agent_id, key, readiness)
        }
        (Effect::ReadPersona { .. }, outcome) => priming::settled(tx, agent_id, key, outcome),
        (Effect::KillPane { .. }, Outcome::Failed { why }) => exit::pane_killed(tx, agent_id, Some(&why)),
        (Effect::KillPane { .. }, _) => exit::pane_killed(tx, agent_id, None),
        (Effect::ReadContextUsage { .. }, outcome) => {
            let found = if let Outcome::ContextUsage(found) = outcome { found } else { None };
            context_usage::measured(tx, agent_id, key, found);
        }
        (Effect::ReadLimit { .. }, outcome) => {
            let found = if let Outcome::Limit(found) = outcome { found } else { None };
            cli_limits::found(tx, agent_id, key, found);
        }
        (Effect::AwaitPrompt { .. }, outcome) => acceptance::settled(tx, agent_id, key, outcome == Outcome::Done),
        (Effect::CheckAutoHandoff { .. }, outcome) => {
            let round = if let Outcome::AutoHandoffCheck(round) = outcome { Some(*round) } else { None };
            if tx.agent(agent_id).is_some_and(|agent| agent.limits.checking == Some(key)) {
                cli_limits::checked(tx, agent_id, round);
            } else {
                context_usage::auto_handoff_checked(tx, agent_id, key, round);
            }
        }
        // The outcome does not fit the effect, or it is an effect for which no agent waits.
        (
            Effect::Type(_)
            | Effect::Start(_)
            | Effect::AwaitIdle { .. }
            | Effect::AwaitReady { .. }
            | Effect::PrepareFolder { .. }
            | Effect::ReadDocument { .. }
            | Effect::ComposeDocument { .. }
            | Effect::Examine(_)
            | Effect::AwaitRead { .. }
            | Effect::LookAtTurn { .. }
            | Effect::CompareDocument { .. }
            | Effect::AwaitDeath { .. }
            | Effect::HoldPlaceholder { .. }
            | Effect::DropPlaceholder { .. }
            | Effect::Identify { .. }
            | Effect::KeepCopy(_)
            | Effect::Publish(_)
            | Effect::NotifyOperator(_)
            | Effect::Notify(_),
            _,
        ) => {}
    }
}

fn deadlines(tx: &mut Tx<'_>) {
    exit::deaths_due_together(tx);
    follow::facts(tx);
    for agent_id in tx.agent_ids() {
        if tx.agent(&agent_id).is_some_and(Agent::keeps_time) {
            due::agent(tx, &agent_id);
        }
    }
    let handoffs: Vec<_> = tx.state.handoffs.keys().copied().collect();
    for id in handoffs {
        handoff::driver::due(tx, id);
        handoff::publish::deadline(tx, id);
        follow::facts(tx);
    }
    work::watch::due(tx);
}
