//! What each request about work items answers, and what it changes.

use super::*;
use crate::core::rows::item::Action;

#[test]
fn a_specification_goes_down_to_stories_that_are_done() {
    let (mut world, [pm, sm, dev, _]) = World::new();
    let made = world.ask(&json!({
        "kind": "work_create", "type": "project_spec", "title": "A shop", "priority": "high", "metadata": {"k": 1},
    }));
    let spec = id_of(made.as_ref().expect("made"));
    assert_eq!(made.expect("made")["status"], "ready");
    assert_eq!(world.claim(spec, pm).expect("claimed"), json!({"item_id": spec, "status": "claimed"}));
    let output = json!({"requirements": ["r"], "prd": {"goal": "g"}});
    let children = json!([{"type": "prd", "title": "The PRD", "metadata": {"pages": 3}}]);
    let done = world.complete(spec, pm, &json!({"output": output, "children": children})).expect("completed");
    let prd = id_of(&done["children"][0]);
    let expected =
        json!({"item_id": spec, "failed": [], "children": [{"item_id": prd, "type": "prd", "title": "The PRD"}]});
    assert_eq!(done, expected);
    let child = world.view(prd);
    for (name, value) in [
        ("status", json!("ready")),
        ("priority", json!("high")),
        ("project_id", json!(spec)),
        ("parent_id", json!(spec)),
        ("parent_output", output.clone()),
        ("created_by", json!("human")),
        ("metadata", json!({"pages": 3})),
    ] {
        assert_eq!(child[name], value, "{name}");
    }
    let parent = world.view(spec);
    assert_eq!((&parent["status"], &parent["output"], &parent["completed_by"]), (&json!("done"), &output, &json!(pm)));
    assert_eq!((&parent["children"], &parent["claimed_by"]), (&json!([prd]), &Value::Null));
    let last = &parent["history"][2];
    assert_eq!((&last["output_summary"], &last["validation"]), (&json!(["prd", "requirements"]), &json!("passed")));
    assert!(last["after_ms"].is_u64() && last["children"] == json!([prd]));
    world.claim(prd, sm).expect("claimed");
    let stories = json!([{"type": "story", "title": "one"}, {"type": "story", "title": "two"}]);
    let done = world.complete(prd, sm, &json!({"output": {"stories": ["one", "two"]}, "children": stories}));
    for story in done.expect("completed")["children"].as_array().expect("a list").iter().map(id_of) {
        world.claim(story, dev).expect("claimed");
        world.complete(story, dev, &json!({"output": {"pr_url": "https://x/1"}})).expect("completed");
        assert_eq!(world.item(story).project_id, spec);
    }
    assert!(world.all().iter().all(|item| item.status == Status::Done));
    assert_eq!(world.state.items.open(), 0);
    check(&world).expect("whole");
}

