//! Work items through the lives of agents and of the sidecar: leases, handoffs, crashes; what is refused; and partial
//! completions.

use super::support::stage::Stage;
use super::support::stage_files::{json_files, refusal};
use super::support::tally;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;

#[test]
fn a_handoff_carries_what_its_agent_has_claimed() {
    let stage = Stage::new();
    stage.faults("work=claim");
    let agent = stage.team(&[("dev", "developer")]).remove(0);
    let story = stage.item_of("story", "The till");
    assert_eq!(stage.until_status(&story, "claimed")["claimed_by"], agent);
    stage.until_idle(&agent);
    let view = stage.until_step(&stage.hand_off(&agent), "done");
    stage.check_done(&view);
    let successor = view["successor_id"].as_str().expect("an id");
    let item = stage
        .wait_for("nothing holds it any more", || Some(stage.item(&story)).filter(|item| item["held_by"].is_null()));
    assert_eq!((&item["status"], &item["claimed_by"]), (&json!("claimed"), &json!(successor)), "{item:#}");
    assert_eq!(stage.actions(&story), ["created", "claimed", "held", "carried_over"]);
    assert!(view["injection_prompt"].as_str().is_some_and(|text| text.contains(&story) && text.contains("The till")));
    let briefing = stage.prompts(successor).into_iter().find(|text| text.contains("Here is your handoff"));
    assert!(briefing.is_some_and(|text| text.contains(&story)), "the briefing names it");
    stage.complete(&story, successor, &json!({"completed": true}), &json!([]));
    assert_eq!(stage.item(&story)["completed_by"], successor);
    stage.check_work();
}

#[test]
fn a_failed_handoff_holds_its_items_until_it_is_abandoned() {
    let (stage, notices) = Stage::with_notices();
    stage.faults("work=claim");
    let agent = stage.team(&[("dev", "developer")]).remove(0);
    let story = stage.item_of("story", "The till");
    stage.until_status(&story, "claimed");
    stage.until_idle(&agent);
    stage.faults("work=ignore,die_at=start");
    let handoff = stage.hand_off(&agent);
    stage.until_failed(&handoff, "starting", "successor_failed");
    let item = stage.item(&story);
    assert_eq!((&item["claimed_by"], &item["held_by"]), (&json!(agent), &json!(handoff)), "its end releases nothing");
    stage.crash_and_restart();
    stage.faults("work=ignore");
    stage.granted(&json!({"kind": "handoff_retry", "handoff_id": handoff}));
    let done = stage.until_step(&handoff, "done");
    assert_eq!(stage.item(&story)["claimed_by"], done["successor_id"], "{}", stage.story());
    // Another one is given up: what it holds is for everybody.
    let second = done["successor_id"].as_str().expect("an id").to_owned();
    stage.until_idle(&second);
    stage.item_of("task", "The shelf");
    stage.faults("work=ignore,die_at=start");
    let handoff = stage.hand_off(&second);
    stage.until_failed(&handoff, "starting", "successor_failed");
    assert_eq!(stage.item(&story)["held_by"], handoff);
    stage.crash_and_restart();
    stage.granted(&json!({"kind": "handoff_abandon", "handoff_id": handoff}));
    let item = stage.until_status(&story, "ready");
    assert!(item["held_by"].is_null() && item["claimed_by"].is_null(), "{item:#}");
    // No developer is left, also for what nobody had claimed.
    stage.until("the operator is told of both", || {
        let told = fs::read_to_string(&notices).unwrap_or_default();
        told.lines().any(|line| ["for a person", "The till", "The shelf"].iter().all(|part| line.contains(part)))
    });
    stage.check_work();
}

#[test]
fn an_agent_that_vanishes_gives_back_what_it_has() {
    let stage = Stage::new();
    stage.faults("work=claim");
    let agents = stage.team(&[("dev", "developer"), ("other", "developer")]);
    let story = stage.item_of("story", "The till");
    let owner = stage.until_status(&story, "claimed")["claimed_by"].as_str().expect("an agent").to_owned();
    let other = agents.iter().find(|agent| **agent != owner).expect("another one");
    stage.until_idle(&owner);
    stage.faults("");
    for pid in stage.processes(&owner) {
        kill(Pid::from_raw(pid), Signal::SIGKILL).expect("it lives");
    }
    let done = stage.until_status(&story, "done");
    assert_eq!(done["completed_by"], **other, "the next one of the role was told, and has done it");
    let actions = stage.actions(&story);
    assert_eq!(actions[..3], ["created", "claimed", "released"], "{actions:?}");
    assert_eq!(done["history"][2]["by"], "tasuki");
}

