//! Importing items, and reading new rules.

use super::*;

fn ask(items: &Value) -> Value {
    json!({"kind": "work_import", "items": items})
}

const A: &str = "0b0e4f6e-3a0f-4a52-9df0-5cf0e7c9a001";
const B: &str = "0b0e4f6e-3a0f-4a52-9df0-5cf0e7c9a002";

#[test]
fn exported_items_are_imported_unchanged_without_their_claims() {
    let (mut world, [pm, sm, ..]) = World::new();
    let spec = world.create("project_spec");
    world.claim(spec, pm).expect("claimed");
    let more = json!({"output": {"requirements": [1], "prd": 1}, "children": [{"type": "prd", "title": "p"}]});
    let prd = id_of(&world.complete(spec, pm, &more).expect("completed")["children"][0]);
    world.claim(prd, sm).expect("claimed");
    let exported = [world.view(prd), world.view(spec)];
    let (mut elsewhere, _) = World::new();
    let answer = elsewhere.ask(&ask(&json!(exported))).expect("imported");
    assert_eq!((&answer["status"], &answer["item_ids"]), (&json!("imported"), &json!([spec, prd])), "parents first");
    let (old, new) = (world.view(spec), elsewhere.view(spec));
    for name in ["status", "title", "output", "children", "completed_at", "completed_by", "created_at", "priority"] {
        assert_eq!(new[name], old[name], "{name}");
    }
    assert_eq!(new["history"].as_array().expect("a list").len(), 4, "what was done, and the import");
    let child = elsewhere.view(prd);
    assert_eq!((&child["status"], &child["claimed_by"]), (&json!("ready"), &Value::Null));
    assert_eq!((&child["parent_output"], &child["project_id"]), (&old["output"], &json!(spec)));
    let again = elsewhere.refused(&ask(&json!(exported)));
    assert_eq!(again, (409, "exists".to_owned()));
}

#[test]
fn an_import_takes_all_items_or_none() {
    let (mut world, _) = World::new();
    let story = |more: Value| {
        let mut item = json!({"type": "story", "title": "t"});
        more.as_object().into_iter().flatten().for_each(|(name, value)| item[name] = value.clone());
        item
    };
    let in_rings =
        Rules::with("[types.story]\nprocessed_by = [\"developer\"]\ncreates = [\"story\"]\n").expect("rules");
    world.decide(Event::Rules(Ok(Box::new(in_rings))), None);
    for (items, status, code) in [
        (
            json!([story(json!({"item_id": A, "parent_id": B})), story(json!({"item_id": B, "parent_id": A}))]),
            422,
            "cycle",
        ),
        (json!([story(json!({"item_id": A, "parent_id": A}))]), 422, "cycle"),
        (json!([story(json!({})), story(json!({"parent_id": B}))]), 404, "no_item"),
        (json!([story(json!({})), {"type": "epic", "title": "t"}]), 422, "no_rule"),
        (json!([story(json!({"title": ""}))]), 422, "bad_items"),
        (json!([story(json!({"colour": "red"}))]), 422, "bad_items"),
        (json!([story(json!({"item_id": "x"}))]), 422, "bad_items"),
        (json!([story(json!({"item_id": A})), story(json!({"item_id": A}))]), 422, "bad_items"),
        (json!([story(json!({"item_id": A})), {"type": "bug", "title": "t", "parent_id": A}]), 422, "not_created"),
        (
            json!([story(json!({"item_id": A, "status": "withdrawn"})), story(json!({"parent_id": A}))]),
            409,
            "withdrawn",
        ),
        (json!([]), 400, "bad_request"),
    ] {
        assert_eq!(world.refused(&ask(&items)), (status, code.to_owned()), "{items}");
    }
    world
        .ask(&ask(&json!([story(json!({})), story(json!({"item_id": A})), story(json!({"parent_id": A}))])))
        .expect("good");
    assert_eq!(world.all().len(), 3);
    check(&world).expect("whole");
}

#[test]
fn an_import_puts_no_more_children_under_one_item_than_a_request_may_create() {
    let (mut world, _) = World::new();
    let prd = json!({"type": "prd", "title": "p", "item_id": A});
    let stories = |count| (0..count).map(|_| json!({"type": "story", "title": "t", "parent_id": A}));
    let withdrawn = json!({"type": "story", "title": "t", "parent_id": A, "status": "withdrawn"});
    let all: Vec<Value> = [prd, withdrawn].into_iter().chain(stories(9_000)).collect();
    world.ask(&ask(&json!(all))).expect("room for 1,000 more");
    let more: Vec<Value> = stories(1_001).collect();
    assert_eq!(world.refused(&ask(&json!(more))), (429, "too_many".to_owned()), "with those that it has");
    world.ask(&ask(&json!(more[1..]))).expect("just as many");
    assert_eq!(world.item(A.parse().expect("an id")).children.len(), 10_000);
}

#[test]
fn a_fault_within_an_imported_item_is_named_by_its_place() {
    let (mut world, _) = World::new();
    let entry = json!({"at": "2026-11-20T08:00:00Z", "action": "created", "by": "human", "to": "lost"});
    let refused = world.ask(&ask(&json!([{"type": "story", "title": "t", "history": [entry]}]))).expect_err("bad");
    assert_eq!(refused.errors[0].pointer, "/items/0/history/0/to");
}

#[test]
fn bad_rules_are_reported_and_the_old_rules_stay() {
    let (mut world, _) = World::new();
    let before = world.state.settings.rules.clone();
    let decision = world.decide(Event::Rules(Err("rules.toml, line 3, column 7: no".to_owned())), None);
    assert_eq!(decision.errors.len(), 1);
    assert_eq!(decision.errors[0].code, "bad_rules");
    assert!(decision.errors[0].message.contains("line 3, column 7"));
    assert_eq!(world.state.settings.rules, before);
}