#[test]
fn a_wrong_work_request_is_refused_by_status_and_code_and_changes_nothing() {
    let (mut world, [pm, sm, dev, other]) = World::new();
    let nobody = "0b0e4f6e-3a0f-4a52-9df0-5cf0e7c9a001";
    let story = world.create("story");
    let spec = world.create("project_spec");
    let claim = |id: &dyn ToString, who: &dyn ToString| json!({"kind": "work_claim", "item_id": id.to_string(), "agent_id": who.to_string()});
    let complete = |id: ItemId, who: AgentId, output: Value| json!({"kind": "work_complete", "item_id": id, "agent_id": who, "output": output});
    let create = |more: Value| {
        let mut request = json!({"kind": "work_create", "title": "t"});
        more.as_object().into_iter().flatten().for_each(|(name, value)| request[name] = value.clone());
        request
    };
    for (request, status, code) in [
        (create(json!({"type": "epic"})), 422, "no_rule"),
        (create(json!({"type": "story", "parent_id": nobody})), 404, "no_item"),
        (create(json!({"type": "bug", "parent_id": spec})), 422, "not_created"),
        (create(json!({"type": "story", "title": " "})), 400, "bad_request"),
        (create(json!({"type": "story", "priority": "soon"})), 400, "bad_request"),
        (claim(&nobody, &dev), 404, "no_item"),
        (claim(&"x", &dev), 404, "no_item"),
        (claim(&story, &nobody), 404, "no_agent"),
        (claim(&story, &pm), 403, "wrong_role"),
        (claim(&spec, &"human"), 403, "wrong_role"),
        (complete(story, dev, json!({"completed": true})), 403, "not_owner"),
        (json!({"kind": "work_release", "item_id": story}), 409, "not_claimed"),
        (json!({"kind": "work_rollback", "item_id": story, "reason": "r"}), 409, "not_done"),
        (json!({"kind": "work_retry_children", "item_id": story, "agent_id": dev}), 409, "not_done"),
        (json!({"kind": "work_comment", "item_id": nobody, "author": "a", "text": "t"}), 404, "no_item"),
    ] {
        assert_eq!(world.refused(&request), (status, code.to_owned()), "{request}");
    }
    world.claim(story, dev).expect("claimed");
    assert_eq!(world.claim(story, dev).expect("it has it already")["status"], "claimed");
    let prd = world.claimed_prd(sm);
    let bad_child = json!({"kind": "work_complete", "item_id": prd, "agent_id": sm, "output": {"stories": [1]},
        "children": [{"type": "bug", "title": "b"}]});
    for (request, status, code) in [
        (claim(&story, &other), 409, "already_claimed"),
        (complete(story, other, json!({"completed": true})), 403, "not_owner"),
        (complete(story, dev, json!({"completed": false})), 422, "bad_output"),
        (bad_child, 422, "bad_children"),
        (json!({"kind": "work_release", "item_id": story, "agent_id": other}), 403, "not_owner"),
        (json!({"kind": "work_escalate", "item_id": story, "agent_id": other, "reason": "r"}), 403, "not_owner"),
        (json!({"kind": "work_complete", "item_id": story, "agent_id": dev, "output": [1]}), 400, "bad_request"),
    ] {
        assert_eq!(world.refused(&request), (status, code.to_owned()), "{request}");
    }
    world.complete(story, dev, &json!({"output": {"completed": true}})).expect("completed");
    assert_eq!(world.refused(&claim(&story, &dev)), (409, "already_done".to_owned()));
    assert_eq!(world.refused(&complete(story, dev, json!({"completed": true}))), (409, "already_done".to_owned()));
    assert_eq!(world.journal.iter().filter(|line| line["type"] == "work").count(), 6);
}

#[test]
fn a_child_keeps_the_creator_of_its_parent_and_its_history_says_who_made_it() {
    let (mut world, [pm, sm, ..]) = World::new();
    let spec = world.create("project_spec");
    world.claim(spec, pm).expect("claimed");
    let output = json!({"requirements": ["r"], "prd": {"goal": "g"}});
    let children = json!([{"type": "prd", "title": "p"}]);
    let done = world.complete(spec, pm, &json!({"output": output, "children": children})).expect("completed");
    let prd = id_of(&done["children"][0]);
    world.claim(prd, sm).expect("claimed");
    let asked = json!({"kind": "work_create", "type": "story", "title": "s", "parent_id": prd, "agent_id": sm});
    let story = id_of(&world.ask(&asked).expect("made"));
    for (item, maker) in [(prd, pm), (story, sm)] {
        let view = world.view(item);
        assert_eq!((&view["created_by"], &view["history"][0]["by"]), (&json!("human"), &json!(maker)), "{view}");
    }
    assert_eq!(world.view(prd)["children"], json!([story]));
}

#[test]
fn an_agent_creates_children_of_its_own_items_only() {
    let (mut world, [pm, sm, ..]) = World::new();
    let prd = world.claimed_prd(sm);
    let create = |more: Value| {
        let mut request = json!({"kind": "work_create", "type": "story", "title": "t"});
        more.as_object().into_iter().flatten().for_each(|(name, value)| request[name] = value.clone());
        request
    };
    let nobody = "0b0e4f6e-3a0f-4a52-9df0-5cf0e7c9a001";
    for (more, status, code) in [
        (json!({"agent_id": sm}), 403, "not_owner"),
        (json!({"agent_id": pm, "parent_id": prd}), 403, "not_owner"),
        (json!({"agent_id": nobody, "parent_id": prd}), 404, "no_agent"),
        (json!({"agent_id": sm, "parent_id": prd, "type": "bug"}), 422, "not_created"),
    ] {
        assert_eq!(world.refused(&create(more.clone())), (status, code.to_owned()), "{more}");
    }
    assert_eq!(world.view(prd)["children"], json!([]));
    for more in [
        json!({"agent_id": sm, "parent_id": prd}),
        json!({"agent_id": "human", "parent_id": prd}),
        json!({"agent_id": "human"}),
    ] {
        world.ask(&create(more)).expect("made");
    }
    assert_eq!(world.view(prd)["children"].as_array().map(Vec::len), Some(2));
    check(&world).expect("whole");
}

