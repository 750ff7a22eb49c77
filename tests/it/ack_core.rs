//! Every row of the delivery protocol, on an injected clock: three urgencies, four statuses, each required field, each
//! step of the timeline.

use super::support::ack_world::{AckWorld, DEAD, HEIR, MINUTE};
use serde_json::{Value, json};
use tasuki::contract::facts::EarlierDocument;
use tasuki::core::effect::Outcome;
use tasuki::core::hook::HookKind;
use tasuki::core::needs::{self, HandoffNeeds};
use tasuki::core::pane::Refusal;
use tasuki::core::rows::agent::AgentState;
use tasuki::core::settings::Target;
use tasuki::core::view;

fn reminders(world: &AckWorld) -> Vec<(u64, String)> {
    let view = world.view();
    let of = view["ack"]["reminders"].as_array().expect("a list").iter();
    of.map(|one| {
        let number = one["reminder_number"].as_u64().expect("a number");
        (number, one["outcome"].as_str().expect("a word").to_owned())
    })
    .collect()
}

fn sent(numbers: &[u64]) -> Vec<(u64, String)> {
    numbers.iter().map(|number| (*number, "sent".to_owned())).collect()
}

#[test]
fn each_urgency_has_its_priority_and_its_time() {
    for (urgency, priority, minutes) in
        [("immediate", "urgent", 5), ("prepare", "high", 15), ("when_available", "normal", 30)]
    {
        let mut world = AckWorld::briefed(urgency);
        let t = minutes * MINUTE;
        let briefing = world.texts("Here is your handoff").remove(0);
        for part in [
            &format!("within {minutes} minutes"),
            &format!("Priority: {priority}"),
            &format!("Handoff id: {}", world.id),
            "Predecessor: dev-6f1c3a52",
            "Reason: context_loss",
            "- task-1",
            "/opt/tasuki --home /h ack --understanding",
            "`/h/spool/requests`",
        ] {
            assert!(briefing.contains(part), "{part}: {briefing}");
        }
        let notice = &world.told[0];
        assert_eq!(notice["priority"], priority);
        assert_eq!(notice["content"]["ack_required_within"], format!("{minutes} minutes"));
        assert_eq!(notice["content"]["urgency"], urgency);
        world.pass(t - 1);
        assert!(reminders(&world).is_empty(), "{urgency}");
        world.pass(1);
        assert_eq!(reminders(&world), sent(&[1]));
        world.pass(t / 2 - 1);
        assert_eq!(reminders(&world), sent(&[1]));
        world.pass(1);
        assert_eq!(reminders(&world), sent(&[1, 2]));
        world.pass(t / 2 - 1);
        assert_eq!(world.step(), "acknowledging");
        world.pass(1);
        let error = world.handoff().error.clone().expect("it failed");
        assert_eq!(
            (world.step(), error.code.as_str(), error.step.as_str()),
            ("failed", "ack_timeout", "acknowledging")
        );
        assert_eq!((world.lines("escalation").len(), world.lines("reminder").len()), (1, 2));
        assert_eq!(world.texts("[REMINDER]").len(), 2, "each of them once");
        assert!(world.state.next_deadline_ms(&world.now).is_none(), "nothing falls any more");
    }
}

/// A long briefing is read with less care. This one has everything that a usual briefing can have.
#[test]
fn the_briefing_of_an_urgent_handoff_in_a_chain_is_short() {
    let (home, paragraph) =
        ("/home/mia/.local/share/tasuki", "The parser reads numbers with exponents now. ".repeat(2));
    let folder = format!("{home}/data/personas/dev/handoffs");
    let mut world = AckWorld::new();
    let settings = &mut world.state.settings;
    (settings.command, settings.requests_dir) = ("tasuki".to_owned(), format!("{home}/spool/requests"));
    let dead = world.state.agents.get_mut(&DEAD.parse().expect("an id")).expect("an agent");
    dead.cwd = Some("/home/mia/work/parser".to_owned());
    dead.transcript_path = Some("/home/mia/t.jsonl".to_owned());
    dead.session.id = Some(HEIR.to_owned());
    dead.chain = dead.chain.after(EarlierDocument {
        file_path: "/h/dev/20260219T093000-aaaaaaaa.md".to_owned(),
        ..EarlierDocument::default()
    });
    world.options = json!({"tasks": ["mend the lexer"], "reason": "context_limit"});
    world.begin("immediate", &format!("# Work\n\n{paragraph}\n"));
    let briefing = world.texts("Here is your handoff").remove(0).replace("/h/dev", &folder);
    for part in ["handoff 2 of a chain", "- `20260219T093000-aaaaaaaa.md`", ".facts.md`", " --find ", "demo --session"]
    {
        assert!(briefing.contains(part), "{part}: {briefing}");
    }
    assert!(briefing.len() < 2_500, "{}: {briefing}", briefing.len());
}

