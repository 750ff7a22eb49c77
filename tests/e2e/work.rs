//! Work items from role to role, on the real program: each criterion of the story that asks for them, by its name, and
//! each built-in rule. Demo agents play the roles; they are told in their panes, and act by the files that they drop.

use super::support::stage::Stage;
use super::support::stage_files::json_files;
use serde_json::{Value, json};
use std::fs;

const TEAM: [(&str, &str); 3] = [("pm", "project_manager"), ("sm", "scrum_master"), ("dev", "developer")];

/// How often an agent was told of an item in its pane.
fn told(stage: &Stage, agent: &str, item: &str) -> usize {
    let head = format!("Work item `{item}`");
    stage.prompts(agent).iter().filter(|prompt| prompt.contains(&head)).count()
}

#[test]
fn a_specification_goes_to_done_through_the_agents_hands_alone() {
    let stage = Stage::new();
    let agents = stage.team(&TEAM);
    let spec = stage.item_of("project_spec", "A shop for sashes");
    stage.until("all of it is done", || {
        let items = stage.views("work");
        items.len() == 4 && items.iter().all(|item| item["status"] == "done")
    });
    let items = stage.views("work");
    let of = |kind: &str| items.iter().filter(|item| item["type"] == kind).collect::<Vec<_>>();
    let (prds, stories) = (of("prd"), of("story"));
    assert_eq!((prds.len(), stories.len()), (1, 2));
    let who = [("project_spec", &agents[0]), ("prd", &agents[1]), ("story", &agents[2])];
    for (kind, agent) in who {
        for item in of(kind) {
            assert_eq!(item["completed_by"], **agent, "{item:#}");
            assert_eq!(item["project_id"], spec);
            assert_eq!(stage.actions(item["item_id"].as_str().expect("an id")), ["created", "claimed", "completed"]);
            assert_eq!(told(&stage, agent, item["item_id"].as_str().expect("an id")), 1, "{}", stage.story());
        }
    }
    assert_eq!(prds[0]["parent_id"], spec);
    assert!(stories.iter().all(|story| story["parent_id"] == prds[0]["item_id"]));
    assert!(stage.errors().is_empty());
    stage.check_once();
    stage.check_work();
}

#[test]
fn agent_to_agent_handoff_with_output_data() {
    let stage = Stage::new();
    let agents = stage.team(&TEAM[..2]);
    let spec = stage.item_of("project_spec", "A shop");
    let done = stage.until_status(&spec, "done");
    let prd = done["children"][0].as_str().expect("a child");
    let prd = stage.until_status(prd, "done");
    assert_eq!(prd["parent_output"], done["output"], "what came of one is with the next");
    assert_eq!(prd["parent_output"]["prd"]["goal"], "A shop");
    assert_eq!((&done["completed_by"], &prd["completed_by"]), (&json!(agents[0]), &json!(agents[1])));
}

#[test]
fn create_child_items_during_handoff() {
    let stage = Stage::new();
    let sm = stage.clerk(1, "sm", "scrum_master");
    let prd = stage.granted(&json!({"kind": "work_create", "type": "prd", "title": "p", "priority": "urgent"}));
    let prd = prd["item_id"].as_str().expect("an id");
    stage.claim(prd, &sm);
    let children = json!([{"type": "story", "title": "one", "description": "in full", "metadata": {"points": 3}},
        {"type": "story", "title": "two"}]);
    let made = stage.complete(prd, &sm, &json!({"stories": ["one", "two"]}), &children);
    assert_eq!(made.len(), 2);
    let first = stage.item(&made[0]);
    for (name, value) in [
        ("status", json!("ready")),
        ("type", json!("story")),
        ("title", json!("one")),
        ("description", json!("in full")),
        ("metadata", json!({"points": 3})),
        ("priority", json!("urgent")),
        ("parent_id", json!(prd)),
        ("project_id", json!(prd)),
        ("created_by", json!("human")),
        ("parent_output", json!({"stories": ["one", "two"]})),
    ] {
        assert_eq!(first[name], value, "{name}: {first:#}");
    }
    let parent = stage.item(prd);
    assert_eq!((&parent["children"], &parent["history"][2]["children"]), (&json!(made), &json!(made)));
    stage.check_work();
}

