//! Where a document is published, decided without a machine: defaults, targets that are named later, and what stands
//! against them.

use super::support::ack_world::{AckWorld, HEIR, MINUTE};
use serde_json::{Value, json};
use tasuki::core::effect::{Outcome, Posted, PublishFault, SecretFound};
use tasuki::core::hook::HookKind;
use tasuki::core::persona::PublishDefault;
use tasuki::core::request::PublishTarget;

fn target(text: &str) -> PublishTarget {
    PublishTarget::read_default(text).expect("a target")
}

/// A handoff that is done, and that asked for publishing as `options` say.
fn done(options: Value) -> AckWorld {
    let mut world = AckWorld::new();
    world.options = options;
    world.begin("immediate", "# Work\n");
    world.ack(&json!({}));
    assert_eq!(world.step(), "done");
    world
}

#[allow(clippy::needless_pass_by_value, reason = "each caller makes the fields for this call")]
fn publish(world: &mut AckWorld, more: Value) -> Value {
    let mut request = json!({"v": 1, "kind": "publish", "handoff_id": world.id});
    more.as_object().into_iter().flatten().for_each(|(name, value)| request[name] = value.clone());
    world.ask(&request)
}

fn code(answer: &Value) -> (u64, &str) {
    (answer["status"].as_u64().unwrap_or_default(), answer["error"]["code"].as_str().unwrap_or_default())
}

/// Where it was uploaded, in order: the number of each publication and its target.
fn uploads(world: &AckWorld) -> Vec<(u32, String)> {
    world.uploads.iter().map(|plan| (plan.number, plan.target.to_string())).collect()
}

fn held() -> Outcome {
    let secret = SecretFound { kind: "github-pat".to_owned(), line: 3, last: "wxyz".to_owned(), start: 0, end: 4 };
    Outcome::SecretsFound(vec![secret])
}

#[test]
fn a_document_that_was_never_to_be_published_is_published_where_a_person_says() {
    let mut world = done(json!({}));
    let refused = publish(&mut world, json!({}));
    assert_eq!(code(&refused), (409, "not_asked"));
    assert!(refused["error"]["hint"].as_str().is_some_and(|hint| hint.contains("--to owner/repo#42")), "{refused}");
    let answer = publish(&mut world, json!({"to": {"issue": "o/r#42"}}));
    assert_eq!(answer["result"]["status"], "publishing", "{answer}");
    assert_eq!(uploads(&world), [(1, "o/r#42".to_owned())]);
    let view = world.view();
    assert_eq!((&view["publish"]["state"], &view["publish"]["url"]), (&json!("published"), &json!("https://x/1")));
    assert_eq!(view["publish"]["target"]["issue"], "o/r#42");
    // The same again: it is there.
    let again = publish(&mut world, json!({"to": {"issue": "o/r#42"}}));
    assert_eq!((&again["result"]["status"], &again["result"]["url"]), (&json!("published"), &json!("https://x/1")));
    // Elsewhere: with a mark of its own.
    publish(&mut world, json!({"to": {"gist": true}}));
    assert_eq!(uploads(&world)[1..], [(2, "a secret gist".to_owned())]);
    assert_eq!(world.view()["publish"]["former_urls"], json!(["https://x/1"]));
}

#[test]
fn nothing_is_published_before_the_record() {
    let mut world = AckWorld::new();
    world.begin_with("immediate", "# Work\n", true);
    assert_eq!(world.step(), "checking", "a person must accept the document");
    for more in [json!({"to": {"gist": true}}), json!({"to": {"issue": "o/r#1"}})] {
        assert_eq!(code(&publish(&mut world, more)), (409, "no_record"));
    }
    assert!(world.uploads.is_empty() && world.handoff().publish.is_none());
}

#[test]
fn a_wrong_target_is_refused_by_its_field() {
    let mut world = done(json!({}));
    for (to, field) in [
        (json!({}), "to"),
        (json!({"issue": "o/r"}), "to.issue"),
        (json!({"gist": false}), "to.gist"),
        (json!({"gist": true, "fallback": "gist"}), "to.fallback"),
        (json!({"issue": "https://elsewhere.example/o/r/issues/1"}), "to.issue"),
    ] {
        let refused = publish(&mut world, json!({"to": to}));
        assert_eq!((code(&refused), &refused["error"]["field"]), ((400, "bad_request"), &json!(field)), "{refused}");
    }
    let refused = publish(&mut world, json!({"to": {"gist": true}, "assume": "published"}));
    assert_eq!(refused["error"]["field"], "assume", "{refused}");
    assert!(world.uploads.is_empty());
}