#[test]
fn reminders_say_when_it_was_sent_which_one_it_is_and_until_when() {
    let mut world = AckWorld::briefed("immediate");
    let sent_at = world.now.rfc3339();
    let until = tasuki::core::time::rfc3339(world.now.wall_ms + 600_000);
    world.pass(8 * MINUTE);
    let view = world.view();
    let found: Vec<&Value> =
        view["ack"]["messages"].as_array().expect("messages").iter().filter(|m| m["kind"] == "reminder").collect();
    for (number, message) in (1..).zip(&found) {
        let json = &message["message"];
        assert_eq!(json["subject"], format!("[REMINDER] ACK Required for Handoff {}", world.id));
        assert_eq!((&json["to"], &json["priority"]), (&json!("dev-0b54f3f0"), &json!("urgent")));
        let content = &json["content"];
        assert_eq!(content["type"], "handoff_reminder");
        assert_eq!((&content["original_sent"], &content["reminder_number"]), (&json!(sent_at), &json!(number)));
        assert_eq!(content["final_deadline"], until);
        let text = world.texts(&format!("reminder_number: {number}")).remove(0);
        assert!(text.contains(&until) && text.contains("/opt/tasuki --home /h ack"), "{text}");
    }
    assert_eq!(found.len(), 2);
}

#[test]
fn the_escalation_says_who_what_and_how_often() {
    let mut world =
        AckWorld::briefed_with("immediate", "# Work\n", Target::Operator, Target::Command(vec!["page".to_owned()]));
    world.pass(10 * MINUTE);
    let escalation = world.told.iter().find(|json| json["content"]["type"] == "escalation").expect("it was told");
    let content = &escalation["content"];
    assert_eq!(escalation["subject"], "[EOA-ESCALATE] Replacement Agent Not Responding");
    assert_eq!((&escalation["to"], &escalation["priority"]), (&json!("command"), &json!("urgent")));
    assert_eq!(content["message"], "Replacement agent has not acknowledged handoff after 2 reminders");
    assert_eq!(
        (&content["failed_agent"], &content["replacement_agent"]),
        (&json!("dev-6f1c3a52"), &json!("dev-0b54f3f0"))
    );
    assert_eq!((&content["reminders_sent"], &content["tasks_affected"]), (&json!(2), &json!(["task-1", "task-2"])));
    assert_eq!(
        (&content["action_required"], &content["handoff_id"]),
        (&json!("provide_alternative_agent"), &json!(world.id))
    );
    assert_eq!(world.view()["ack"]["escalations"][0]["outcome"], "sent");
}

#[test]
fn each_status_has_its_consequence() {
    for (status, questions, answered, step, code) in [
        ("ready_to_proceed", json!([]), "acknowledged", "done", None),
        ("ready_to_proceed", json!(["Which?"]), "needs_clarification", "acknowledging", None),
        ("needs_clarification", json!(["Which?"]), "needs_clarification", "acknowledging", None),
        ("environment_issue", json!([]), "environment_issue", "failed", Some("ack_rejected")),
        ("rejected", json!([]), "rejected", "failed", Some("ack_rejected")),
    ] {
        let mut world = AckWorld::briefed("prepare");
        let answer = world.ack(&json!({"status": status, "questions": questions}));
        assert_eq!((&answer["status"], &answer["result"]["status"]), (&json!(200), &json!(answered)), "{answer}");
        assert_eq!(answer["result"]["late"], false);
        assert_eq!(world.step(), step, "{status}");
        assert_eq!(world.handoff().error.as_ref().map(|error| error.code.as_str()), code);
        assert_eq!(world.view()["ack"]["status"], answered);
        if let Some(error) = &world.handoff().error {
            assert!(error.message.contains("to do both tasks"), "what was said: {}", error.message);
        }
        let line = world.lines("ack").into_iter().find(|line| line["by"] == "successor").expect("a line");
        assert_eq!((&line["status"], &line["late"]), (&json!(answered), &json!(false)));
        world.pass(30 * MINUTE);
        assert!(world.texts("[REMINDER]").is_empty(), "an agent that has answered is not reminded");
    }
}

#[test]
fn done_is_told_to_the_target() {
    let mut world = AckWorld::briefed("immediate");
    world.ack(&json!({}));
    let told = world.told.iter().find(|json| json["content"]["type"] == "handoff_complete").expect("it was told");
    assert_eq!(told["content"]["replacement_status"], "acknowledged");
    assert_eq!(told["content"]["understanding"], "to do both tasks");
}

#[test]
fn every_field_is_required_and_the_right_form_is_answered_and_typed_once() {
    let wrong = [
        ("understanding", json!(null)),
        ("understanding", json!("  ")),
        ("starting_from", json!(null)),
        ("starting_from", json!(3)),
        ("questions", json!(null)),
        ("questions", json!("none")),
        ("questions", json!([""])),
        ("status", json!(null)),
        ("status", json!("ok")),
        ("handoff_id", json!(null)),
        ("agent_id", json!(null)),
        ("mood", json!("good")),
    ];
    let mut world = AckWorld::briefed("immediate");
    for (field, value) in wrong {
        let answer = world.ack(&json!({ field: value }));
        assert_eq!((&answer["status"], &answer["error"]["code"]), (&json!(422), &json!("malformed_ack")), "{answer}");
        assert!(answer["error"]["message"].as_str().is_some_and(|text| text.contains(field)), "{field}: {answer}");
        assert!(answer["error"]["hint"].as_str().is_some_and(|hint| hint.contains("\"kind\":\"ack\"")), "{answer}");
        assert_eq!(world.step(), "acknowledging");
    }
    let answer = world.ack(&json!({"status": "needs_clarification"}));
    assert_eq!(answer["error"]["field"], "questions", "{answer}");
    let forms = world.texts("did not have the right form");
    assert_eq!(forms.len(), 1, "{forms:?}");
    assert!(forms[0].contains(&world.id.to_string()) && forms[0].contains(HEIR), "{}", forms[0]);
    assert_eq!(world.ack(&json!({}))["status"], 200);
}