#[test]
fn handoff_validation() {
    let stage = Stage::new();
    stage.faults("work=bad_output");
    let agent = stage.team(&TEAM[..1]).remove(0);
    let spec = stage.item_of("project_spec", "A shop");
    stage.until_status(&spec, "claimed");
    let answer = stage.wait_for("its completion is answered", || {
        json_files(&stage.spool("results")).into_iter().find(|answer| answer["kind"] == "work_complete")
    });
    assert_eq!((&answer["status"], &answer["error"]["code"]), (&json!(422), &json!("bad_output")), "{answer}");
    let errors = answer["error"]["errors"].as_array().expect("a list");
    let pointers: Vec<&str> = errors.iter().filter_map(|error| error["pointer"].as_str()).collect();
    assert_eq!(pointers, ["/output/requirements", "/output/prd"]);
    let view = stage.item(&spec);
    assert_eq!((&view["status"], &view["claimed_by"]), (&json!("claimed"), &json!(agent)));
    assert!(view["output"].is_null() && view["history"].as_array().is_some_and(|lines| lines.len() == 2));
}

#[test]
fn handoff_notifications_to_receiving_agents() {
    let (stage, notices) = Stage::with_notices();
    stage.faults("work=ignore");
    let pm = stage.clerk(1, "pm", "project_manager");
    let first = stage.team(&[("sm", "scrum_master")]).remove(0);
    let spec = stage.item_of("project_spec", "A shop");
    stage.claim(&spec, &pm);
    let output = json!({"requirements": ["r"], "prd": "p"});
    let prd = stage.complete(&spec, &pm, &output, &json!([{"type": "prd", "title": "The PRD"}])).remove(0);
    let view = stage.wait_for("the scrum master is told", || {
        Some(stage.item(&prd)).filter(|view| view["told"][0]["verdict"] == "delivered")
    });
    assert_eq!(view["told"][0]["agent_id"], first);
    assert_eq!((told(&stage, &first, &prd), told(&stage, &first, &spec)), (1, 0), "{}", stage.story());
    let text = stage.prompts(&first).pop().expect("a notice");
    assert!(text.contains("The PRD") && text.contains(&format!("tasuki work claim {prd}")), "{text}");
    // It has left it; the next one of the role that registers is told.
    stage.until_idle(&first);
    let second = stage.team(&[("sm-2", "scrum_master")]).remove(0);
    stage.until("the next one is told", || told(&stage, &second, &prd) == 1);
    // Nobody who could fix a bug is there but a person.
    let bug = stage.item_of("bug", "It leaks");
    stage.until("the operator is told", || {
        fs::read_to_string(&notices).is_ok_and(|text| text.contains(&bug) && text.contains("It leaks"))
    });
    stage.check_once();
}

#[test]
fn human_escalation_path_for_failures() {
    let (stage, notices) = Stage::with_notices();
    stage.faults("work=escalate");
    let agents = stage.team(&[("dev", "developer"), ("other", "developer")]);
    let story = stage.item_of("story", "The till");
    let view = stage.until_status(&story, "escalated");
    let agent = view["history"][1]["by"].as_str().expect("an agent").to_owned();
    assert!(agents.contains(&agent));
    assert_eq!(view["comments"][0]["text"], "**Escalated to human**: I have no access");
    assert_eq!((&view["comments"][0]["system"], &view["claimed_by"]), (&json!(true), &Value::Null));
    assert_eq!(view["escalation_reason"], "I have no access");
    stage.until("the operator is told", || {
        fs::read_to_string(&notices).is_ok_and(|text| text.contains("I have no access"))
    });
    for agent in &agents {
        let claim = json!({"kind": "work_claim", "item_id": story, "agent_id": agent});
        let (status, code, _) = stage.refused(&claim);
        assert_eq!((status, code.as_str()), (409, "escalated"));
        let release = json!({"kind": "work_release", "item_id": story, "agent_id": agent});
        assert_eq!(stage.refused(&release).0, 403);
    }
    stage.faults("work=ignore");
    let release = json!({"kind": "work_release", "item_id": story, "agent_id": "human", "reason": "access is given"});
    assert_eq!(stage.granted(&release)["status"], "ready");
    let back = stage.refused(&json!({"kind": "work_claim", "item_id": story, "agent_id": agent}));
    assert_eq!((back.0, back.1.as_str()), (403, "escalated_before"));
    let other = agents.iter().find(|other| **other != agent).expect("another one");
    stage.claim(&story, other);
    assert_eq!(stage.actions(&story), ["created", "claimed", "escalated", "released", "claimed"]);
}