#[test]
fn a_default_holds_for_each_handoff_unless_the_persona_or_the_request_says_otherwise() {
    let (issue, gist) = (Some(target("o/r#7")), PublishDefault::To(target("gist")));
    for (config, persona, options, expected) in [
        (None, None, json!({}), None),
        (issue.clone(), None, json!({}), Some("o/r#7")),
        (issue.clone(), Some(gist.clone()), json!({}), Some("a secret gist")),
        (None, Some(gist.clone()), json!({}), Some("a secret gist")),
        (issue.clone(), Some(PublishDefault::No), json!({}), None),
        (issue.clone(), None, json!({"publish": false}), None),
        (issue.clone(), Some(gist.clone()), json!({"publish": false}), None),
        (issue.clone(), Some(gist), json!({"publish": {"issue": "o/r#9"}}), Some("o/r#9")),
        (issue, Some(PublishDefault::No), json!({"publish": {"issue": "o/r#9"}}), Some("o/r#9")),
    ] {
        let mut world = AckWorld::new();
        world.state.settings.publish.to.clone_from(&config);
        world.persona_publish.clone_from(&persona);
        world.options = options.clone();
        world.begin("immediate", "# Work\n");
        let found: Vec<String> = uploads(&world).into_iter().map(|(_, target)| target).collect();
        assert_eq!(found.first().map(String::as_str), expected, "{config:?} {persona:?} {options}");
    }
    // A handoff that began before there was a default, and that a person wants published.
    let mut world = done(json!({}));
    world.persona_publish = Some(PublishDefault::To(target("gist")));
    publish(&mut world, json!({}));
    assert_eq!(uploads(&world), [(1, "a secret gist".to_owned())]);
}

#[test]
fn true_is_no_target_and_neither_is_a_word() {
    for (publish, message) in [(json!(true), "true names no target"), (json!("o/r#42"), "an object with issue or gist")]
    {
        let mut world = AckWorld::new();
        let request = json!({"v": 1, "kind": "handoff", "agent_id": super::support::ack_world::DEAD, "reason": "r",
            "author": "salvage", "publish": publish});
        let refused = world.ask(&request);
        assert_eq!((code(&refused), &refused["error"]["field"]), ((400, "bad_request"), &json!("publish")));
        assert!(refused["error"]["message"].as_str().is_some_and(|text| text.contains(message)), "{refused}");
    }
}

#[test]
fn credentials_hold_a_target_that_is_named_later_too() {
    let mut world = done(json!({}));
    world.copied = Some(held());
    publish(&mut world, json!({"to": {"issue": "o/r#42"}}));
    assert_eq!(world.view()["publish"]["state"], "held");
    // Another place does not let them out either.
    assert_eq!(code(&publish(&mut world, json!({"to": {"gist": true}}))), (409, "secrets_found"));
    assert!(world.uploads.is_empty());
    world.copied = None;
    publish(&mut world, json!({"to": {"gist": true}, "as": "redacted"}));
    assert_eq!(uploads(&world), [(2, "a secret gist".to_owned())]);
    // What was allowed for that place is not allowed for the next one.
    world.copied = Some(held());
    publish(&mut world, json!({"to": {"issue": "o/r#42"}}));
    assert_eq!(world.view()["publish"]["state"], "held");
    let lines = world.lines("publish");
    let said = |state: &str| lines.iter().rev().find(|line| line["state"] == state).expect("a line")["as"].clone();
    assert_eq!((said("published"), said("held")), (json!("redacted"), Value::Null));
}