#[test]
fn a_malformed_ack_of_somebody_else_is_not_answered_in_the_successor_s_pane() {
    let mut world = AckWorld::briefed("immediate");
    assert_eq!(world.ack(&json!({"agent_id": DEAD, "understanding": ""}))["status"], 422);
    assert!(world.texts("right form").is_empty());
}

#[test]
fn who_may_acknowledge_what_and_when() {
    let nobody = "0b54f3f0-3c9f-4f16-8a43-4f3a6e1f2aff";
    let code = |answer: &Value| {
        (answer["status"].as_u64().unwrap_or_default(), answer["error"]["code"].as_str().unwrap_or_default().to_owned())
    };
    let mut world = AckWorld::briefed("immediate");
    assert_eq!(code(&world.ack(&json!({"handoff_id": nobody}))), (404, "no_handoff".to_owned()));
    for other in [DEAD, nobody, "not an id"] {
        assert_eq!(code(&world.ack(&json!({"agent_id": other}))), (403, "not_successor".to_owned()));
    }
    world.ack(&json!({"status": "rejected"}));
    let after = world.ack(&json!({}));
    assert_eq!(code(&after), (409, "already_ended".to_owned()));
    assert!(after["error"]["message"].as_str().is_some_and(|text| text.contains("failed (ack_rejected")), "{after}");
    world.ask(&json!({"v": 1, "kind": "handoff_abandon", "handoff_id": world.id}));
    let after = world.ack(&json!({}));
    assert!(after["error"]["message"].as_str().is_some_and(|text| text.contains("cancelled")), "{after}");
    let mut busy = AckWorld::new();
    busy.refusal = Some(Refusal::Dialog);
    busy.begin("immediate", "# Work\n");
    assert_eq!(busy.step(), "failed", "the briefing could not be typed");
    assert_eq!(code(&busy.ack(&json!({}))), (409, "already_ended".to_owned()));
    let mut early = AckWorld::new();
    early.hear(&HEIR.parse().expect("an id"), HookKind::PromptSubmit);
    early.begin("immediate", "# Work\n");
    assert_eq!(early.step(), "starting", "the successor is in a turn");
    assert_eq!(code(&early.ack(&json!({}))), (409, "not_briefed".to_owned()));
}

#[test]
fn the_same_ack_again_gets_the_same_answer() {
    for changes in
        [json!({}), json!({"status": "needs_clarification", "questions": ["Which?"]}), json!({"status": "rejected"})]
    {
        let mut world = AckWorld::briefed("immediate");
        let (first, again) = (world.ack(&changes), world.ack(&changes));
        assert_eq!(first["result"], again["result"]);
        assert_ne!(first["request_id"], again["request_id"]);
        let taken = world.lines("ack").iter().filter(|line| line["by"] == "successor").count();
        assert_eq!(taken, 1, "it is taken once");
    }
}

#[test]
fn a_late_ack_is_taken_and_said_to_be_late() {
    let mut world = AckWorld::briefed("immediate");
    world.pass(10 * MINUTE);
    assert_eq!(world.step(), "failed");
    let answer = world.ack(&json!({}));
    assert_eq!((&answer["status"], &answer["result"]["late"]), (&json!(200), &json!(true)), "{answer}");
    assert_eq!((world.step(), &world.handoff().error), ("done", &None));
    assert_eq!(world.view()["ack"]["late"], true);
    assert_eq!(world.ack(&json!({}))["result"], answer["result"]);
}

#[test]
fn late_questions_take_the_handoff_up_again() {
    let mut world = AckWorld::briefed("immediate");
    world.pass(10 * MINUTE);
    let answer = world.ack(&json!({"status": "needs_clarification", "questions": ["Which?"]}));
    assert_eq!(answer["result"]["late"], true, "{answer}");
    assert_eq!((world.step(), &world.handoff().error), ("acknowledging", &None));
    world.ask(&json!({"v": 1, "kind": "clarify", "handoff_id": world.id, "clarifications": [{"question": "Which?", "answer": "This."}]}));
    assert_eq!(world.texts("Answer: This.").len(), 1);
    world.ack(&json!({}));
    assert_eq!(world.step(), "done");
}