#[test]
fn a_check_says_what_a_completion_would_and_changes_nothing() {
    let (mut world, [pm, sm, ..]) = World::new();
    let prd = world.claimed_prd(sm);
    let before = world.view(prd);
    let good = json!({"type": "story", "title": "one"});
    let bad = json!({"type": "bug", "title": "two"});
    let check = |world: &mut World, more: Value| {
        let mut request = json!({"kind": "work_complete", "item_id": prd, "agent_id": sm, "check": true});
        more.as_object().into_iter().flatten().for_each(|(name, value)| request[name] = value.clone());
        world.ask(&request)
    };
    let answer = check(&mut world, json!({"output": {"stories": [1]}, "children": [good]})).expect("it could");
    assert_eq!(answer, json!({"item_id": prd, "children": [], "failed": [], "checked": true}));
    let partly = json!({"output": {"stories": [1]}, "children": [good, bad], "partial": true});
    let answer = check(&mut world, partly).expect("in part");
    assert_eq!((answer["failed"].as_array().map(Vec::len), &answer["failed"][0]["title"]), (Some(1), &json!("two")));
    let refused = check(&mut world, json!({"output": {}, "children": [bad]})).expect_err("it could not");
    assert_eq!((refused.status, refused.errors.len()), (422, 2), "{refused:?}");
    let others = check(&mut world, json!({"output": {"stories": [1]}, "agent_id": pm})).expect_err("not its item");
    assert_eq!((others.status, others.code.as_str()), (403, "not_owner"));
    assert_eq!(world.view(prd), before);
    assert!(world.all().iter().all(|item| item.kind != "story"), "no child was made");
}

#[test]
fn every_fault_of_output_and_children_is_listed_with_its_place() {
    let (mut world, [pm, ..]) = World::new();
    let spec = world.create("project_spec");
    world.claim(spec, pm).expect("claimed");
    let children = json!([{"type": "prd", "title": "t"}, {"type": "story", "title": ""}]);
    let refused = world.complete(spec, pm, &json!({"output": {"prd": ""}, "children": children})).expect_err("bad");
    let pointers: Vec<&str> = refused.errors.iter().map(|fault| fault.pointer.as_str()).collect();
    assert_eq!(
        pointers,
        ["/output/requirements", "/output/prd", "/children/1/type", "/children/1/title"],
        "{refused:?}"
    );
    assert_eq!((refused.status, refused.code.as_str()), (422, "bad_output"));
    assert!(refused.message.contains("/output/requirements: requirements is missing"), "{}", refused.message);
    let children = json!({"output": {}, "children": [5]});
    let refused = world.complete(spec, pm, &children).expect_err("bad");
    let said: Vec<&str> = refused.errors.iter().map(|fault| fault.message.as_str()).collect();
    assert!(said.contains(&"must be an object, and is integer `5`"), "{said:?}");
}

#[test]
fn a_partial_completion_makes_the_good_ones_and_the_rest_is_retried_later() {
    let (mut world, [_, sm, dev, _]) = World::new();
    let prd = world.claimed_prd(sm);
    let children = json!([
        {"type": "story", "title": "one"}, {"type": "bug", "title": "two"}, {"type": "story", "title": " "},
        {"type": "story", "title": "four"}, {"title": "five"},
    ]);
    let all = json!({"output": {"stories": [1]}, "children": children});
    assert_eq!(world.complete(prd, sm, &all).expect_err("all or nothing").status, 422);
    assert_eq!(world.item(prd).status, Status::Claimed);
    let mut partial = all;
    partial["partial"] = json!(true);
    let made = world.complete(prd, sm, &partial).expect("207");
    assert!(world.answers.values().any(|reply| matches!(reply, Reply::Partial(_))), "{:?}", world.answers);
    let failed: Vec<u64> =
        made["failed"].as_array().expect("a list").iter().map(|failed| failed["index"].as_u64().expect("n")).collect();
    assert_eq!((made["children"].as_array().expect("a list").len(), failed), (2, vec![1, 2, 4]));
    assert_eq!(made["failed"][0]["errors"][0]["pointer"], "/children/1/type");
    assert_eq!(world.view(prd)["failed_children"].as_array().expect("a list").len(), 3);
    let retry = |who: &str, more: Value| {
        let mut request = json!({"kind": "work_retry_children", "item_id": prd, "agent_id": who});
        more.as_object().into_iter().flatten().for_each(|(name, value)| request[name] = value.clone());
        request
    };
    let (sm, dev) = (sm.to_string(), dev.to_string());
    assert_eq!(world.refused(&retry(&dev, json!({}))), (403, "not_owner".to_owned()));
    assert_eq!(world.refused(&retry(&sm, json!({}))), (422, "bad_children".to_owned()), "as bad as before");
    assert_eq!(world.refused(&retry(&sm, json!({"children": []}))), (400, "bad_children".to_owned()), "none is named");
    let corrected = json!([{"type": "story", "title": "two"}, {"type": "story", "title": "three"}, {"title": "five"}]);
    let made = world.ask(&retry(&sm, json!({"children": corrected, "partial": true}))).expect("made");
    assert_eq!((made["children"].as_array().expect("a list").len(), made["failed"][0]["index"].as_u64()), (2, Some(2)));
    let last = json!([{"type": "story", "title": "five"}]);
    world.ask(&retry("human", json!({"children": last}))).expect("made");
    assert_eq!(world.refused(&retry(&sm, json!({}))), (409, "nothing_failed".to_owned()));
    assert_eq!(world.item(prd).children.len(), 5);
    world.ask(&json!({"kind": "work_rollback", "item_id": prd, "reason": "r"})).expect("all of them go");
    assert!(world.item(prd).children.is_empty());
    check(&world).expect("whole");
}