/// The operator says that the document is there. An upload would put it there twice.
#[test]
fn what_the_operator_has_seen_counts_only_where_it_is_in_doubt() {
    for assume in ["published", "not_published"] {
        let mut world = done(json!({}));
        assert_eq!(code(&publish(&mut world, json!({"assume": assume}))), (409, "not_in_doubt"), "never asked for");
        for is_retryable in [true, false] {
            let mut world = done(json!({}));
            let fault = PublishFault { code: "gh_forbidden".to_owned(), is_retryable, ..PublishFault::default() };
            world.posted = Some(Posted::Failed(fault));
            publish(&mut world, json!({"to": {"issue": "o/r#42"}}));
            let (before, uploads) = (world.view()["publish"].clone(), uploads(&world).len());
            world.posted = None;
            let refused = publish(&mut world, json!({"assume": assume}));
            assert_eq!(code(&refused), (409, "not_in_doubt"), "{refused}");
            assert_eq!((&world.view()["publish"], self::uploads(&world).len()), (&before, uploads), "{assume}");
        }
    }
    let mut world = done(json!({"publish": {"gist": true}}));
    assert_eq!(code(&publish(&mut world, json!({"assume": "not_published"}))), (409, "not_in_doubt"));
    assert_eq!(publish(&mut world, json!({"assume": "published"}))["result"]["status"], "published");
    assert_eq!(uploads(&world).len(), 1);
}

#[test]
fn another_target_waits_until_nothing_is_under_way_or_in_doubt() {
    let fault = |maybe_stored, again| {
        Posted::Failed(PublishFault {
            code: "gh_server".to_owned(),
            maybe_stored,
            is_retryable: again,
            ..PublishFault::default()
        })
    };
    let gist = json!({"to": {"gist": true}});
    let mut retries = done(json!({}));
    retries.posted = Some(fault(false, true));
    publish(&mut retries, json!({"to": {"issue": "o/r#42"}}));
    assert_eq!(retries.view()["publish"]["state"], "retrying");
    assert_eq!(code(&publish(&mut retries, gist.clone())), (409, "publish_in_progress"));
    let mut doubtful = done(json!({}));
    doubtful.posted = Some(fault(true, false));
    publish(&mut doubtful, json!({"to": {"issue": "o/r#42"}}));
    assert_eq!(doubtful.view()["publish"]["state"], "in_doubt");
    let hint = doubtful.view()["publish"]["error"]["hint"].to_string();
    let named = |word: &str| hint.contains(&format!(" --assume {word}"));
    assert!(named("published;") && named("not-published") && !hint.contains('|'), "a shell's pipe: {hint}");
    assert_eq!(code(&publish(&mut doubtful, gist.clone())), (409, "in_doubt"));
    let mut failed = done(json!({}));
    failed.posted = Some(fault(false, false));
    publish(&mut failed, json!({"to": {"issue": "o/r#42"}}));
    assert_eq!(failed.view()["publish"]["state"], "failed");
    failed.posted = None;
    publish(&mut failed, gist);
    assert_eq!(failed.view()["publish"]["state"], "published");
}

/// A search asks the server for what is newer than the first attempt. A time that has not come yet would hide
/// everything.
#[test]
fn a_clock_that_was_set_back_after_the_first_attempt_hides_no_upload() {
    let mut world = done(json!({}));
    let fault = PublishFault { code: "gh_timeout".to_owned(), is_retryable: true, ..PublishFault::default() };
    world.posted = Some(Posted::Failed(fault));
    publish(&mut world, json!({"to": {"gist": true}}));
    world.now.wall_ms -= 3 * 24 * 3_600_000;
    world.pass(MINUTE);
    let plan = &world.uploads[1];
    assert!(plan.look_first && plan.since_ms.is_some_and(|since| since < world.now.wall_ms), "{plan:?}");
}

/// A handoff whose published document was replaced by a better one; the better one's upload is what `posted` says.
fn clarified(posted: Option<Posted>) -> AckWorld {
    let mut world = AckWorld::new();
    world.options = json!({"publish": {"gist": true}});
    world.begin("immediate", "# Work\n");
    world.ack(&json!({"status": "needs_clarification", "questions": ["Which?"]}));
    world.posted = posted;
    world.ask(&json!({"v": 1, "kind": "clarify", "handoff_id": world.id,
        "clarifications": [{"question": "Which?", "answer": "This."}], "document": {"text": "# Better\n"}}));
    world
}

fn sent_addresses(world: &AckWorld) -> Vec<Value> {
    let view = world.view();
    let messages = view["ack"]["messages"].as_array().expect("messages").clone();
    messages.into_iter().filter(|message| message["kind"] == "document_published").collect()
}

