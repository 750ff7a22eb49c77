//! Views and error files go in, the list comes out.

use super::*;
use crate::contract::{AgentView, ErrorFile, HandoffView, understood};
use serde_json::{Value, json};

const KAI: &str = "11111111-1111-4111-8111-111111111111";
const HANDOFF: &str = "33333333-3333-4333-8333-333333333333";
const ITEM: &str = "44444444-4444-4444-8444-444444444444";
const ERROR: &str = "55555555-5555-4555-8555-555555555555";

/// The same time, at another second.
fn at(second: u32) -> String {
    format!("2026-11-25T08:00:{second:02}.000Z")
}

fn with(mut value: Value, more: Value) -> Value {
    if let (Value::Object(fields), Value::Object(more)) = (&mut value, more) {
        fields.extend(more);
    }
    value
}

fn agent(more: Value) -> Value {
    let base = json!({"agent_id": KAI, "persona_slug": "kai", "profile": "demo", "pane": "%3", "state": "idle",
        "state_since": at(1), "primed": true, "handoff_suggested": false});
    with(base, more)
}

fn handoff(more: Value) -> Value {
    with(json!({"handoff_id": HANDOFF, "agent_id": KAI, "persona_slug": "kai", "step": "writing"}), more)
}

fn failed(step: &str, code: &str, hint: &str) -> Value {
    let error = json!({"error_id": ERROR, "step": step, "code": code, "message": "It has failed", "hint": hint});
    handoff(json!({"step": "failed", "error": error, "steps": [{"step": "failed", "entered_at": at(5)}]}))
}

fn error(more: Value) -> Value {
    let base = json!({"error_id": ERROR, "at": at(5), "code": "c", "message": "It has failed", "hint": "Look.",
        "handoff_id": null, "agent_id": null, "step": null});
    with(base, more)
}

fn of_handoff(step: &str) -> Value {
    error(json!({"handoff_id": HANDOFF, "agent_id": KAI, "step": step}))
}

fn listed(agents: &[Value], handoffs: &[Value], items: &[Value], errors: &[Value]) -> Vec<NeedView> {
    let agents: Vec<AgentView> = agents.iter().map(|view| understood(view.clone()).expect("a view")).collect();
    let handoffs: Vec<HandoffView> = handoffs.iter().map(|view| understood(view.clone()).expect("a view")).collect();
    let items: Vec<WorkBrief> = items.iter().map(|view| understood(view.clone()).expect("a view")).collect();
    let errors: Vec<ErrorFile> = errors.iter().map(|file| understood(file.clone()).expect("a file")).collect();
    let agents: Vec<AgentNeeds> = agents.iter().map(AgentNeeds::of).collect();
    let handoffs: Vec<HandoffNeeds> = handoffs.iter().map(HandoffNeeds::of).collect();
    let items: Vec<NeedView> = items.iter().filter_map(item).collect();
    let errors: Vec<FailureNeed> = errors.iter().map(FailureNeed::of).collect();
    list(&agents, &handoffs, &items, &errors)
}

/// The kind and the command of the only entry of a list.
fn only(needs: &[NeedView]) -> (String, String) {
    let [need] = needs else { panic!("one entry, not {needs:#?}") };
    (need.what.as_str().to_owned(), need.command.clone())
}

fn pair(what: &str, command: &str) -> (String, String) {
    (what.to_owned(), command.to_owned())
}

#[test]
fn nothing_waits_where_all_is_well() {
    let views = [handoff(json!({})), handoff(json!({"step": "done"}))];
    assert_eq!(listed(&[agent(json!({})), agent(json!({"state": "busy"}))], &views, &[], &[]), []);
}

#[test]
fn a_sidecar_that_can_not_do_all_of_its_work_comes_first_and_leads_to_the_doctor() {
    let of = |view: Value| sidecar(&understood(view).expect("a view"));
    let need = of(json!({"state": "degraded", "problem": "the disk\u{1b}[2J is\nfull"})).expect("a need");
    assert_eq!((need.what.as_str(), need.command.as_str()), ("degraded", "tasuki doctor"));
    assert_eq!(need.said, "The sidecar can't do all of its work: the disk[2J is full");
    assert_eq!(NeedKind::ALL[0], NeedKind::Degraded, "it may hold up everything else");
    assert!(of(json!({"state": "degraded"})).is_some_and(|need| need.said.ends_with("its work")));
    assert_eq!(of(json!({"state": "running", "problem": "a file is held"})), None, "it does all of its work");
}