#[test]
fn while_questions_are_open_the_time_runs_for_those_who_must_answer() {
    let mut world = AckWorld::briefed("immediate");
    world.pass(4 * MINUTE);
    world.ack(&json!({"status": "needs_clarification", "questions": ["Which branch?"]}));
    let asked =
        world.told.iter().find(|json| json["content"]["type"] == "handoff_ack").expect("the questions are told");
    assert_eq!(asked["content"]["questions"], json!(["Which branch?"]));
    world.pass(5 * MINUTE);
    world.pass(5 * MINUTE / 2);
    assert_eq!(reminders(&world), sent(&[1, 2]));
    assert!(world.texts("[REMINDER]").is_empty(), "the agent has answered");
    world.pass(5 * MINUTE / 2);
    let error = world.handoff().error.clone().expect("it failed");
    assert_eq!(error.code, "ack_timeout");
    assert!(error.message.contains("Which branch?"), "{}", error.message);
    assert_eq!(world.lines("escalation").len(), 1);
}

/// The escalation asks for the answers, so they must be taken.
#[test]
fn questions_are_answered_even_after_the_time_for_that_is_over() {
    let mut world = AckWorld::briefed("immediate");
    world.ack(&json!({"status": "needs_clarification", "questions": ["Which branch?", "Why?"]}));
    world.pass(10 * MINUTE);
    let error = world.handoff().error.clone().expect("it failed");
    assert_eq!((world.step(), error.code.as_str()), ("failed", "ack_timeout"));
    let clarify = format!("tasuki clarify {} --answer TEXT", world.id.short());
    assert!(error.hint.contains(&clarify), "{}", error.hint);
    let escalation = world.told.iter().find(|json| json["content"]["type"] == "escalation").expect("it was told");
    assert!(escalation["hint"].to_string().contains(&clarify), "{escalation}");
    world.pass(300 * MINUTE);
    let answers = json!([{"question": "Which branch?", "answer": "main"}, {"question": "Why?", "answer": "So."}]);
    let request = json!({"v": 1, "kind": "clarify", "handoff_id": world.id, "clarifications": answers});
    let answer = world.ask(&request);
    assert_eq!(answer["result"]["status"], "clarified", "{answer}");
    assert_eq!((world.step(), &world.handoff().error), ("acknowledging", &None));
    assert_eq!(world.view()["ack"]["unanswered"], json!([]));
    assert_eq!(world.texts("Answer: main").len(), 1);
    assert_eq!(world.ask(&request)["error"]["code"], "no_questions", "it waits for the successor now");
    world.pass(10 * MINUTE);
    assert_eq!(world.step(), "failed");
    let again = world.ask(&request);
    assert_eq!(again["error"]["code"], "already_ended", "its questions were answered: {again}");
    world.ack(&json!({}));
    assert_eq!(world.step(), "done");
}

#[test]
fn answers_are_typed_and_t_begins_anew() {
    let mut world = AckWorld::briefed("immediate");
    world.ack(&json!({"status": "needs_clarification", "questions": ["Which branch?", "Why?"]}));
    world.pass(4 * MINUTE);
    let answers = json!([{"question": "Which  branch?", "answer": "main"}]);
    let answer = world.ask(&json!({"v": 1, "kind": "clarify", "handoff_id": world.id, "clarifications": answers}));
    assert_eq!(answer["result"]["status"], "clarified", "{answer}");
    let text = world.texts("Answers to your questions").remove(0).to_owned();
    assert!(text.contains("Answer: main") && text.contains("/opt/tasuki --home /h ack"), "{text}");
    assert_eq!(world.view()["ack"]["unanswered"], json!(["Why?"]));
    world.pass(5 * MINUTE - 1);
    assert!(reminders(&world).is_empty());
    world.pass(1);
    assert_eq!(reminders(&world), sent(&[1]));
    let again = world.ask(&json!({"v": 1, "kind": "clarify", "handoff_id": world.id, "clarifications": answers}));
    assert_eq!(again["error"]["code"], "no_questions", "{again}");
    world.ack(&json!({}));
    assert_eq!(world.step(), "done");
}

#[test]
fn what_late_answers_have_left_open_stays_open() {
    let mut world = AckWorld::briefed("immediate");
    world.ack(&json!({"status": "needs_clarification", "questions": ["Which branch?", "Why?"]}));
    world.pass(10 * MINUTE);
    assert_eq!(world.step(), "failed");
    let answers = json!([{"question": "Which branch?", "answer": "main"}]);
    let answer = world.ask(&json!({"v": 1, "kind": "clarify", "handoff_id": world.id, "clarifications": answers}));
    assert_eq!(answer["ok"], true, "{answer}");
    assert_eq!((world.step(), &world.view()["ack"]["unanswered"]), ("acknowledging", &json!(["Why?"])));
    // Asked again after the next time limit, the same successor still lacks that answer.
    world.pass(10 * MINUTE);
    world.ask(&json!({"v": 1, "kind": "handoff_retry", "handoff_id": world.id}));
    assert_eq!((world.step(), &world.view()["ack"]["unanswered"]), ("acknowledging", &json!(["Why?"])));
}