#[test]
fn an_escalated_item_is_out_of_agents_reach_until_a_person_releases_it() {
    let (mut world, [_, _, dev, other]) = World::new();
    let story = world.create("story");
    world.claim(story, dev).expect("claimed");
    let escalate = json!({"kind": "work_escalate", "item_id": story, "agent_id": dev, "reason": "no access"});
    assert_eq!(world.ask(&escalate).expect("escalated"), json!({"item_id": story, "status": "escalated"}));
    let view = world.view(story);
    assert_eq!(view["comments"][0]["text"], "**Escalated to human**: no access");
    assert_eq!((&view["comments"][0]["system"], &view["escalation_reason"]), (&json!(true), &json!("no access")));
    assert!(view["escalated_at"].is_string() && world.told.iter().any(|text| text.contains("no access")));
    let claim = |who: AgentId| json!({"kind": "work_claim", "item_id": story, "agent_id": who});
    assert_eq!(world.refused(&claim(dev)), (409, "escalated".to_owned()));
    assert_eq!(world.refused(&claim(other)), (409, "escalated".to_owned()));
    for who in [json!(null), json!(dev)] {
        let release = json!({"kind": "work_release", "item_id": story, "agent_id": who});
        assert_eq!(world.refused(&release), (403, "not_owner".to_owned()), "only a person says so");
    }
    let release = json!({"kind": "work_release", "item_id": story, "agent_id": "human", "reason": "access is there"});
    assert_eq!(world.ask(&release).expect("released")["status"], "ready");
    assert_eq!(world.refused(&claim(dev)), (403, "escalated_before".to_owned()));
    world.ask(&claim(other)).expect("somebody else may");
    check(&world).expect("whole");
}

#[test]
fn a_person_claims_human_items_and_escalated_ones() {
    let (mut world, [pm, ..]) = World::new();
    let (spec, task) = (world.create("project_spec"), world.create("task"));
    world.claim(task, "human").expect("a person may claim a task too");
    world.complete(task, "human", &json!({"output": {"note": "done"}})).expect("completed");
    assert_eq!(world.view(task)["completed_by"], "human");
    world.claim(spec, pm).expect("claimed");
    world.ask(&json!({"kind": "work_escalate", "item_id": spec, "agent_id": pm, "reason": "r"})).expect("escalated");
    world.claim(spec, "human").expect("a person may claim an escalated item");
    assert_eq!(world.view(spec)["claimed_by"], "human");
}

