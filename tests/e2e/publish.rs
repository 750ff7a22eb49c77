//! Publishing by the real `gh`, against a server of our own on a Unix socket.

use super::support::github::{Does, GitHub};
use super::support::schema;
use super::support::stage::Stage;
use super::support::tally;
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::fs;

/// Limits of seconds, so that a server that does not answer is met soon, and gh is not given up on a busy machine.
const CONFIG: &str = "[publish]\ntimeout = \"6s\"\nretry_after = [\"200ms\", \"200ms\"]\n";
pub(crate) const ISSUE: &str = "o/r#42";

/// A stage with a server, and an idle agent.
pub(crate) struct Play {
    pub(crate) stage: Stage,
    pub(crate) github: GitHub,
    pub(crate) agent: String,
}

impl Play {
    /// None where there is no `gh`.
    pub(crate) fn new() -> Option<Play> {
        Play::with_config(CONFIG)
    }

    pub(crate) fn with_config(config: &str) -> Option<Play> {
        let github = GitHub::start()?;
        let stage = Stage::without_sidecar(config);
        github.start_sidecar(&stage);
        let agent = stage.agent("dev");
        Some(Play { stage, github, agent })
    }

    /// Hands the agent off with a document; gives the handoff's id.
    pub(crate) fn hand_off(&self, document: &str, publish: &Value) -> String {
        self.stage.hand_off_with(
            &self.agent,
            &json!({"author": "provided", "document": {"text": document}, "publish": publish}),
        )
    }

    /// Waits until the publishing is in that state; gives the handoff's view.
    pub(crate) fn until(&self, handoff: &str, state: &str) -> Value {
        self.stage.wait_for(&format!("publishing is {state}"), || {
            let view = self.stage.handoff_view(handoff);
            let seen = view["publish"]["state"].as_str().unwrap_or_default().to_owned();
            let is_end = ["published", "failed", "held", "in_doubt"].contains(&seen.as_str());
            assert!(!is_end || seen == state, "it is {seen}: {view:#}\n{}", self.stage.story());
            // The journal is written after the view.
            (seen == state && self.told(handoff).last().is_some_and(|told| told == state)).then_some(view)
        })
    }

    /// Asks for it on demand.
    pub(crate) fn publish(&self, handoff: &str) -> Value {
        self.stage.granted(&json!({"kind": "publish", "handoff_id": handoff}))
    }

    /// Which states the journal tells of, first to last.
    pub(crate) fn told(&self, handoff: &str) -> Vec<String> {
        let lines = self.stage.journal();
        let of = lines.iter().filter(|line| line["type"] == "publish" && line["handoff_id"] == handoff);
        of.map(|line| line["state"].as_str().expect("a state").to_owned()).collect()
    }

    /// Holds that each mark stands on the server once.
    pub(crate) fn never_two(&self, comments: usize, gists: usize) {
        let found = (self.github.comments(), self.github.gists());
        let twice = if found.0.len() > comments { found.0.clone() } else { Vec::new() };
        let lost = if found.0.len() < comments { vec![format!("{found:?}")] } else { Vec::new() };
        tally::none_lost_none_twice("comments", &lost, &twice);
        assert_eq!(found.1.len(), gists, "{found:?}");
    }
}

pub(crate) fn codes(view: &Value) -> Vec<Option<&str>> {
    let attempts = view["publish"]["attempts"].as_array().expect("attempts");
    attempts.iter().map(|attempt| attempt["error"]["code"].as_str()).collect()
}

fn mark(handoff: &str) -> String {
    format!("<!-- tasuki:{handoff}:1 -->\n")
}

/// What a document may hold, and a shell, a template, JSON or a server might stumble over.
const ODD: &str = "---\ncheckpoint: \"tests\"\n---\n# Odd `$(touch pwned)` \\n \"quotes\" 'and' {{ braces }} <b>&amp;</b>\r\n\
    日本語 🎏 e\u{301} \u{202e}right\u{202c} %s %00 <!-- comment --> ``` @someone #1\n\n\tlast line without an end";