#[test]
fn files_that_can_not_be_read_are_told_in_the_list_itself() {
    let need = unread(2, "Can't read /h/view/agents/1.json: Permission denied");
    assert_eq!((need.what.as_str(), need.command.as_str()), ("degraded", "tasuki doctor"));
    assert!(need.said.starts_with("2 files can't be read, so this list may lack something: Can't read /h"), "{need:?}");
    assert_eq!(list(&[], &[], std::slice::from_ref(&need), &[]).len(), 1);
}

#[test]
fn errors_that_are_too_many_are_told_in_the_list_itself() {
    assert_eq!(left_out(0), None);
    let need = left_out(3).expect("an entry");
    assert_eq!((need.what.as_str(), need.command.as_str()), ("degraded", "tasuki errors --limit 2003"));
    assert_eq!(need.said, "3 older errors are not read, so this list may lack something");
}

#[test]
fn a_dialog_leads_to_its_pane() {
    let needs = listed(&[agent(json!({"state": "blocked"}))], &[], &[], &[]);
    assert_eq!(only(&needs), pair("dialog", "tmux switch-client -t %3"));
    assert_eq!((needs[0].agent_id.as_deref(), needs[0].since.clone()), (Some(KAI), Some(at(1))));
    assert_eq!(needs[0].said, "A dialog is open in its pane %3");
    for nobody in [json!({"state": "blocked", "persona_slug": null}), json!({"state": "blocked", "ended_at": at(2)})] {
        assert_eq!(listed(&[agent(nobody)], &[], &[], &[]), []);
    }
}

#[test]
fn a_nearly_full_context_leads_to_a_handoff() {
    let context = json!({"used": 82, "window": 100, "percent": 82});
    let needs = listed(&[agent(json!({"handoff_suggested": true, "context": context}))], &[], &[], &[]);
    assert_eq!(only(&needs), pair("suggestion", "tasuki handoff 11111111 --reason context_limit --wait"));
    assert_eq!(needs[0].said, "Its context is 82 % full");
}

#[test]
fn each_question_wants_an_answer() {
    let ack = json!({"status": "needs_clarification", "at": at(3), "questions": ["Which branch?", "Which\nport?"]});
    let needs = listed(&[], &[handoff(json!({"step": "acknowledging", "ack": ack}))], &[], &[]);
    assert_eq!(only(&needs), pair("question", "tasuki clarify 33333333 --answer … --answer …"));
    assert_eq!(needs[0].said, "The successor asks: Which branch? / Which port?");
}

#[test]
fn a_held_document_wants_a_decision() {
    let held = handoff(json!({"step": "checking", "held_since": at(2), "faults": [{"said": "x"}]}));
    assert_eq!(only(&listed(&[], &[held], &[], &[])), pair("held", "tasuki accept 33333333"));
}

#[test]
fn the_command_fits_the_failure() {
    let cases = [
        ("briefing", "unconfirmed", "look", "in_doubt", "tasuki retry 33333333 --assume …"),
        ("priming", "priming_failed", "look", "in_doubt", "tasuki retry 33333333 --assume …"),
        ("starting", "no_tmux", "start tmux, then retry", "in_doubt", "tasuki retry 33333333"),
        ("writing", "document_missing", "then retry", "failed", "tasuki retry 33333333"),
        (
            "acknowledging",
            "ack_rejected",
            "Start another successor: tasuki retry 33333333 --successor new",
            "failed",
            "tasuki retry 33333333 --successor new",
        ),
        (
            "reading",
            "successor_failed",
            "Look: tasuki retry 33333333 briefs the successor again; tasuki retry 33333333 --successor new starts another",
            "failed",
            "tasuki retry 33333333",
        ),
        (
            "writing",
            "agent_ended",
            "otherwise: tasuki handoff 11111111 --author salvage",
            "failed",
            "tasuki handoff 11111111 --author salvage",
        ),
        (
            "instructing",
            "pane_gone",
            "hand the agent off without its help: tasuki handoff 11111111 --author salvage; or start a new agent",
            "failed",
            "tasuki handoff 11111111 --author salvage",
        ),
    ];
    for (step, code, hint, what, command) in cases {
        let needs = listed(&[], &[failed(step, code, hint)], &[], &[of_handoff(step)]);
        assert_eq!(only(&needs), pair(what, command), "{code}");
        assert_eq!((needs[0].error_id.as_deref(), needs[0].since.clone()), (Some(ERROR), Some(at(5))));
    }
    // The successor waits for an answer all the same; a retry would replace it.
    for (code, status, questions, answers) in [
        ("ack_rejected", "environment_issue", json!(["No docker"]), "--answer …"),
        ("ack_timeout", "timed_out", json!(["Which?", "Why?"]), "--answer … --answer …"),
    ] {
        let hint = "Answer it: tasuki clarify 33333333 --answer TEXT; otherwise: tasuki retry 33333333 --successor new";
        let asked = json!({"ack": {"status": status, "questions": questions}});
        let view = with(failed("acknowledging", code, hint), asked);
        let needs = listed(&[], &[view], &[], &[of_handoff("acknowledging")]);
        assert_eq!(only(&needs), pair("failed", &format!("tasuki clarify 33333333 {answers}")), "{code}");
    }
}