#[test]
fn handoff_history_tracking() {
    let stage = Stage::new();
    let dev = stage.clerk(1, "dev", "developer");
    let task = stage.item_of("task", "Tidy up");
    stage.claim(&task, &dev);
    stage.granted(&json!({"kind": "work_release", "item_id": task, "agent_id": dev, "reason": "lunch"}));
    stage.claim(&task, &dev);
    stage.complete(&task, &dev, &json!({"note": "tidy", "hours": 2}), &json!([]));
    stage.granted(&json!({"kind": "work_rollback", "item_id": task, "reason": "not tidy"}));
    stage.complete(&task, &dev, &json!({"note": "tidy"}), &json!([]));
    stage.crash_and_restart();
    let history = stage.item(&task)["history"].clone();
    let seen: Vec<(&str, &str, &str, &str)> = history
        .as_array()
        .expect("a list")
        .iter()
        .map(|line| {
            let text = |name: &str| line[name].as_str().unwrap_or("-");
            (text("action"), text("from"), text("to"), text("reason"))
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("created", "-", "ready", "-"),
            ("claimed", "ready", "claimed", "-"),
            ("released", "claimed", "ready", "lunch"),
            ("claimed", "ready", "claimed", "-"),
            ("completed", "claimed", "done", "-"),
            ("rolled_back", "done", "claimed", "not tidy"),
            ("completed", "claimed", "done", "-"),
        ]
    );
    assert_eq!(
        (&history[4]["output_summary"], &history[4]["validation"]),
        (&json!(["hours", "note"]), &json!("passed"))
    );
    assert_eq!((&history[1]["by"], &history[5]["by"]), (&json!(dev), &json!("human")));
    assert!(history.as_array().expect("a list").iter().all(|line| line["at"].is_string()));
    assert!(history[1]["after_ms"].is_u64() && history[4]["after_ms"].is_u64());
    let lines = stage.journal();
    let work: Vec<&Value> = lines.iter().filter(|line| line["type"] == "work").map(|line| &line["action"]).collect();
    assert_eq!(work.len(), 7, "{work:?}");
}

#[test]
fn rollback_capability_for_failed_handoffs() {
    let stage = Stage::new();
    fs::create_dir_all(stage.home().join("data")).expect("a folder");
    let rules = "[types.prd]\nprocessed_by = [\"scrum_master\"]\ncreates = [\"story\"]\nrequire.non_empty = [\"/stories\"]\n\
                 taken_within = \"1s\"\nrollback_on = [\"timed_out\", \"gone\"]\n";
    fs::write(stage.home().join("data/rules.toml"), rules).expect("rules");
    let (sm, dev) = (stage.clerk(1, "sm", "scrum_master"), stage.clerk(2, "dev", "developer"));
    let children = json!([{"type": "story", "title": "one"}, {"type": "story", "title": "two"}]);
    let hand_over = |prd: &str| stage.complete(prd, &sm, &json!({"stories": [1]}), &children);
    let prd = stage.item_of("prd", "The PRD");
    stage.claim(&prd, &sm);
    let stories = hand_over(&prd);
    // Nobody takes them in time.
    let view = stage.until_status(&prd, "claimed");
    assert_eq!((&view["claimed_by"], &view["output"], &view["children"]), (&json!(sm), &Value::Null, &json!([])));
    assert!(stories.iter().all(|story| stage.item(story)["status"] == "withdrawn"));
    // Who takes one ends; in a second nobody could have taken the other in time, either.
    let stories = hand_over(&prd);
    stage.claim(&stories[0], &dev);
    let end = json!({"v": 1, "event": "session_end", "agent_id": dev, "session_id": dev});
    stage.drop_file("events", "end.json", end.to_string().as_bytes());
    stage.until_status(&prd, "claimed");
    assert!(stories.iter().all(|story| stage.item(story)["status"] == "withdrawn"));
    // By a person, as long as nobody has one; its owner gone, it waits for another.
    let stories = hand_over(&prd);
    let other = stage.clerk(3, "dev", "developer");
    stage.claim(&stories[1], &other);
    let rollback = json!({"kind": "work_rollback", "item_id": prd, "reason": "wrong"});
    let answer = stage.ask(&rollback);
    assert_eq!((&answer["status"], &answer["error"]["code"]), (&json!(409), &json!("children_taken")));
    assert_eq!(answer["error"]["errors"][0]["pointer"], stories[1]);
    stage.check_work();
}

#[test]
fn configurable_handoff_rules_per_item_type() {
    let stage = Stage::new();
    let clerk = stage.clerk(1, "ada", "writer");
    let create = json!({"kind": "work_create", "type": "chapter", "title": "One"});
    assert_eq!(stage.refused(&create).1, "no_rule");
    fs::create_dir_all(stage.home().join("data")).expect("a folder");
    let path = stage.home().join("data/rules.toml");
    let rules = "[types.chapter]\nprocessed_by = [\"writer\"]\ncreates = [\"page\"]\nrequire.all = [\"/words\"]\n\
                 require.values.\"/words\" = \"integer\"\n[types.page]\nprocessed_by = [\"human\"]\n";
    fs::write(&path, rules).expect("rules");
    let chapter = stage.granted(&create)["item_id"].as_str().expect("an id").to_owned();
    stage.claim(&chapter, &clerk);
    let bad = stage
        .ask(&json!({"kind": "work_complete", "item_id": chapter, "agent_id": clerk, "output": {"words": "many"}}));
    assert_eq!(bad["error"]["errors"][0]["pointer"], "/output/words", "{bad}");
    // A file that can't be used is told once, and the old rules stay.
    fs::write(&path, format!("{rules}processed = 1\n")).expect("rules");
    let told = stage.wait_for("it is told", || stage.errors().into_iter().find(|error| error["code"] == "bad_rules"));
    let message = told["message"].as_str().expect("a message");
    assert!(message.contains("line 8, column 1") && message.contains("processed"), "{message}");
    let made = stage.complete(&chapter, &clerk, &json!({"words": 900}), &json!([{"type": "page", "title": "1"}]));
    assert_eq!(stage.item(&made[0])["type"], "page");
    stage.granted(&create);
    assert_eq!(stage.errors().len(), 1, "once");
    fs::remove_file(&path).expect("removed");
    stage.until("only the built-in ones hold", || stage.ask(&create)["error"]["code"] == "no_rule");
}