#[test]
fn a_comment_bears_the_document_as_it_is_and_the_briefing_names_it() {
    let Some(play) = Play::new() else { return };
    // The successor's priming takes so long that the address is known when it is briefed.
    play.stage.faults("slow_turn=2500");
    let id = play.hand_off(ODD, &json!({"issue": ISSUE}));
    let view = play.until(&id, "published");
    assert_eq!(play.github.comments(), [format!("{}{ODD}", mark(&id))]);
    let url = "https://github.localhost/o/r/issues/42#issuecomment-1";
    assert_eq!(view["publish"]["url"], url, "{view:#}");
    assert_eq!(play.told(&id), ["running", "running", "published"]);
    let copy = view["publish"]["copy_path"].as_str().expect("a copy");
    let (folder, name) = copy.rsplit_once('/').expect("a path");
    assert!(view["file_path"].as_str().is_some_and(|path| path.starts_with(folder)), "{view:#}");
    let from = format!("replacement-handoff-dev-{}-to-dev-new-", &play.agent[..8]);
    let time = name.strip_prefix(&from).and_then(|rest| rest.strip_suffix("Z.md")).expect("the name of the contract");
    assert!(time.len() == 15 && time.as_bytes()[8] == b'T', "{name}");
    assert_eq!(fs::read_to_string(copy).expect("the copy"), ODD);
    let done = play.stage.until_step(&id, "done");
    let prompts = play.stage.prompts(done["successor_id"].as_str().expect("a successor"));
    assert!(prompts.iter().any(|prompt| prompt.contains(&format!("also published at {url}"))), "{prompts:#?}");
    let prompt = done["injection_prompt"].as_str().expect("the record's");
    assert!(!prompt.contains(url), "the record is as it was committed: {prompt}");
    let schema = schema::of("handoff_view");
    assert_eq!(schema::faults(&schema, &done), Vec::<String>::new());
    let line = schema::of("journal");
    for told in play.stage.journal().iter().filter(|told| told["type"] == "publish") {
        assert_eq!(schema::faults(&line, told), Vec::<String>::new());
    }
    assert!(!play.stage.home().join("state/publish").read_dir().is_ok_and(|mut left| left.next().is_some()));
    play.never_two(1, 0);
    play.stage.check_once();
}

#[test]
fn the_operator_is_told_that_a_repository_is_public() {
    let Some(play) = Play::new() else { return };
    let is_told = |view: &Value| {
        view["warnings"].as_array().is_some_and(|warnings| {
            warnings
                .iter()
                .any(|told| told == "the repository o/r is public: everybody can read the published document")
        })
    };
    let private = play.hand_off("# Work\n", &json!({"issue": ISSUE}));
    assert!(!is_told(&play.until(&private, "published")));
    play.github.is_public();
    let agent = play.stage.agent("second");
    let asked = json!({"author": "provided", "document": {"text": "# Work\n"}, "publish": {"issue": ISSUE}});
    let public = play.stage.hand_off_with(&agent, &asked);
    assert!(is_told(&play.until(&public, "published")));
    play.never_two(2, 0);
}

#[test]
fn a_gist_is_secret_and_says_whose_it_is_and_the_handoff_does_not_wait_for_it() {
    let Some(play) = Play::with_config("[publish]\nretry_after = []\ntimeout = \"60s\"\n") else { return };
    play.github.uploads(&[Does::Late(60_000)]);
    let id = play.hand_off("# Work\n", &json!({"gist": true}));
    let done = play.stage.until_step(&id, "done");
    assert_eq!(done["publish"]["state"], "running", "{done:#}");
    let answer = play.stage.refused(&json!({"kind": "publish", "handoff_id": id}));
    assert_eq!((answer.0, answer.1.as_str()), (409, "publish_in_progress"));
    // It is given up, as by somebody who has lost patience with gh.
    for pid in play.github.callers() {
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), Signal::SIGTERM).expect("it runs");
    }
    let view = play.until(&id, "failed");
    assert_eq!(view["step"], "done", "the handoff is none the worse: {view:#}");
    assert_eq!(play.publish(&id)["status"], "publishing");
    let view = play.until(&id, "published");
    assert_eq!(view["publish"]["url"], "https://gist.github.localhost/0000abc0");
    assert_eq!(play.publish(&id)["url"], view["publish"]["url"], "asked again, the same answer");
    let gist = play.github.gists().remove(0);
    assert_eq!(gist["public"], false);
    let from = format!("dev-{}", &play.agent[..8]);
    assert_eq!(gist["description"], format!("Agent replacement handoff: {from} to dev-new"));
    let name = view["publish"]["copy_path"].as_str().and_then(|path| path.rsplit('/').next()).expect("a name");
    assert_eq!(gist["files"][name]["content"], format!("{}# Work\n", mark(&id)));
    play.never_two(0, 1);
}

