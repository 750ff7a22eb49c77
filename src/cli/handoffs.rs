//! `handoffs`, `handoffs show` and `handoffs follow`.

use super::CliSession;
use super::error::CliError;
use super::follow::{self, Progress};
use super::handoff::HandoffName;
use super::output::{Tone, short_text};
use super::remote::follow::RemoteHandoff;
use super::remote::names::Named;
use super::unread::Unread;
use super::view::{ViewFile, said, shown};
use super::{documents, examined, home_option, hosts, names, past, remote, view, wait};
use crate::contract::handoff::PointView;
use crate::contract::{AckView, HandoffView, Step};
use crate::core::host::HostName;
use crate::core::text::sanitise;
use clap::{Args, Subcommand};
use serde_json::json;

/// `handoffs`.
#[derive(Debug, Args)]
pub struct HandoffsArgs {
    /// How many handoffs to show, newest first.
    #[arg(long, default_value_t = 20)]
    pub limit: usize,
    /// Show the handoffs of all hosts of the fleet; --limit counts for each host.
    #[arg(long)]
    pub all_hosts: bool,
    /// Show or follow one handoff instead of listing them.
    #[command(subcommand)]
    pub command: Option<HandoffsCommand>,
}

/// `handoffs …`.
#[derive(Debug, Subcommand)]
pub enum HandoffsCommand {
    /// Show one handoff with its steps, the faults of its document and the facts; or the document itself.
    #[command(after_help = "Example:\n  tasuki handoffs show 5f2a\n  tasuki handoffs show 5f2a --document")]
    Show(ShowArgs),
    /// Follow a handoff step by step until it has ended; Ctrl-C ends the display, not the handoff.
    #[command(after_help = "Example:\n  tasuki handoffs follow 5f2a")]
    Follow(HandoffName),
}

/// `handoffs show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// Handoff id, the beginning of it, or a persona (its latest handoff); `5f2a@b` for a handoff on the host b.
    pub handoff: String,
    /// Print the document that the agent has written for its successor.
    #[arg(long, conflicts_with = "facts")]
    pub document: bool,
    /// Print what tasuki itself has seen of the agent's work: the repository, commands, tests.
    #[arg(long)]
    pub facts: bool,
}

/// Lists the handoffs, or shows or follows one.
///
/// # Errors
/// When the views can't be read, or there are none. With `follow`, also how the handoff failed.
pub fn command(session: &CliSession, args: &HandoffsArgs) -> Result<(), CliError> {
    match &args.command {
        Some(HandoffsCommand::Show(args)) => show(session, args),
        Some(HandoffsCommand::Follow(name)) => follow_one(session, name),
        None if args.all_hosts => remote::list::handoffs(session, args.limit),
        None => list(session, args.limit),
    }
}

fn follow_one(session: &CliSession, name: &HandoffName) -> Result<(), CliError> {
    if let Named { id, host: Some(host) } = named(session, &name.handoff)? {
        return RemoteHandoff::new(&host, &id).follow_to_end(session, follow::Follower::new());
    }
    let id = find(session, &name.handoff)?.handoff_id.clone();
    wait::follow_to_end(session, &id, follow::Follower::new()).map(|_| ())
}

fn list(session: &CliSession, limit: usize) -> Result<(), CliError> {
    session.require_views()?;
    let mut unread = Unread::default();
    let mut handoffs: Vec<ViewFile<HandoffView>> = view::latest(&session.home.handoff_views(), limit, &mut unread)?;
    session.warn(&unread);
    handoffs.sort_by_key(|handoff| std::cmp::Reverse(shown(handoff.created_at.as_str())));
    if session.out.is_json() {
        return session.out.document(&handoffs.iter().map(ViewFile::json).collect());
    }
    if handoffs.is_empty() {
        session.out.note("No handoffs. Ask for one with: tasuki handoff AGENT --wait");
        return Ok(());
    }
    let short = names::short(handoffs.iter().flat_map(|handoff| ids(handoff)).filter_map(said));
    let row = |handoff: &HandoffView| {
        let step = if handoff.is_abandoned() { "abandoned".to_owned() } else { shown(handoff.step.as_str()) };
        let code = handoff.error.as_ref().and_then(|error| said(error.code.as_str()));
        let held = examined::is_held(handoff).then_some("waits for you");
        let unread = follow::is_unread(handoff).then_some("read unseen");
        let news = code.or_else(|| handoff.asks().then_some("asks you")).or(held).or(unread);
        let state = news.map_or_else(|| step.clone(), |news| format!("{step}: {news}"));
        let [own, from, to] =
            ids(handoff).map(|id| id.and_then(|id| short.get(id)).cloned().unwrap_or_else(|| "-".to_owned()));
        let created = session.out.when(&shown(handoff.created_at.as_str()));
        let reason = short_text(&shown(handoff.reason.as_str()), LONGEST_REASON);
        vec![own, shown(handoff.persona_slug.as_str()), created, state, from, to, reason]
    };
    let rows: Vec<Vec<String>> = handoffs.iter().map(|handoff| row(handoff)).collect();
    let tone = |handoff: &ViewFile<HandoffView>| match handoff.step.known() {
        Some(Step::Failed) => Tone::Bad,
        _ if handoff.asks() || examined::is_held(handoff) || follow::is_unread(handoff) => Tone::Care,
        _ => Tone::Plain,
    };
    let tones: Vec<Tone> = handoffs.iter().map(tone).collect();
    session.out.toned(&["HANDOFF", "PERSONA", "REQUESTED", "STEP", "FROM", "TO", "REASON"], &rows, &tones)
}