/// An answer to one of two questions, or to one that was never asked, leaves the others open: a person can answer them
/// later, and is told that they wait.
#[test]
fn what_the_answers_have_left_open_can_be_answered_later_and_is_not_forgotten() {
    let mut world = AckWorld::briefed("immediate");
    world.ack(&json!({"status": "needs_clarification", "questions": ["Which branch?", "Why?"]}));
    let ask = |world: &mut AckWorld, question: &str, answer: &str| {
        let clarifications = json!([{"question": question, "answer": answer}]);
        let id = world.id;
        world.ask(&json!({"v": 1, "kind": "clarify", "handoff_id": id, "clarifications": clarifications}))
    };
    let needs = |world: &AckWorld| {
        let seen = view::handoff(world.handoff(), &world.state.settings);
        let needs = needs::list(&[], &[HandoffNeeds::of(&seen)], &[], &[]);
        needs.into_iter().map(|need| (need.said, need.command)).collect::<Vec<_>>()
    };
    assert_eq!(ask(&mut world, "What is your name?", "Kai")["ok"], true);
    assert_eq!(world.view()["ack"]["unanswered"], json!(["Which branch?", "Why?"]));
    assert_eq!(ask(&mut world, "Which branch?", "main")["ok"], true);
    assert_eq!(world.view()["ack"]["unanswered"], json!(["Why?"]));
    let command = format!("tasuki clarify {} --answer …", world.id.short());
    assert_eq!(needs(&world), [("No answer was given to: Why?".to_owned(), command)]);
    let again = ask(&mut world, "Which branch?", "main");
    assert_eq!(again["error"]["code"], "no_questions", "the successor has that answer: {again}");
    assert_eq!(ask(&mut world, "Why?", "So.")["ok"], true);
    assert_eq!(world.view()["ack"]["unanswered"], json!([]));
    assert_eq!((needs(&world), world.texts("Answer: main").len(), world.texts("Answer: So.").len()), (vec![], 1, 1));
    world.ack(&json!({}));
    assert_eq!(world.step(), "done");
}

#[test]
fn a_better_document_takes_the_first_one_s_place_and_the_first_one_is_kept() {
    let mut world = AckWorld::briefed("immediate");
    let first = world.handoff().file_path.clone();
    world.ack(&json!({"status": "needs_clarification", "questions": ["Which?"]}));
    world.ask_as("c1", &json!({"v": 1, "kind": "clarify", "handoff_id": world.id,
        "clarifications": [{"question": "Which?", "answer": "This."}], "document": {"text": "---\ncheckpoint: step 9\n---\n# Better\n"}}));
    let path = world.handoff().file_path.clone();
    assert_ne!(path, first);
    assert_eq!(world.answers["c1"]["result"]["file_path"], path.as_str());
    let view = world.view();
    assert_eq!(view["ack"]["former_documents"][0]["file_path"], first.as_str());
    assert_eq!((&view["ack"]["checkpoint"], view["bytes"].as_u64()), (&json!("step 9"), Some(36)));
    assert!(view["injection_prompt"].as_str().is_some_and(|text| text.contains(&path)));
    assert!(world.texts("it was brought up to date")[0].contains(&path));
    // Who comes after: another successor of this handoff, and the successor of this one.
    assert_eq!(world.handoff().checkpoint.as_deref(), Some("step 9"));
    let chain = &world.state.agents[&HEIR.parse().expect("an id")].chain;
    let earlier: Vec<_> =
        chain.earlier.iter().map(|earlier| (earlier.file_path.as_str(), earlier.checkpoint.as_deref())).collect();
    assert_eq!(earlier, [(path.as_str(), Some("step 9"))]);
}

#[test]
fn what_a_successor_lacks_is_answered_and_t_begins_again() {
    let mut world = AckWorld::briefed("immediate");
    world.ack(&json!({"status": "environment_issue", "understanding": "there is no docker here"}));
    let error = world.handoff().error.clone().expect("it failed");
    assert_eq!((world.step(), error.code.as_str()), ("failed", "ack_rejected"));
    assert!(error.hint.contains("tasuki clarify"), "{}", error.hint);
    world.pass(30 * MINUTE);
    let answers = json!([{"question": "there is no docker here", "answer": "Run the tests with podman."}]);
    let clarify = json!({"v": 1, "kind": "clarify", "handoff_id": world.id, "clarifications": answers});
    let answer = world.ask(&clarify);
    assert_eq!(answer["result"]["status"], "clarified", "{answer}");
    assert_eq!((world.step(), &world.handoff().error), ("acknowledging", &None));
    assert_eq!(world.view()["ack"]["status"], "pending");
    let text = world.texts("Answer: Run the tests with podman.").remove(0).to_owned();
    assert!(text.contains("Question: there is no docker here") && text.contains("--home /h ack"), "{text}");
    world.pass(5 * MINUTE - 1);
    assert!(reminders(&world).is_empty());
    world.pass(1);
    assert_eq!(reminders(&world), sent(&[1]));
    assert_eq!(world.ask(&clarify)["error"]["code"], "no_questions", "it waits for the successor now");
    world.ack(&json!({}));
    assert_eq!(world.step(), "done");
}