#[test]
fn the_successor_gets_the_address_of_a_better_document_once() {
    let mut world = clarified(None);
    world.go_on();
    let told = sent_addresses(&world);
    assert_eq!((told.len(), &told[0]["outcome"]), (1, &json!("sent")), "{told:?}");
    assert_eq!(told[0]["message"]["content"]["updated_handoff_url"], "https://x/2");
    let text = world.texts("updated_handoff_url: https://x/2").remove(0).to_owned();
    assert!(text.contains("/opt/tasuki --home /h ack"), "it is still to acknowledge: {text}");
    world.ack(&json!({}));
    publish(&mut world, json!({}));
    assert_eq!(world.texts("https://x/2").len(), 1, "nothing of it is said again");
}

#[test]
fn a_successor_that_works_already_gets_the_address_when_it_is_idle() {
    let fault = PublishFault { code: "gh_server".to_owned(), is_retryable: true, ..PublishFault::default() };
    let mut world = clarified(Some(Posted::Failed(fault)));
    let heir = HEIR.parse().expect("an id");
    world.hear(&heir, HookKind::PromptSubmit);
    world.ack(&json!({}));
    assert_eq!((world.step(), sent_addresses(&world).len()), ("done", 0));
    world.posted = None;
    world.pass(MINUTE);
    assert_eq!(sent_addresses(&world)[0]["outcome"], "open", "it is in a turn");
    world.hear(&heir, HookKind::Stop);
    world.go_on();
    assert_eq!(sent_addresses(&world)[0]["outcome"], "sent");
    let texts = world.texts("updated_handoff_url: https://x/2");
    assert_eq!((texts.len(), texts[0].contains("ack --understanding")), (1, false), "{texts:?}");
}

/// The successor has asked again and was answered, with a third document, in the turn in which it reads the answers.
fn clarified_again_in_a_turn() -> AckWorld {
    let mut world = clarified(None);
    world.hear(&HEIR.parse().expect("an id"), HookKind::PromptSubmit);
    world.ack(&json!({"status": "needs_clarification", "questions": ["And then?"]}));
    world.ask(&json!({"v": 1, "kind": "clarify", "handoff_id": world.id,
        "clarifications": [{"question": "And then?", "answer": "That."}], "document": {"text": "# Best\n"}}));
    world
}

#[test]
fn an_address_that_waits_when_the_ack_comes_is_not_lost() {
    let mut world = clarified_again_in_a_turn();
    assert_eq!(sent_addresses(&world)[1]["outcome"], "waiting");
    world.ack(&json!({}));
    assert_eq!((world.step(), &sent_addresses(&world)[1]["outcome"]), ("done", &json!("open")));
    world.hear(&HEIR.parse().expect("an id"), HookKind::Stop);
    world.go_on();
    assert_eq!(world.texts("updated_handoff_url: https://x/3").len(), 1);
    assert!(world.errors.is_empty(), "{:?}", world.errors);
}

#[test]
fn a_successor_that_never_has_time_is_left_alone_and_nobody_is_troubled() {
    let mut world = clarified_again_in_a_turn();
    world.ack(&json!({}));
    world.pass(11 * MINUTE);
    assert_eq!(sent_addresses(&world)[1]["outcome"], "missed");
    assert!(world.errors.is_empty(), "{:?}", world.errors);
}

#[test]
fn an_issue_that_refuses_the_comment_is_asked_again_with_a_gist_as_fallback() {
    let mut world = done(json!({}));
    let fault = PublishFault { code: "gh_too_large".to_owned(), refused: true, ..PublishFault::default() };
    world.posted = Some(Posted::Failed(fault));
    publish(&mut world, json!({"to": {"issue": "o/r#42"}}));
    let error = &world.view()["publish"]["error"];
    assert!(error["hint"].as_str().is_some_and(|hint| hint.contains("--to gist")), "{error}");
    world.uploads.clear();
    publish(&mut world, json!({"to": {"issue": "o/r#42", "fallback": "gist"}}));
    assert_eq!(uploads(&world), [(1, "o/r#42".to_owned()), (1, "a secret gist".to_owned())]);
}