#[test]
fn a_failure_is_listed_once_and_only_until_it_is_dismissed_or_past() {
    let view = failed("writing", "document_missing", "retry");
    assert_eq!(listed(&[], std::slice::from_ref(&view), &[], &[of_handoff("writing")]).len(), 1);
    assert_eq!(listed(&[], &[view], &[], &[]), [], "somebody has dismissed it");
    for past in ["instructing", "done", "cancelled"] {
        let needs = listed(&[], &[handoff(json!({"step": past}))], &[], &[of_handoff("writing")]);
        assert_eq!(needs, [], "the handoff is in {past} since then");
    }
    // Nobody knows what became of the handoff.
    assert_eq!(
        only(&listed(&[], &[], &[], &[of_handoff("writing")])),
        pair("failed", "tasuki errors dismiss 55555555")
    );
    let message = error(json!({"handoff_id": HANDOFF, "code": "message_failed"}));
    let done = handoff(json!({"step": "done"}));
    let needs = listed(&[], &[done], &[], &[message]);
    assert_eq!(only(&needs), pair("failed", "tasuki errors dismiss 55555555"), "no end of the handoff changes that");
}

/// A retry would be refused: the agent, or its briefed successor, is another handoff's by then.
#[test]
fn a_failed_handoff_needs_nobody_once_another_has_taken_over() {
    let file = of_handoff("writing");
    for (step, code) in [("writing", "agent_ended"), ("instructing", "unconfirmed")] {
        let view = failed(step, code, "retry");
        let seen = |more: Value| listed(&[agent(more)], std::slice::from_ref(&view), &[], std::slice::from_ref(&file));
        for own in [json!({}), json!({"handoff_id": HANDOFF}), json!({"recorded_in": HANDOFF})] {
            assert_eq!(seen(own).len(), 1, "{code}");
        }
        for other in [json!({"handoff_id": ITEM}), json!({"recorded_in": ITEM, "state": "ended", "ended_at": at(2)})] {
            assert_eq!(seen(other), [], "{code}");
        }
    }
    let successor = |more: Value| agent(with(json!({"agent_id": ITEM}), more));
    let cases = [
        ("priming", "successor_failed", 1),
        ("briefing", "draft", 1),
        ("briefing", "unconfirmed", 0),
        ("reading", "successor_failed", 0),
        ("acknowledging", "successor_failed", 0),
    ];
    for (step, code, count) in cases {
        let view = with(failed(step, code, "retry"), json!({"successor_id": ITEM}));
        let agents = [agent(json!({"recorded_in": HANDOFF})), successor(json!({"recorded_in": ERROR}))];
        assert_eq!(listed(&agents, std::slice::from_ref(&view), &[], &[of_handoff(step)]).len(), count, "{step}");
        let agents = [agent(json!({"recorded_in": HANDOFF})), successor(json!({}))];
        assert_eq!(listed(&agents, &[view], &[], &[of_handoff(step)]).len(), 1, "{step}");
    }
}

