//! The verdicts on hooks, as a table.

use super::super::check::CheckState;
use super::*;
use serde_json::json;

fn facts(presence: Presence, fired: Fired) -> Facts {
    let found =
        Found { file: "/u/settings.json".into(), presence, is_recorded: true, fired: vec![("Stop".to_owned(), fired)] };
    Facts { profile: "claude".to_owned(), is_used: true, by_launch: true, found: Some(Ok(found)) }
}

fn state(facts: &Facts) -> Option<(CheckState, bool)> {
    judge(facts).map(|check| (check.state, check.repair.is_some()))
}

#[test]
fn installed_hooks_are_judged_by_whether_they_fire_and_then_by_whether_they_are_up_to_date() {
    let nothing = || Fired::Nothing("exit status: 127".to_owned());
    assert_eq!(state(&facts(Presence::Whole, Fired::Arrived)), Some((CheckState::Ok, false)));
    assert_eq!(
        state(&facts(Presence::Whole, Fired::Complained("no rule".to_owned()))),
        Some((CheckState::Warn, false))
    );
    assert_eq!(state(&facts(Presence::Whole, nothing())), Some((CheckState::Fail, false)));
    assert_eq!(state(&facts(Presence::Stale, Fired::Arrived)), Some((CheckState::Warn, true)));
    assert_eq!(state(&facts(Presence::Stale, nothing())), Some((CheckState::Fail, true)));
}

#[test]
fn hooks_of_another_home_are_reported_only_if_they_are_needed_and_are_never_repaired() {
    let with = |is_recorded, is_used, fired: Fired| {
        let mut facts = facts(Presence::Stale, fired);
        facts.is_used = is_used;
        if let Some(Ok(found)) = facts.found.as_mut() {
            found.is_recorded = is_recorded;
        }
        state(&facts)
    };
    let other = || Fired::Elsewhere("x".to_owned());
    assert_eq!(with(true, true, other()), Some((CheckState::Fail, false)));
    assert_eq!(with(false, true, other()), Some((CheckState::Fail, false)));
    assert_eq!(with(false, false, other()), None);
    // Outdated hooks that tasuki did not install are reported, and left as they are.
    assert_eq!(with(false, true, Fired::Arrived), Some((CheckState::Warn, false)));
}

#[test]
fn absent_hooks_are_a_failure_if_they_were_installed_or_are_needed() {
    let absent = |is_recorded, is_used, by_launch| {
        let mut facts = facts(Presence::Absent, Fired::Arrived);
        (facts.is_used, facts.by_launch) = (is_used, by_launch);
        if let Some(Ok(found)) = facts.found.as_mut() {
            found.is_recorded = is_recorded;
        }
        state(&facts)
    };
    assert_eq!(absent(true, false, true), Some((CheckState::Fail, false)));
    assert_eq!(absent(false, true, false), Some((CheckState::Fail, false)));
    assert_eq!(absent(false, true, true), Some((CheckState::Ok, false)));
    assert_eq!(absent(false, false, true), None);
}

#[test]
fn an_unreadable_configuration_and_a_profile_without_hooks_count_only_if_the_profile_is_used() {
    let with = |found, is_used| state(&Facts { profile: "x".to_owned(), is_used, by_launch: true, found });
    assert_eq!(with(None, true), Some((CheckState::Ok, false)));
    assert_eq!(with(None, false), None);
    assert_eq!(with(Some(Err("line 3".to_owned())), true), Some((CheckState::Warn, false)));
    assert_eq!(with(Some(Err("line 3".to_owned())), false), None);
}

#[test]
fn all_built_in_profiles_except_gemini_launch_with_hooks() {
    let profiles = Profiles::load(None).expect("the built-in ones");
    let without: Vec<&str> =
        profiles.iter().filter(|profile| !launches_with_hooks(profile)).map(|profile| profile.name.as_str()).collect();
    assert_eq!(without, ["gemini"]);
}

#[test]
fn an_agent_that_has_reported_nothing_is_named_by_its_pane() {
    let agent = |state: &str, hooks: &str| {
        let view = json!({"pane": "%3", "state": state, "hooks": hooks});
        ViewFile::read(view.to_string().into_bytes()).expect("JSON").expect("an object")
    };
    let none = BTreeMap::new();
    let judge_agents = |agents: &[ViewFile<AgentView>]| super::judge_agents(agents, &none, Path::new("/h"));
    assert_eq!(judge_agents(&[]).state, CheckState::Skipped);
    assert_eq!(judge_agents(&[agent("idle", "seen"), agent("starting", "unseen")]).state, CheckState::Ok);
    let silent = judge_agents(&[agent("idle", "unseen")]);
    assert_eq!(silent.state, CheckState::Warn);
    assert!(silent.said.contains("%3"));
    let reopened = |persona: Option<&str>| {
        let view = json!({"pane": "%4", "state": "idle", "hooks": "unseen", "reopened": true, "persona_slug": persona});
        judge_agents(&[ViewFile::read(view.to_string().into_bytes()).expect("JSON").expect("an object")]).state
    };
    assert_eq!(reopened(None), CheckState::Ok, "nobody has spoken to it yet");
    assert_eq!(reopened(Some("dev")), CheckState::Warn, "it was registered: texts for it need its hooks");
}

#[test]
fn an_agent_that_reports_to_another_home_is_named_with_that_home() {
    let panes = |panes: &[&str]| panes.iter().map(|pane| (*pane).to_owned()).collect::<Vec<_>>();
    let judge = |astray: &[(&str, &[&str])]| {
        let astray = astray.iter().map(|(home, of)| ((*home).to_owned(), panes(of))).collect();
        judge_agents(&[], &astray, Path::new("/new home"))
    };
    let one = judge(&[("/no/old", &["%3"])]);
    assert_eq!(one.state, CheckState::Fail);
    assert!(one.said.starts_with("the agent in %3 reports to /no/old, which is not this home"), "{}", one.said);
    assert!(one.fix.as_ref().is_some_and(|fix| fix.contains("ln -s '/new home' /no/old; or")), "{:?}", one.fix);
    let two = judge(&[("/", &["%3", "%5"]), ("/no/x", &["%4"])]);
    assert!(two.said.contains("the agents in %3, %5 report to /, which") && two.said.contains("%4"), "{}", two.said);
    assert!(two.fix.is_some_and(|fix| !fix.contains("ln -s")), "a link can't be made where something is");
}