#[test]
fn a_rollback_gives_back_the_state_before() {
    let (mut world, [_, sm, dev, _]) = World::new();
    let prd = world.claimed_prd(sm);
    let before = world.view(prd);
    let children = json!([{"type": "story", "title": "one"}, {"type": "story", "title": "two"}]);
    let made = world.complete(prd, sm, &json!({"output": {"stories": [1]}, "children": children})).expect("completed");
    let stories: Vec<ItemId> = made["children"].as_array().expect("a list").iter().map(id_of).collect();
    world.claim(stories[0], dev).expect("claimed");
    let rollback = json!({"kind": "work_rollback", "item_id": prd, "reason": "the wrong stories"});
    let refused = world.ask(&rollback).expect_err("one is claimed");
    assert_eq!((refused.status, refused.code.as_str()), (409, "children_taken"));
    assert_eq!(refused.errors.len(), 1);
    assert!(refused.message.contains(&stories[0].to_string()), "{}", refused.message);
    world.ask(&json!({"kind": "work_release", "item_id": stories[0], "agent_id": dev})).expect("released");
    assert_eq!(world.ask(&rollback).expect("undone"), json!({"item_id": prd, "status": "claimed"}));
    let mut after = world.view(prd);
    let lines = after["history"].as_array().expect("a history").len();
    assert_eq!((lines, &after["history"][lines - 1]["reason"]), (4, &json!("the wrong stories")));
    for name in ["history", "claimed_at"] {
        after[name] = before[name].clone();
    }
    assert_eq!(after, before);
    for story in stories {
        let item = world.item(story);
        assert_eq!(
            (item.status, item.history.last().map(|entry| entry.action)),
            (Status::Withdrawn, Some(Action::Withdrawn))
        );
    }
    assert_eq!(world.refused(&rollback), (409, "not_done".to_owned()));
    // If the owner has ended, the item becomes ready for another agent.
    world.complete(prd, sm, &json!({"output": {"stories": [1]}})).expect("completed");
    world.end(sm, None);
    assert_eq!(world.ask(&rollback).expect("undone")["status"], "ready");
    check(&world).expect("whole");
}

#[test]
fn a_completion_may_say_what_follows() {
    let (mut world, [_, _, dev, _]) = World::new();
    for (next, status) in [("ready", Status::Ready), ("escalated", Status::Escalated), ("done", Status::Done)] {
        let task = world.create("task");
        world.claim(task, dev).expect("claimed");
        let more = json!({"output": {"draft": 1}, "next_status": next});
        world.complete(task, dev, &more).expect("completed");
        let item = world.item(task);
        assert_eq!((item.status, item.output), (status, Some(json!({"draft": 1}))));
        world.ask(&json!({"kind": "work_rollback", "item_id": task, "reason": "r"})).expect("undone");
        assert_eq!((world.item(task).status, world.item(task).output), (Status::Claimed, None));
        world.ask(&json!({"kind": "work_release", "item_id": task, "agent_id": dev})).expect("released");
    }
    let bad =
        json!({"kind": "work_complete", "item_id": "x", "agent_id": "human", "output": {}, "next_status": "claimed"});
    assert_eq!(world.refused(&bad), (400, "bad_request".to_owned()));
}

#[test]
fn comments_are_kept_on_done_items_too() {
    let (mut world, [_, sm, ..]) = World::new();
    let (prd, _) = world.stories(sm, 1);
    let comment = json!({"kind": "work_comment", "item_id": prd, "author": "Ada", "text": "good"});
    let id = world.ask(&comment).expect("said")["comment_id"].clone();
    let view = world.view(prd);
    assert_eq!(view["comments"][0]["comment_id"], id);
    assert_eq!((&view["comments"][0]["author"], &view["status"]), (&json!("Ada"), &json!("done")));
}

#[test]
fn work_requests_beyond_a_bound_are_refused() {
    let (mut world, [_, sm, dev, _]) = World::new();
    let prd = world.claimed_prd(sm);
    let complete = |output: Value, children: usize| {
        let children: Vec<Value> = (0..children).map(|_| json!({"type": "story", "title": "t"})).collect();
        json!({"kind": "work_complete", "item_id": prd, "agent_id": sm, "output": output, "children": children})
    };
    let large = |bytes: usize| json!({"stories": ["x".repeat(bytes)]});
    assert_eq!(world.refused(&complete(large(257 * 1024), 0)), (413, "too_large".to_owned()));
    assert_eq!(world.refused(&complete(large(200 * 1024), 100)), (413, "too_large".to_owned()));
    assert_eq!(world.refused(&complete(large(10), 257)), (400, "bad_request".to_owned()));
    let story = world.create("story");
    let release = json!({"kind": "work_release", "item_id": story, "agent_id": dev});
    let mut refused = None;
    for _ in 0..1_100 {
        match world.claim(story, dev) {
            Ok(_) => drop(world.ask(&release).expect("released")),
            Err(why) => {
                refused = Some((why.status, why.code));
                break;
            }
        }
    }
    assert_eq!(refused, Some((429, "too_many".to_owned())), "a loop of claims has an end");
}