/// It knows nothing but its skill: a handoff of this agent would leave its predecessor's document behind.
#[test]
fn a_successor_that_was_not_briefed_leads_to_a_retry_and_not_to_another_handoff() {
    let limited = json!({"kind": "usage_limit", "since": at(2), "said": "used up"});
    let view = |step: &str, successor: Value| {
        with(failed(step, "priming_failed", "look"), json!({"successor_id": ITEM, "successor": successor}))
    };
    let commands = |more: Value, view: Value| -> Vec<String> {
        let successor = agent(with(json!({"agent_id": ITEM, "previous_agent_id": KAI}), more));
        listed(&[successor], &[view], &[], &[]).into_iter().map(|need| need.command).collect()
    };
    let other = "tasuki handoff 44444444 --author salvage --profile … --wait";
    let retry = "tasuki retry 33333333 --successor new --profile … --wait";
    for (step, successor, command) in [
        ("priming", json!("new"), retry),
        ("briefing", json!("same_pane"), retry),
        ("reading", json!("new"), other),
        ("priming", json!({"agent_id": ITEM}), other),
    ] {
        let found = commands(json!({"limited": limited}), view(step, successor));
        assert_eq!(found, [command], "{step}");
    }
    let in_doubt = with(view("briefing", json!("new")), json!({"error": {"step": "briefing", "code": "unconfirmed"}}));
    let found = commands(json!({"limited": limited}), in_doubt);
    assert_eq!(found, ["tasuki retry 33333333 --assume …", other], "it may have the document");
    let full = commands(json!({"handoff_suggested": true}), view("priming", json!("new")));
    assert_eq!(full, ["tasuki retry 33333333 --successor new --wait"]);
    let logged_out = json!({"limited": {"kind": "logged_out", "since": at(2), "said": "x"}});
    assert_eq!(commands(logged_out, view("priming", json!("new"))), ["tmux switch-client -t %3"]);
}

#[test]
fn publishing_that_has_stopped_is_listed_with_what_continues_it() {
    let of = |state: &str, hint: &str| {
        let error = json!({"error_id": ERROR, "code": "c", "message": "not published", "hint": hint});
        handoff(json!({"step": "done", "publish": {"state": state, "error": error}}))
    };
    let file = of_handoff("publishing");
    for (state, hint, what, command) in [
        ("in_doubt", "look", "in_doubt", "tasuki publish 33333333 --assume …"),
        ("held", "tasuki publish 33333333 --redacted, or --as-is", "held", "tasuki publish 33333333 --redacted"),
        ("held", "tasuki publish 33333333 --as-is", "held", "tasuki publish 33333333 --as-is"),
        ("failed", "log in", "failed", "tasuki publish 33333333"),
        ("failed", "gist instead: tasuki publish 3 --to gist", "failed", "tasuki publish 33333333 --to gist"),
    ] {
        let needs = listed(&[], &[of(state, hint)], &[], std::slice::from_ref(&file));
        assert_eq!(only(&needs), pair(what, command));
        assert_eq!(needs[0].since, Some(at(5)), "the error file knows it");
    }
    let published = handoff(json!({"step": "done", "publish": {"state": "published", "error": null}}));
    assert_eq!(listed(&[], &[published], &[], &[file]), []);
}

#[test]
fn an_agent_that_has_died_is_listed_until_a_successor_continues_its_work() {
    let died = error(json!({"agent_id": KAI, "code": "agent_died"}));
    let ended = |more: Value| agent(with(json!({"state": "ended", "ended_at": at(2)}), more));
    let needs = listed(&[ended(json!({}))], &[], &[], std::slice::from_ref(&died));
    assert_eq!(only(&needs), pair("failed", "tasuki errors dismiss 55555555"));
    assert_eq!(needs[0].persona_slug.as_deref(), Some("kai"), "its id is on no list of living agents");
    assert_eq!(listed(&[ended(json!({"successor_id": ITEM}))], &[], &[], &[died]), []);
}

#[test]
fn an_agent_without_its_skill_is_listed_until_it_has_it() {
    let file = |code: &str| error(json!({"agent_id": KAI, "code": code}));
    let unprimed = agent(json!({"primed": false}));
    let needs = listed(std::slice::from_ref(&unprimed), &[], &[], &[file("priming_failed")]);
    assert_eq!(only(&needs), pair("unprimed", "tasuki send 11111111 …"));
    assert_eq!(needs[0].persona_slug.as_deref(), Some("kai"));
    assert_eq!(listed(&[unprimed], &[], &[], &[]), [], "it is being primed, or somebody has dismissed the failure");
    assert_eq!(listed(&[agent(json!({}))], &[], &[], &[file("priming_failed")]), []);
    let dialog = agent(json!({"primed": false, "state": "blocked"}));
    assert_eq!(only(&listed(&[dialog], &[], &[], &[file("start_failed")])).0, "dialog", "its start continues after it");
    let ended = |primed: bool| agent(json!({"primed": primed, "state": "ended"}));
    assert_eq!(listed(&[ended(false)], &[], &[], &[file("priming_failed")]), [], "no agent lacks its skill any more");
    let succeeded = agent(json!({"primed": false, "successor_id": ITEM}));
    assert_eq!(listed(&[succeeded], &[], &[], &[file("priming_failed")]), []);
    let never_ran = listed(&[ended(false)], &[], &[], &[file("start_failed")]);
    assert_eq!((only(&never_ran).0, never_ran[0].persona_slug.as_deref()), ("failed".into(), Some("kai")));
    for code in ["start_failed", "priming_failed"] {
        assert_eq!(listed(&[ended(true)], &[], &[], &[file(code)]), [], "{code}: it stays made good after the end");
    }
}