/// The handoff's own id, and those of its two agents.
fn ids(handoff: &HandoffView) -> [Option<&str>; 3] {
    [Some(&handoff.handoff_id), Some(&handoff.agent_id), handoff.successor_id.as_deref()]
}

/// The most characters of a reason that the list shows: a reason may be very long.
const LONGEST_REASON: usize = 120;

/// The handoff that the text names, on any host. A name of this host is refused if there are no views here.
fn named(session: &CliSession, text: &str) -> Result<Named, CliError> {
    if hosts::split(&session.home, text)?.1.is_none() {
        session.require_views()?;
    }
    remote::names::handoff(&session.home, text)
}

/// The view of the handoff of this host that the text names.
fn find(session: &CliSession, name: &str) -> Result<ViewFile<HandoffView>, CliError> {
    let id = names::handoff(&session.home, name)?;
    past::handoff(&session.home, &id)?.ok_or_else(|| names::not_found("handoff", name))
}

fn show(session: &CliSession, args: &ShowArgs) -> Result<(), CliError> {
    if let Named { id, host: Some(host) } = named(session, &args.handoff)? {
        return show_remote(session, args, &host, &id);
    }
    let seen = find(session, &args.handoff)?;
    if args.document {
        return print_document(session, &seen);
    }
    if args.facts {
        return print_facts(session, &seen);
    }
    if session.out.is_json() {
        return session.out.document(&seen.json());
    }
    lines(&seen).iter().try_for_each(|line| session.out.line(line))
}

/// Shows a handoff of another host. Its document is a file on that host, and its view does not hold the text.
fn show_remote(session: &CliSession, args: &ShowArgs, host: &HostName, id: &str) -> Result<(), CliError> {
    if args.document {
        return Err(hosts::not_from_elsewhere(id, host.as_str()));
    }
    let seen = remote::views::handoff(session, host, id)?;
    if args.facts {
        return print_facts(session, &seen);
    }
    if session.out.is_json() {
        return session.out.document(&seen.json());
    }
    lines(&seen).iter().try_for_each(|line| session.out.line(line))?;
    session.out.note(&format!("This handoff is on the host {host}: name it as {id}@{host}."));
    Ok(())
}

/// Prints the document without control characters, also if standard output is not a terminal.
fn print_document(session: &CliSession, seen: &HandoffView) -> Result<(), CliError> {
    let document = documents::read(&session.home, seen)?;
    if session.out.is_json() {
        let (path, changed) = (&seen.file_path, document.changed);
        return session.out.document(
            &json!({"file_path": path, "sha256": document.sha256, "text": document.text, "changed": changed}),
        );
    }
    if let Some(warning) = documents::warning(seen, &document) {
        session.out.note(&session.out.paint(Tone::Care, &warning));
    }
    print_text(session, &document.text)
}

fn print_facts(session: &CliSession, seen: &HandoffView) -> Result<(), CliError> {
    if session.out.is_json() {
        return session.out.document(&json!(documents::facts(seen)?));
    }
    print_text(session, &documents::facts_text(seen)?)
}

fn print_text(session: &CliSession, text: &str) -> Result<(), CliError> {
    session.out.raw(&format!("{}\n", sanitise(text.trim_end_matches('\n'))))
}