#[test]
fn three_of_five_bad_children_are_retried_later() {
    let stage = Stage::new();
    stage.faults("work=partial");
    let agent = stage.team(&[("sm", "scrum_master")]).remove(0);
    let prd = stage.item_of("prd", "The PRD");
    let view = stage.until_status(&prd, "done");
    assert_eq!(view["children"].as_array().map(Vec::len), Some(2), "{view:#}");
    let failed: Vec<u64> = view["failed_children"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|child| child["index"].as_u64().expect("a number"))
        .collect();
    assert_eq!(failed, [1, 2, 4]);
    let answer = stage.wait_for("its completion is answered", || {
        json_files(&stage.spool("results")).into_iter().find(|answer| answer["kind"] == "work_complete")
    });
    assert_eq!((&answer["status"], &answer["ok"]), (&json!(207), &json!(true)), "{answer}");
    assert_eq!(answer["result"]["failed"].as_array().map(Vec::len), Some(3));
    let mended: Vec<Value> = ["two", "three", "five"].map(|title| json!({"type": "story", "title": title})).to_vec();
    let retry = json!({"kind": "work_retry_children", "item_id": prd, "agent_id": agent, "children": mended});
    assert_eq!(stage.granted(&retry)["children"].as_array().map(Vec::len), Some(3));
    let view = stage.item(&prd);
    assert_eq!((view["children"].as_array().map(Vec::len), &view["failed_children"]), (Some(5), &json!([])));
    stage.check_work();
}

#[test]
fn bad_input_is_refused_by_status_and_code() {
    let stage = Stage::new();
    let (pm, dev) = (stage.clerk(1, "pm", "project_manager"), stage.clerk(2, "dev", "developer"));
    let other = stage.clerk(3, "mia", "developer");
    let nobody = "0b0e4f6e-3a0f-4a52-9df0-5cf0e7c9a0ff";
    let (spec, story) = (stage.item_of("project_spec", "A shop"), stage.item_of("story", "The till"));
    stage.claim(&spec, &pm);
    stage.claim(&story, &dev);
    let good = json!({"requirements": [1], "prd": 1});
    let ring = json!([{"item_id": nobody, "type": "story", "title": "t", "parent_id": nobody}]);
    for (request, status, code) in [
        (
            json!({"kind": "work_complete", "item_id": story, "agent_id": other, "output": {"completed": true}}),
            403,
            "not_owner",
        ),
        (json!({"kind": "work_create", "type": "epic", "title": "t"}), 422, "no_rule"),
        (json!({"kind": "work_complete", "item_id": spec, "agent_id": pm, "output": {}}), 422, "bad_output"),
        (
            json!({"kind": "work_complete", "item_id": spec, "agent_id": pm, "output": good,
                "children": [{"type": "story", "title": "t"}]}),
            422,
            "bad_children",
        ),
        (json!({"kind": "work_create", "type": "bug", "title": "t", "parent_id": spec}), 422, "not_created"),
        (json!({"kind": "work_import", "items": ring}), 422, "not_created"),
        (json!({"kind": "work_create", "type": "prd", "title": "t", "parent_id": nobody}), 404, "no_item"),
        (json!({"kind": "work_claim", "item_id": nobody, "agent_id": dev}), 404, "no_item"),
        (json!({"kind": "work_claim", "item_id": story, "agent_id": nobody}), 404, "no_agent"),
        (json!({"kind": "work_claim", "item_id": story, "agent_id": other}), 409, "already_claimed"),
        (json!({"kind": "work_claim", "item_id": story, "agent_id": dev, "force": true}), 400, "bad_request"),
        (json!({"kind": "work_create", "type": "story"}), 400, "bad_request"),
    ] {
        let (found, word, _) = refusal(&stage.ask(&request));
        assert_eq!((found, word.as_str()), (status, code), "{request}");
        tally::add(tally::INPUTS, 1);
    }
    let pair = |a: &str, b: &str| json!([{"item_id": a, "type": "folder", "title": "t", "parent_id": b}, {"item_id": b, "type": "folder", "title": "t", "parent_id": a}]);
    std::fs::create_dir_all(stage.home().join("data")).expect("a folder");
    let rules = "[types.folder]\nprocessed_by = [\"human\"]\ncreates = [\"folder\"]\n";
    std::fs::write(stage.home().join("data/rules.toml"), rules).expect("rules");
    let ring = json!({"kind": "work_import", "items": pair(nobody, "0b0e4f6e-3a0f-4a52-9df0-5cf0e7c9a0fe")});
    let (status, code, _) = refusal(&stage.ask(&ring));
    assert_eq!((status, code.as_str()), (422, "cycle"));
    let anonymous = json!({"v": 1, "event": "session_start", "agent_id": nobody, "session_id": "s-x"});
    stage.drop_file("events", "anonymous.json", anonymous.to_string().as_bytes());
    stage.until("it is seen", || stage.agent_view(nobody)["state"] == "idle");
    let task = stage.item_of("task", "t");
    let (status, code, _) = refusal(&stage.ask(&json!({"kind": "work_claim", "item_id": task, "agent_id": nobody})));
    assert_eq!((status, code.as_str()), (400, "no_persona"));
    assert_eq!(stage.views("work").len(), 3, "nothing came of all that");
    assert_eq!(stage.item(&story)["claimed_by"], dev);
    stage.check_work();
}