#[test]
fn each_failure_has_its_code_and_is_told_and_only_a_person_tries_again() {
    let Some(play) = Play::new() else { return };
    let failures = [
        (Does::Status(401), "gh_auth"),
        (Does::Status(403), "gh_forbidden"),
        (Does::RateLimit, "gh_rate_limited"),
        (Does::Status(404), "gh_no_issue"),
        (Does::Status(422), "gh_refused"),
    ];
    play.github.uploads(&[failures[0].0]);
    let id = play.hand_off("# Work\n", &json!({"issue": ISSUE}));
    for (count, (does, code)) in failures.into_iter().enumerate() {
        if count > 0 {
            play.github.uploads(&[does]);
            play.publish(&id);
        }
        let view = play.stage.wait_for("it fails", || {
            let view = play.stage.handoff_view(&id);
            let is_so = view["publish"]["state"] == "failed" && codes(&view).len() == count + 1;
            is_so.then_some(view)
        });
        assert_eq!(view["publish"]["error"]["code"], code, "{view:#}");
        let said = view["publish"]["error"]["message"].as_str().expect("a message");
        assert!(!said.contains("# Work") && !said.contains("Request at"), "nothing of what was sent: {said}");
        assert!(view["publish"]["next_try_at"].is_null() && view["error"].is_null(), "{view:#}");
        assert!(view["warnings"].to_string().contains(code), "{view:#}");
        let error = view["publish"]["error"]["error_id"].as_str().expect("an id");
        let file = play.stage.wait_for("its error file", || {
            super::support::stage_files::read_json(&play.stage.spool(&format!("errors/{error}.json")))
        });
        assert_eq!((&file["code"], &file["step"]), (&json!(code), &json!("publishing")), "{file:#}");
    }
    assert_eq!(play.stage.errors_of(&id).len(), failures.len());
    assert_eq!(play.github.asked(), 5, "nothing was tried by itself");
    play.publish(&id);
    play.until(&id, "published");
    play.never_two(1, 0);
    play.stage.until_step(&id, "done");
}

#[test]
fn characters_are_counted_and_what_is_too_long_becomes_a_gist_if_that_was_allowed() {
    let Some(play) = Play::new() else { return };
    let mut agent = play.agent.clone();
    let mark_chars = mark(&play.agent).chars().count();
    // 65,536 characters with the mark, in twice as many bytes.
    let fits = "ä".repeat(65_536 - mark_chars);
    let too_long = format!("{fits}x");
    let fallback = json!({"issue": ISSUE, "fallback": "gist"});
    let rounds = [
        (&fits, fallback.clone(), "published"),
        (&too_long, json!({"issue": ISSUE}), "failed"),
        (&too_long, fallback, "published"),
    ];
    let mut views = Vec::new();
    for (document, publish, state) in rounds {
        let request = json!({"author": "provided", "document": {"text": document}, "publish": publish});
        let id = play.stage.hand_off_with(&agent, &request);
        play.until(&id, state);
        let done = play.stage.until_step(&id, "done");
        agent = done["successor_id"].as_str().expect("a successor").to_owned();
        play.stage.until_idle(&agent);
        views.push(play.stage.handoff_view(&id));
    }
    assert_eq!(codes(&views[0]), [None]);
    assert_eq!(
        (codes(&views[1]), &views[1]["publish"]["error"]["code"]),
        (vec![Some("gh_too_large")], &json!("gh_too_large"))
    );
    assert_eq!(codes(&views[2]), [Some("gh_too_large"), None]);
    assert_eq!(views[2]["publish"]["to"], "gist");
    assert!(views[2]["warnings"].to_string().contains("publishes a secret gist instead"), "{}", views[2]["warnings"]);
    play.never_two(1, 1);
    // Refused by the server, the same is done.
    play.github.uploads(&[Does::Status(403)]);
    let request = json!({"author": "provided", "document": {"text": "# Work\n"}, "publish": {"issue": "o/r#42", "fallback": "gist"}});
    let id = play.stage.hand_off_with(&agent, &request);
    let view = play.until(&id, "published");
    assert_eq!(codes(&view), [Some("gh_forbidden"), None]);
    play.never_two(1, 2);
}