#[test]
fn what_a_successor_lacks_is_answered_with_a_better_document_too() {
    let mut world = AckWorld::briefed("immediate");
    world.ack(&json!({"status": "environment_issue"}));
    let clarify = json!({"v": 1, "kind": "clarify", "handoff_id": world.id,
        "clarifications": [{"question": "to do both tasks", "answer": "See there."}], "document": {"text": "# Better\n"}});
    world.put_there = Some("# Somebody else's\n".to_owned());
    world.ask_as("c1", &clarify);
    assert_eq!(world.answers["c1"]["error"]["code"], "document_unsafe", "{:?}", world.answers["c1"]);
    let view = world.view();
    assert_eq!((world.step(), &view["ack"]["status"]), ("acknowledging", &json!("needs_clarification")));
    assert_eq!(view["ack"]["understanding"], "to do both tasks", "an answer is still due");
    world.put_there = None;
    world.ask_as("c2", &clarify);
    assert_eq!(world.answers["c2"]["result"]["status"], "clarified", "{:?}", world.answers["c2"]);
    assert_eq!(world.texts("it was brought up to date").len(), 1);
}

#[test]
fn only_a_living_successor_that_lacks_something_is_answered_after_its_failure() {
    let clarify = |world: &mut AckWorld| {
        let answers = json!([{"question": "Why?", "answer": "So."}]);
        let answer = world.ask(&json!({"v": 1, "kind": "clarify", "handoff_id": world.id, "clarifications": answers}));
        answer["error"]["code"].as_str().unwrap_or_default().to_owned()
    };
    let mut rejected = AckWorld::briefed("immediate");
    rejected.ack(&json!({"status": "rejected"}));
    assert_eq!(clarify(&mut rejected), "already_ended");
    let mut dead = AckWorld::briefed("immediate");
    dead.ack(&json!({"status": "environment_issue"}));
    dead.state.agents.get_mut(&HEIR.parse().expect("an id")).expect("it is there").state = AgentState::Ended;
    assert_eq!((clarify(&mut dead).as_str(), dead.step()), ("successor_ended", "failed"));
    let mut silent = AckWorld::briefed("immediate");
    silent.pass(10 * MINUTE);
    assert_eq!((clarify(&mut silent).as_str(), silent.step()), ("already_ended", "failed"));
    let mut abandoned = AckWorld::briefed("immediate");
    abandoned.ack(&json!({"status": "environment_issue"}));
    abandoned.ask(&json!({"v": 1, "kind": "handoff_abandon", "handoff_id": abandoned.id}));
    assert_eq!(clarify(&mut abandoned), "already_ended");
}

#[test]
fn another_text_under_the_better_documents_name_is_refused() {
    let mut world = AckWorld::briefed("immediate");
    let first = world.handoff().file_path.clone();
    world.ack(&json!({"status": "needs_clarification", "questions": ["Which?"]}));
    world.put_there = Some("# Somebody else's\n".to_owned());
    world.ask_as(
        "c1",
        &json!({"v": 1, "kind": "clarify", "handoff_id": world.id,
        "clarifications": [{"question": "Which?", "answer": "This."}], "document": {"text": "# Better\n"}}),
    );
    assert_eq!(world.answers["c1"]["error"]["code"], "document_unsafe", "{:?}", world.answers["c1"]);
    assert_eq!(world.handoff().file_path, first);
    assert!(world.texts("it was brought up to date").is_empty(), "{:?}", world.typed);
}

#[test]
fn a_checkpoint_that_differs_is_shown_side_by_side() {
    let document = "---\ntitle: x\ncheckpoint: \"Step  2\"\n---\n# Work\n";
    let mut world = AckWorld::briefed_with("immediate", document, Target::Operator, Target::Operator);
    world.ack(&json!({}));
    assert!(
        world.handoff().warnings.is_empty(),
        "case and white space make no difference: {:?}",
        world.handoff().warnings
    );
    let mut world = AckWorld::briefed_with("immediate", document, Target::Operator, Target::Operator);
    world.ack(&json!({"starting_from": "step 3"}));
    let warning = &world.handoff().warnings[0];
    assert!(warning.contains("“step 3”") && warning.contains("“Step 2”"), "{warning}");
    let told = world.told.iter().find(|json| json["documented"] == "Step 2").expect("the operator is told");
    assert_eq!(told["starting_from"], "step 3");
    assert_eq!(world.step(), "done", "it stops nothing");
}

#[test]
fn the_orchestrator_is_told_both_checkpoints_if_they_differ() {
    let document = "---\ncheckpoint: step 2\n---\n# Work\n";
    for (starting_from, documented) in [("from `Step 2`.", Value::Null), ("step 3", json!("step 2"))] {
        let orchestrator = Target::Command(vec!["page".to_owned()]);
        let mut world = AckWorld::briefed_with("immediate", document, orchestrator, Target::Operator);
        world.ack(&json!({"starting_from": starting_from}));
        let told = world.told.iter().find(|json| json["content"]["type"] == "handoff_ack").expect("it is told");
        assert_eq!(told["content"]["documented_checkpoint"], documented, "{told}");
        let point = "starting_from matches the documented checkpoint";
        let view = world.view();
        let points = view["checklist"].as_array().expect("points");
        let found = points.iter().find(|seen| seen["point"] == point).expect("the point");
        assert_eq!(found["at"].is_string(), documented.is_null(), "{found}");
        assert_eq!(world.handoff().warnings.is_empty(), documented.is_null());
    }
}