#[test]
fn the_same_request_again_is_the_same_answer_and_nothing_more() {
    let stage = Stage::new();
    let sm = stage.clerk(1, "sm", "scrum_master");
    let prd = stage.item_of("prd", "The PRD");
    stage.claim(&prd, &sm);
    let body = json!({"v": 1, "kind": "work_complete", "item_id": prd, "agent_id": sm, "output": {"stories": [1]},
        "children": [{"type": "story", "title": "one"}]})
    .to_string();
    for _ in 0..2 {
        stage.drop_file("requests", "once.json", body.as_bytes());
        stage.result("once");
    }
    stage.crash_and_restart();
    stage.drop_file("requests", "once.json", body.as_bytes());
    stage.until("it is taken", || stage.names("requests").is_empty());
    assert_eq!(stage.result("once")["status"], 200);
    assert_eq!(stage.views("work").len(), 2);
    assert_eq!(stage.actions(&prd), ["created", "claimed", "completed"]);
}

#[test]
fn nothing_is_lost_or_done_twice_when_the_sidecar_dies_in_the_middle() {
    let stage = Stage::new();
    let (sm, dev) = (stage.clerk(1, "sm", "scrum_master"), stage.clerk(2, "dev", "developer"));
    let prds: Vec<String> = (0..6).map(|number| stage.item_of("prd", &format!("prd {number}"))).collect();
    let children = json!([{"type": "story", "title": "one"}, {"type": "story", "title": "two"}]);
    let mut asked = Vec::new();
    for (number, prd) in prds.iter().enumerate() {
        asked.push(stage.send(&json!({"kind": "work_claim", "item_id": prd, "agent_id": sm})));
        // The claim must come first; the death may fall anywhere after that.
        stage.result(asked.last().expect("a request"));
        asked.push(
            stage.send(&json!({"kind": "work_complete", "item_id": prd, "agent_id": sm, "output": {"stories": [1]},
            "children": children})),
        );
        std::thread::sleep(std::time::Duration::from_micros(u64::try_from(number).expect("small") * 700));
        stage.crash_and_restart();
        tally::add(tally::DEATHS, 1);
    }
    for request in &asked {
        assert_eq!(stage.result(request)["ok"], true, "{}", stage.story());
    }
    let stories: Vec<Value> = stage.views("work").into_iter().filter(|item| item["type"] == "story").collect();
    assert_eq!(stories.len(), 12, "each completion has made its two, once");
    let ids: BTreeSet<&str> = stories.iter().filter_map(|story| story["item_id"].as_str()).collect();
    for id in &ids {
        stage.claim(id, &dev);
    }
    assert!(prds.iter().all(|prd| stage.actions(prd) == ["created", "claimed", "completed"]));
    // The views and the marks are a projection: without them, they come again.
    stage.end_sidecar(Signal::SIGTERM);
    std::fs::remove_dir_all(stage.home().join("view")).expect("removed");
    stage.start_sidecar();
    stage.until("every view is there", || stage.views("work").len() == 18);
    stage.check_work();
    stage.check_once();
}