#[test]
fn what_is_missing_or_out_of_reach_is_told_apart() {
    let Some(play) = Play::with_config("[publish]\ntimeout = \"6s\"\nretry_after = [\"100ms\", \"100ms\"]\n") else {
        return;
    };
    play.github.reachable(false);
    let id = play.hand_off("# Work\n", &json!({"issue": ISSUE}));
    let view = play.until(&id, "failed");
    assert_eq!(codes(&view), [Some("gh_offline"); 3], "twice again, then no more: {view:#}");
    play.stage.until_step(&id, "done");
    play.github.reachable(true);
    play.publish(&id);
    play.until(&id, "published");
    // The document that is published is the recorded one, or none.
    let view = play.stage.handoff_view(&id);
    let agent = view["successor_id"].as_str().expect("a successor").to_owned();
    play.stage.until_idle(&agent);
    let request = json!({"author": "provided", "document": {"text": "# Work\n"}, "publish": {"issue": "o/r#43"}});
    let id = play.stage.hand_off_with(&agent, &request);
    let view = play.until(&id, "failed");
    assert_eq!(codes(&view), [Some("gh_no_issue")], "{view:#}");
    play.stage.until_step(&id, "done");
    for name in ["file_path", "publish/copy_path"] {
        let path = view.pointer(&format!("/{name}")).and_then(Value::as_str).expect("a path");
        fs::write(path, "something else").expect("written");
    }
    play.publish(&id);
    let view = play.stage.wait_for("it fails again", || {
        let view = play.stage.handoff_view(&id);
        (view["publish"]["state"] == "failed" && codes(&view).len() == 2).then_some(view)
    });
    assert_eq!(view["publish"]["error"]["code"], "document_changed", "{view:#}");
    play.never_two(1, 0);
}

#[test]
fn without_gh_the_handoff_is_done_and_says_so() {
    let stage = Stage::with_config("[publish]\ngh = \"/no/such/gh\"\n");
    let agent = stage.agent("dev");
    let id = stage.hand_off_with(&agent, &json!({"publish": {"gist": true}}));
    let view = stage.until_step(&id, "done");
    stage.until("it has failed", || stage.handoff_view(&id)["publish"]["state"] == "failed");
    assert!(view["error"].is_null(), "{view:#}");
    assert_eq!(stage.handoff_view(&id)["publish"]["error"]["code"], "gh_missing");
    assert_eq!(stage.errors_of(&id).len(), 1);
}

#[test]
fn what_can_not_be_published_is_refused_by_field_name() {
    let stage = Stage::new();
    let [agent, other] = stage.agents(&["dev", "other"]).try_into().expect("two agents");
    for (publish, field) in [
        (json!({}), "publish"),
        (json!({"issue": ISSUE, "gist": true}), "publish"),
        (json!({"gist": false}), "publish.gist"),
        (json!({"gist": 1}), "publish.gist"),
        (json!({"gist": true, "fallback": "gist"}), "publish.fallback"),
        (json!({"issue": ISSUE, "fallback": "issue"}), "publish.fallback"),
        (json!({"issue": "42"}), "publish.issue"),
        (json!({"issue": "-o/r#42"}), "publish.issue"),
        (json!({"issue": "o/r#42", "repo": "x"}), "publish.repo"),
        (json!("o/r#42"), "publish"),
    ] {
        let answer = stage.ask(&json!({"kind": "handoff", "agent_id": agent, "reason": "x", "publish": publish}));
        assert_eq!((&answer["status"], &answer["error"]["code"]), (&json!(400), &json!("bad_request")), "{answer}");
        assert_eq!(answer["error"]["field"], field, "{answer}");
    }
    let nobody = "00000000-0000-4000-8000-000000000000";
    assert_eq!(stage.refused(&json!({"kind": "publish", "handoff_id": nobody})).1, "no_handoff");
    stage.faults("slow_turn=4000");
    let id = stage.hand_off_with(&agent, &json!({"publish": {"gist": true}}));
    assert_eq!(stage.refused(&json!({"kind": "publish", "handoff_id": id})).1, "no_record");
    assert_eq!(stage.handoff_view(&id)["publish"]["state"], "waiting");
    stage.granted(&json!({"kind": "handoff_cancel", "handoff_id": id}));
    stage.faults("");
    let id = stage.hand_off(&other);
    stage.until_step(&id, "done");
    assert_eq!(stage.refused(&json!({"kind": "publish", "handoff_id": id})).1, "not_asked");
}