#[test]
fn the_override_goes_on_with_a_documented_delay() {
    for wait in [0, 10 * MINUTE] {
        let mut world = AckWorld::briefed("immediate");
        world.pass(wait);
        let asked = json!({"v": 1, "kind": "ack_override", "handoff_id": world.id, "reason": "I see it work"});
        let answer = world.ask(&asked);
        assert_eq!(answer["result"]["status"], "acknowledged_with_delay", "{answer}");
        assert_eq!(world.step(), "done");
        let view = world.view();
        assert_eq!(
            (&view["ack"]["status"], &view["ack"]["override"]["reason"]),
            (&json!("acknowledged_with_delay"), &json!("I see it work"))
        );
        assert_eq!(world.ask(&asked)["error"]["code"], "already_ended");
    }
}

#[test]
fn the_orchestrators_agent_may_override_and_no_other_agent_may() {
    const LEAD: &str = "3c2d6a52-8f0e-4d5b-9a57-2f64c1f6f0bb";
    let with_lead = |orchestrator: Target| {
        let mut world = AckWorld::briefed_with("immediate", "# Work\n", orchestrator, Target::Operator);
        let mut lead = world.state.agents[&HEIR.parse().expect("an id")].clone();
        lead.agent_id = LEAD.parse().expect("an id");
        lead.persona_slug = "lead".parse().ok();
        lead.handoff_id = None;
        world.state.agents.insert(lead.agent_id, lead);
        world
    };
    let ask = |world: &mut AckWorld, agent_id: &str| {
        world.ask(&json!({"v": 1, "kind": "ack_override", "handoff_id": world.id, "reason": "I see it work", "agent_id": agent_id}))
    };
    for who in ["lead", LEAD] {
        let mut world = with_lead(Target::Agent(who.to_owned()));
        for other in [HEIR, DEAD, "0b54f3f0-3c9f-4f16-8a43-4f3a6e1f2aff", "lead"] {
            let refused = ask(&mut world, other);
            let seen = (&refused["status"], &refused["error"]["code"], &refused["error"]["field"]);
            assert_eq!(seen, (&json!(403), &json!("not_orchestrator"), &json!("agent_id")), "{other}");
        }
        assert_eq!(ask(&mut world, LEAD)["result"]["status"], "acknowledged_with_delay");
        assert_eq!((world.step(), &world.view()["ack"]["override"]["by"]), ("done", &json!(LEAD)));
        assert!(world.lines("ack").iter().any(|line| line["by"] == "orchestrator"));
    }
    for other in [Target::Operator, Target::Command(vec!["page".to_owned()]), Target::Agent("dev".to_owned())] {
        let mut world = with_lead(other);
        assert_eq!(ask(&mut world, LEAD)["error"]["code"], "not_orchestrator");
        // A successor never overrides its own acknowledgement.
        assert_eq!(ask(&mut world, HEIR)["error"]["code"], "not_orchestrator");
        world.ask(&json!({"v": 1, "kind": "ack_override", "handoff_id": world.id, "reason": "I see it work"}));
        assert_eq!((world.step(), &world.view()["ack"]["override"]["by"]), ("done", &json!("operator")));
    }
}

#[test]
fn a_reminder_waits_until_the_agent_can_take_it_and_is_missed_if_it_never_can() {
    let mut world = AckWorld::briefed("immediate");
    let heir = HEIR.parse().expect("an id");
    world.hear(&heir, HookKind::PromptSubmit);
    world.pass(5 * MINUTE);
    assert_eq!(reminders(&world), [(1, "waiting".to_owned())]);
    world.pass(MINUTE);
    world.hear(&heir, HookKind::Stop);
    world.go_on();
    assert_eq!(reminders(&world), sent(&[1]));
    world.hear(&heir, HookKind::PromptSubmit);
    world.pass(3 * MINUTE / 2);
    assert_eq!(reminders(&world)[1], (2, "waiting".to_owned()), "the final one counts from when the first was due");
    world.pass(5 * MINUTE / 2);
    assert_eq!(world.step(), "failed");
    assert_eq!(reminders(&world)[1], (2, "missed".to_owned()));
    world.hear(&heir, HookKind::Stop);
    world.go_on();
    assert_eq!(world.texts("[REMINDER]").len(), 1, "what was missed is never typed");
    let escalation = world.told.iter().find(|json| json["content"]["type"] == "escalation").expect("told");
    assert_eq!(escalation["content"]["reminders_sent"], 1);
}

#[test]
fn a_draft_or_a_dialog_puts_a_reminder_off_with_growing_pauses() {
    for refusal in [Refusal::Draft, Refusal::Dialog] {
        let mut world = AckWorld::briefed("immediate");
        world.refusal = Some(refusal);
        world.pass(5 * MINUTE + 30_000);
        let tries = world.lines("delivery").iter().filter(|line| line["purpose"] == "message").count();
        assert!((3..=6).contains(&tries), "{tries} tries in half a minute");
        assert_eq!(reminders(&world), [(1, "waiting".to_owned())]);
        world.refusal = None;
        world.pass(MINUTE);
        assert_eq!(reminders(&world), sent(&[1]));
        assert_eq!(world.texts("[REMINDER]").len(), 1);
    }
}