#[test]
fn an_escalated_item_and_a_failure_of_nobody_are_listed() {
    let item = |status: &str| {
        json!({"item_id": ITEM, "type": "bug", "title": "the shop", "status": status, "priority": "normal", "claimed_by": null,
            "parent_id": null, "created_at": at(0), "escalated_at": at(4), "escalation_reason": "no access"})
    };
    let needs = listed(&[], &[], &[item("escalated"), item("ready")], &[]);
    assert_eq!(only(&needs), pair("escalated", "tasuki work release 44444444 --human"));
    assert_eq!((needs[0].said.as_str(), needs[0].since.clone()), ("“the shop” was escalated: no access", Some(at(4))));
    assert!(needs[0].hint.as_ref().is_some_and(|hint| hint.contains("tasuki work claim 44444444 --human")));
    let needs = listed(&[], &[], &[], &[error(json!({"code": "bad_rules"}))]);
    assert_eq!(only(&needs), pair("failed", "tasuki errors dismiss 55555555"));
}

#[test]
fn the_most_urgent_come_first_and_of_these_the_oldest() {
    let named = |id: u32, more: Value| agent(with(json!({"agent_id": format!("{id:08x}-0000")}), more));
    let blocked = |id, second: u32| named(id, json!({"state": "blocked", "state_since": at(second)}));
    let agents = [
        named(1, json!({"handoff_suggested": true})),
        blocked(2, 9),
        blocked(3, 4),
        named(4, json!({"state": "blocked", "state_since": null})),
    ];
    let held = handoff(json!({"step": "checking", "held_since": at(1)}));
    let needs = listed(&agents, &[held], &[], &[]);
    let order: Vec<String> = needs.iter().map(|need| need.agent_id.clone().unwrap_or_default()).collect();
    assert_eq!(order, ["00000003-0000", "00000002-0000", "00000004-0000", "", "00000001-0000"]);
}

#[test]
fn what_comes_from_outside_is_plain_and_short() {
    let text = format!("a\u{1b}[31m\n{}", "x".repeat(5_000));
    let evil = json!({"error_id": "$(touch /x)", "step": "writing", "code": text, "message": text, "hint": text});
    let view = json!({"handoff_id": "; rm -rf /", "agent_id": text, "persona_slug": text, "step": "failed", "error": evil,
        "steps": [{"step": "failed", "entered_at": text}]});
    let blocked = agent(json!({"state": "blocked", "pane": "%3; kill", "state_since": text}));
    let needs = listed(&[blocked], &[view], &[], &[]);
    let commands: Vec<&str> = needs.iter().map(|need| need.command.as_str()).collect();
    assert_eq!(commands, ["tasuki agents", "tasuki retry ID"]);
    let need = &needs[1];
    assert_eq!((&need.handoff_id, &need.error_id, &need.persona_slug, &need.since), (&None, &None, &None, &None));
    assert!(need.said.chars().count() <= 400 && need.said.starts_with("a[31m xx"), "{}", need.said);
    assert!(need.hint.as_ref().is_some_and(|hint| hint.chars().count() <= 400));
}

#[test]
fn each_limit_of_a_cli_says_what_to_do() {
    let limited = |kind: &str| {
        let limited = json!({"kind": kind, "since": at(2), "until": at(9), "said": "used\u{1b} up"});
        let [need] = listed(&[agent(json!({"limited": limited}))], &[], &[], &[]).try_into().expect("one");
        assert_eq!((need.what.as_str(), need.since.as_deref()), ("limited", Some(at(2).as_str())));
        assert!(need.said.ends_with(": used up") && need.said.contains(&at(9)), "{}", need.said);
        need.command
    };
    let other = "tasuki handoff 11111111 --author salvage --profile … --wait";
    for (kind, command) in [
        ("usage_limit", other),
        ("no_credit", other),
        ("logged_out", "tmux switch-client -t %3"),
        ("overloaded", "tmux switch-client -t %3"),
    ] {
        assert_eq!(limited(kind), command, "{kind}");
    }
    let ended = json!({"limited": {"kind": "logged_out", "since": at(2)}, "state": "ended", "ended_at": at(3)});
    assert!(listed(&[agent(ended)], &[], &[], &[]).is_empty());
}