pub(super) fn lines(seen: &HandoffView) -> Vec<String> {
    let mut lines = vec![format!("handoff {}", sanitise(&shown(seen.handoff_id.as_str())))];
    let at = |at: Option<&str>| said(at).map(view::clock);
    let fields = [
        ("step", said(seen.step.as_str()).map(|step| step_of(seen, step))),
        ("from", said(seen.agent_id.as_str()).map(str::to_owned)),
        ("persona", said(seen.persona_slug.as_str()).map(str::to_owned)),
        ("reason", said(seen.reason.as_str()).map(str::to_owned)),
        ("focus", said(seen.focus.as_deref()).map(str::to_owned)),
        ("resume", said(seen.resume_command.as_deref()).map(str::to_owned)),
        ("requested", at(Some(&seen.created_at))),
        ("deadline", at(seen.deadline.as_deref())),
    ];
    for (name, text) in fields {
        lines.extend(text.map(|text| format!("  {name:<10} {}", plain(&text))));
    }
    lines.extend(follow::summary(seen).into_iter().map(|line| format!("  {line}")));
    lines.extend(examined::lines(seen));
    lines.push("  steps".to_owned());
    lines.extend(step_lines(seen));
    lines.extend(seen.ack.as_ref().map(|ack| acknowledgement(seen, ack)).into_iter().flatten());
    lines.extend(checklist(&seen.checklist));
    if let Some(error) = &seen.error {
        // Nothing is left to do about the failure of an abandoned handoff.
        let hint = if seen.is_abandoned() { "" } else { error.hint.as_str() };
        lines.push(CliError::told(&error.code, &error.message, &home_option::fit(hint)).text());
    }
    lines
}

fn step_of(seen: &HandoffView, step: &str) -> String {
    let end = if seen.is_abandoned() { ": it had failed, and was abandoned" } else { "" };
    format!("{step}{end}")
}

fn step_lines(seen: &HandoffView) -> Vec<String> {
    let mut lines = Vec::new();
    let mut open = None;
    for news in follow::Follower::new().observe(seen) {
        match &news {
            Progress::Entered { step } => open = Some(step.clone()),
            Progress::Passed { .. } | Progress::Stopped { .. } => open = None,
            Progress::Grew { .. } | Progress::Blocked { .. } => continue,
            // `examined::lines` shows these.
            Progress::Reworked { .. } | Progress::Held { .. } => continue,
            Progress::Ended(outcome) => lines.push(format!("    {}", outcome.as_str())),
        }
        lines.extend(follow::line(&news).map(|(line, good)| format!("  {} {line}", if good { " " } else { "!" })));
    }
    lines.extend(open.map(|step| format!("    {step:<13} {:>10}", "running")));
    lines
}

/// The text in one line, so that it can't look like a line of tasuki's.
fn plain(text: &str) -> String {
    sanitise(text).replace(['\n', '\t'], " ")
}

/// The successor's acknowledgement beside its tasks, and what is due next.
fn acknowledgement(seen: &HandoffView, ack: &AckView) -> Vec<String> {
    let mut lines = vec!["  acknowledgement".to_owned()];
    let mut say = |name: &str, what: &str| lines.push(format!("    {name:<14} {}", plain(what)));
    let late = if ack.late { " (late)" } else { "" };
    say("status", &format!("{}{late}, urgency {}", shown(ack.status.as_str()), shown(ack.urgency.as_str())));
    if let Some(next) = &ack.next {
        say("next", &format!("{} at {}", shown(next.what.as_str()), view::clock(&shown(next.at.as_str()))));
    }
    ack.tasks.iter().for_each(|task| say("task", task));
    for (name, text) in
        [("understanding", &ack.understanding), ("checkpoint", &ack.checkpoint), ("starting from", &ack.starting_from)]
    {
        said(text.as_deref()).into_iter().for_each(|text| say(name, text));
    }
    let open = seen.open_questions();
    let asked = if ack.questions.is_empty() { open } else { &ack.questions };
    asked.iter().for_each(|question| say("question", question));
    if seen.asks() || seen.waits_after_failure() || !open.is_empty() {
        let answers = vec!["--answer …"; open.len().max(1)].join(" ");
        let id: String = shown(seen.handoff_id.as_str()).chars().take(8).collect();
        say("answer with", &home_option::fit(&format!("tasuki clarify {id} {answers}")));
    }
    for (name, all) in [("reminder", &ack.reminders), ("escalation", &ack.escalations)] {
        for sent in all {
            let at = said(sent.at.as_deref()).map(view::clock).unwrap_or_default();
            let why = said(sent.reason.as_deref()).map(|why| format!(" ({why})")).unwrap_or_default();
            say(name, &format!("to {}: {} {at}{why}", shown(sent.to.as_str()), shown(sent.outcome.as_str())));
        }
    }
    if let Some(by) = ack.r#override.as_ref().and_then(|by| said(by.reason.as_str())) {
        say("override", by);
    }
    lines
}