#[test]
fn restarts_sleep_and_a_clock_that_jumps_neither_lose_nor_repeat_a_reminder() {
    let mut world = AckWorld::briefed("immediate");
    for (minutes_by_halves, expected) in [(8, 0), (2, 1), (4, 1), (1, 2), (4, 2)] {
        world.restart();
        world.now.wall_ms += 315_000_000_000;
        world.pass(minutes_by_halves * MINUTE / 2);
        assert_eq!(reminders(&world).len(), expected);
        assert_eq!(world.texts("[REMINDER]").len(), expected);
    }
    world.restart();
    world.pass(MINUTE / 2);
    assert_eq!((world.step(), world.lines("escalation").len()), ("failed", 1));
}

#[test]
fn a_reminder_that_is_noticed_late_moves_none_of_those_after_it() {
    let mut world = AckWorld::briefed("immediate");
    world.sleep(6 * MINUTE);
    world.pass(0);
    assert_eq!(reminders(&world), sent(&[1]));
    world.pass(3 * MINUTE / 2);
    assert_eq!(reminders(&world), sent(&[1, 2]), "7 and a half minutes after the briefing");
    world.pass(5 * MINUTE / 2);
    assert_eq!(world.step(), "failed", "10 minutes after the briefing");
}

#[test]
fn after_a_long_sleep_each_reminder_still_has_its_time() {
    let mut world = AckWorld::briefed("immediate");
    world.sleep(8 * 60 * MINUTE);
    world.pass(0);
    assert_eq!(reminders(&world), sent(&[1]), "not all at once");
    world.pass(5 * MINUTE / 2);
    assert_eq!(reminders(&world), sent(&[1, 2]));
    world.pass(5 * MINUTE / 2);
    assert_eq!(world.step(), "failed");
}

#[test]
fn a_new_boot_goes_on_with_what_is_left() {
    let mut world = AckWorld::briefed("immediate");
    world.pass(4 * MINUTE);
    world.sleep(0);
    world.now.boot = 2;
    world.now.boot_ms = 1_000;
    world.restart();
    world.now.wall_ms += 315_000_000_000;
    world.pass(MINUTE - 1);
    assert!(reminders(&world).is_empty());
    world.pass(1);
    assert_eq!(reminders(&world).len(), 1);
}

#[test]
fn what_does_not_reach_the_target_is_an_error_of_its_own() {
    let mut world =
        AckWorld::briefed_with("immediate", "# Work\n", Target::Operator, Target::Command(vec!["page".to_owned()]));
    world.notify = Outcome::Failed { why: "no such program".to_owned() };
    world.pass(10 * MINUTE);
    assert_eq!(world.view()["ack"]["escalations"][0]["outcome"], "failed");
    let codes: Vec<&Value> =
        world.errors.iter().filter(|error| error["step"].is_null()).map(|error| &error["code"]).collect();
    assert_eq!(codes, ["escalation_failed"]);
    assert_eq!(world.lines("escalation")[0]["outcome"], "failed");
    assert_eq!(world.lines("handoff.failed").len(), 1);
    let mut world = AckWorld::briefed_with("immediate", "# Work\n", Target::Operator, Target::Agent("lead".to_owned()));
    world.pass(10 * MINUTE);
    let view = world.view();
    let escalation = &view["ack"]["escalations"][0];
    assert_eq!((&escalation["to"], &escalation["outcome"]), (&json!("agent:lead"), &json!("failed")));
    assert_eq!(escalation["reason"], "no agent lead is running");
}

#[test]
fn a_retry_asks_the_same_successor_again() {
    for status in ["rejected", "environment_issue"] {
        let mut world = AckWorld::briefed("immediate");
        world.ack(&json!({"status": status}));
        let retry = json!({"v": 1, "kind": "handoff_retry", "handoff_id": world.id});
        assert_eq!(world.ask(&retry)["result"]["step"], "acknowledging");
        assert_eq!(world.texts("asks you again").len(), 1);
        assert_eq!(world.texts("Here is your handoff").len(), 1, "it is briefed once");
        world.pass(5 * MINUTE);
        assert_eq!(reminders(&world), sent(&[1]));
        world.ack(&json!({}));
        assert_eq!(world.step(), "done");
    }
}

#[test]
fn the_checklist_has_every_point_with_its_time_or_its_reason() {
    let mut world = AckWorld::briefed("immediate");
    let points = |world: &AckWorld| -> Vec<Value> { world.view()["checklist"].as_array().expect("points").clone() };
    assert_eq!(points(&world).len(), 6 + 7 + 6);
    for point in &points(&world)[6..] {
        assert_ne!(point["at"].is_string(), point["reason"].is_string(), "{point}");
    }
    world.ack(&json!({}));
    let reached: Vec<String> = points(&world)[6..]
        .iter()
        .filter(|p| p["at"].is_string())
        .map(|p| p["point"].as_str().expect("a text").to_owned())
        .collect();
    assert_eq!(reached.len(), 10, "{reached:?}");
    let why =
        |what: &str| points(&world).iter().find(|point| point["point"] == what).map(|point| point["reason"].clone());
    assert_eq!(
        why("starting_from matches the documented checkpoint"),
        Some(json!("the document states no checkpoint"))
    );
    assert!(
        why("understanding is accurate").is_some_and(|why| why.as_str().is_some_and(|why| why.contains("a person")))
    );
}