/// A built-in rule: an agent of the role does such an item by itself; a bad output is refused, a good one taken.
fn built_in(kind: &str, role: &str, bad: &[(Value, &[&str])], good: &Value, creates: Option<&str>) {
    let stage = Stage::new();
    let agent = stage.team(&[("one", role)]).remove(0);
    let outsider = stage.clerk(9, "outsider", "gardener");
    let item = stage.item_of(kind, "By itself");
    let done = stage.until_status(&item, "done");
    assert_eq!(done["completed_by"], agent);
    let made: Vec<Value> = done["children"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|id| stage.item(id.as_str().expect("an id"))["type"].clone())
        .collect();
    match creates {
        None => assert!(made.is_empty()),
        Some(creates) => assert!(!made.is_empty() && made.iter().all(|kind| kind == creates), "{made:?}"),
    }
    stage.faults("work=ignore");
    stage.until_idle(&agent);
    let item = stage.item_of(kind, "By hand");
    let wrong = stage.refused(&json!({"kind": "work_claim", "item_id": item, "agent_id": outsider}));
    assert_eq!((wrong.0, wrong.1.as_str()), (403, "wrong_role"));
    stage.claim(&item, &agent);
    for (output, pointers) in bad {
        let answer = stage.ask(&json!({"kind": "work_complete", "item_id": item, "agent_id": agent, "output": output}));
        let found: Vec<&str> = answer["error"]["errors"]
            .as_array()
            .unwrap_or_else(|| panic!("{output} is not good: {answer}"))
            .iter()
            .filter_map(|error| error["pointer"].as_str())
            .collect();
        assert_eq!((answer["status"].as_u64(), &found[..]), (Some(422), *pointers), "{output}");
    }
    let other = json!([{"type": if kind == "bug" { "task" } else { "bug" }, "title": "of no use"}]);
    let refused = stage
        .ask(&json!({"kind": "work_complete", "item_id": item, "agent_id": agent, "output": good, "children": other}));
    assert_eq!(refused["error"]["code"], "bad_children", "{refused}");
    stage.complete(&item, &agent, good, &json!([]));
    stage.check_work();
}

#[test]
fn rule_of_project_spec() {
    let both: &[&str] = &["/output/requirements", "/output/prd"];
    let bad = [(json!({}), both), (json!({"requirements": [], "prd": ""}), both), (json!({"prd": 1}), &both[..1])];
    built_in("project_spec", "project_manager", &bad, &json!({"requirements": ["r"], "prd": "p"}), Some("prd"));
}

#[test]
fn rule_of_feature() {
    let bad: [(Value, &[&str]); 1] = [(json!({"requirements": ["r"], "prd": {}}), &["/output/prd"])];
    built_in("feature", "project_manager", &bad, &json!({"requirements": ["r"], "prd": {"k": 1}}), Some("prd"));
}

#[test]
fn rule_of_prd() {
    let bad: [(Value, &[&str]); 2] =
        [(json!({"stories": []}), &["/output/stories"]), (json!({}), &["/output/stories"])];
    built_in("prd", "scrum_master", &bad, &json!({"stories": ["s"]}), Some("story"));
}

#[test]
fn rule_of_story() {
    let bad: [(Value, &[&str]); 2] =
        [(json!({}), &["/output"]), (json!({"pr_url": " ", "completed": false}), &["/output"])];
    built_in("story", "developer", &bad, &json!({"pr_url": "https://example.org/1"}), None);
}

#[test]
fn rule_of_bug() {
    built_in("bug", "developer", &[(json!({"fix": "?"}), &["/output"])], &json!({"completed": true}), None);
}

#[test]
fn rule_of_task() {
    built_in("task", "developer", &[(json!({}), &["/output"])], &json!({"note": "tidy"}), None);
}