#[test]
fn the_commands_publish_and_doctor_tell_what_is_so() {
    let Some(play) = Play::new() else { return };
    play.github.uploads(&[Does::Status(401)]);
    let args = ["handoff", &play.agent, "--author", "provided", "--document", "-", "--publish", ISSUE, "--wait"];
    let mut command = play.github.command(&play.stage, &args);
    let mut child =
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn().expect("it starts");
    std::io::Write::write_all(&mut child.stdin.take().expect("an input"), b"# Work\n").expect("written");
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && said.contains("published  issue: "), "{said}");
    let id = play.stage.views("handoffs")[0]["handoff_id"].as_str().expect("an id").to_owned();
    // The handoff waits for no upload.
    play.until(&id, "failed");
    let run = |args: &[&str]| {
        let output = play.github.command(&play.stage, args).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        (output.status.code(), said)
    };
    let (code, said) = run(&["handoffs", "show", &id]);
    assert!(code == Some(0) && said.contains("published  issue: failed (gh_auth)"), "{said}");
    let (code, said) = run(&["doctor", "delivery", "--handoff", &id]);
    assert_eq!(code, Some(1), "{said}");
    for line in [
        "ok       sidecar ",
        "ok       recipient ",
        "fail     publishing ",
        "issue: failed (gh_auth)",
        "fix: Log in",
        "ok       gh ",
        "logged in as kai",
        "ok       issue ",
        "o/r#42 exists: OPEN",
    ] {
        assert!(said.contains(line), "{line} in\n{said}");
    }
    let (code, said) = run(&["publish", &id, "--wait"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("is published: https://github.localhost/o/r/issues/42#issuecomment-1"), "{said}");
    let (code, said) = run(&["doctor", "delivery", "--handoff", &id, "--json"]);
    assert_eq!(code, Some(0), "{said}");
    let checks: Value = serde_json::from_str(&said).expect("JSON");
    assert!(checks["checks"].as_array().expect("checks").iter().all(|check| check["state"] == "ok"), "{said}");
    assert_eq!(schema::faults(&schema::of("doctor_delivery"), &checks), Vec::<String>::new(), "{said}");
    let (code, said) = run(&["doctor", "delivery", "--issue", "o/r#43"]);
    assert!(code == Some(1) && said.contains("fail     issue ") && said.contains("o/r#43 was not found"), "{said}");
    play.stage.end_sidecar(Signal::SIGTERM);
    let (code, said) = run(&["doctor", "delivery"]);
    assert!(code == Some(1) && said.contains("fail     sidecar"), "{said}");
    play.never_two(1, 0);
}

#[test]
fn the_document_of_a_handoff_that_is_over_is_published_where_a_person_says() {
    let Some(play) = Play::new() else { return };
    let asked = json!({"author": "provided", "document": {"text": "# Work\n"}});
    let id = play.stage.hand_off_with(&play.agent, &asked);
    play.stage.until_step(&id, "done");
    let (status, code, _) = play.stage.refused(&json!({"kind": "publish", "handoff_id": id}));
    assert_eq!((status, code.as_str()), (409, "not_asked"));
    play.stage.granted(&json!({"kind": "publish", "handoff_id": id, "to": {"issue": ISSUE}}));
    let view = play.until(&id, "published");
    assert_eq!(play.github.comments(), [format!("{}# Work\n", mark(&id))]);
    let url = view["publish"]["url"].clone();
    play.stage.granted(&json!({"kind": "publish", "handoff_id": id, "to": {"gist": true}}));
    play.stage.wait_for("a gist too", || {
        let view = play.stage.handoff_view(&id);
        (view["publish"]["to"] == "gist" && view["publish"]["state"] == "published").then_some(())
    });
    assert_eq!(play.stage.handoff_view(&id)["publish"]["former_urls"], json!([url]));
    play.never_two(1, 1);
    play.stage.check_once();
}