/// The checklist of the delivery: each point with its time, or with the reason why it was not reached.
fn checklist(points: &[PointView]) -> Vec<String> {
    let line = |point: &PointView| {
        let at = said(point.at.as_deref());
        let sign = if at.is_some() { "[x]" } else { "[ ]" };
        let what = plain(&shown(point.point.as_str()));
        let why = said(point.reason.as_deref()).filter(|_| at.is_none()).map(|why| format!("({})", plain(why)));
        let end = at.map(view::clock).or(why).unwrap_or_default();
        format!("    {sign} {what:<32} {end}").trim_end().to_owned()
    };
    let mut lines: Vec<String> = points.iter().map(line).collect();
    if !lines.is_empty() {
        lines.insert(0, "  checklist".to_owned());
    }
    lines
}

#[cfg(test)]
mod tests {
    use crate::contract::understood;
    use serde_json::{Value, json};

    fn lines(seen: Value) -> Vec<String> {
        super::lines(&understood(seen).expect("an object"))
    }

    #[test]
    fn a_running_step_is_shown_as_running() {
        let seen = json!({"step": "writing", "steps": [{"step": "writing", "entered_at": "2026-11-21T20:00:01.000Z", "left_at": null}],
            "document": {"bytes": 12, "at": "2026-11-21T20:00:02.000Z"}, "file_path": "/d.md"});
        let text = lines(seen).join("\n");
        assert!(text.contains("writing          running") && text.contains("/d.md (12 bytes so far"), "{text}");
    }

    #[test]
    fn questions_that_nobody_answered_in_time_can_still_be_answered() {
        let failed = |questions: &[&str]| {
            let seen = json!({"handoff_id": "33333333", "step": "failed", "steps": [],
                "error": {"code": "ack_timeout", "hint": "see"},
                "ack": {"status": "timed_out", "questions": questions}});
            lines(seen).join("\n")
        };
        let text = failed(&["Which?", "Why?"]);
        assert!(text.contains("tasuki clarify 33333333 --answer … --answer …"), "{text}");
        let text = failed(&[]);
        assert!(!text.contains("clarify"), "{text}");
    }

    #[test]
    fn an_acknowledgement_is_shown_beside_the_tasks_and_points_without_a_time_say_why() {
        let text = lines(json!({
            "handoff_id": "h", "step": "acknowledging", "steps": [],
            "ack": {"status": "needs_clarification", "urgency": "prepare", "late": false, "tasks": ["fix the test"],
                "understanding": "to fix\na test", "checkpoint": "step 2", "starting_from": "step 3", "questions": ["Which branch?"],
                "next": {"what": "reminder", "at": "2026-11-21T20:00:01.000Z"}, "override": null,
                "reminders": [{"to": "operator", "outcome": "sent", "at": null, "reason": null}], "escalations": []},
            "checklist": [{"point": "all questions answered", "at": null, "reason": "open: Which branch?"}],
        }))
        .join("\n");
        for part in [
            "status         needs_clarification, urgency prepare",
            "task           fix the test",
            "understanding  to fix a test",
            "checkpoint     step 2",
            "starting from  step 3",
            "question       Which branch?",
            "reminder       to operator: sent",
            "[ ] all questions answered           (open: Which branch?)",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
    }

    #[test]
    fn a_handoff_is_shown_with_its_steps_and_its_error() {
        let text = lines(json!({
            "handoff_id": "h", "step": "failed", "agent_id": "a", "reason": "r", "resume_command": "claude --resume s-1",
            "steps": [{"step": "waiting", "entered_at": "2026-11-21T20:00:00.000Z", "left_at": "2026-11-21T20:00:01.000Z"},
                      {"step": "writing", "entered_at": "2026-11-21T20:00:01.000Z", "left_at": null}],
            "error": {"code": "stop_never_came", "message": "No end.", "hint": "Look."},
            "warnings": ["the document has no section about blockers"], "file_path": "/d.md",
            "checklist": [{"point": "instruction delivered", "at": "2026-11-21T20:00:01.000Z"}, {"point": "document recorded", "at": null}],
        }))
        .join("\n");
        for part in [
            "handoff h",
            "waiting",
            "! writing",
            "stopped here",
            "No end. (stop_never_came)",
            "Look.",
            "no section about blockers",
            "resume     claude --resume s-1",
            "[x] instruction delivered",
            "[ ] document recorded",
            "document   /d.md",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
    }
}
