//! A text and a list of known agents go in, an id or a refusal comes out.

use super::*;

fn known(id: &str, slug: Option<&str>, living: bool) -> NamedAgent {
    let pane = Some(format!("%{}", &id[..1]));
    NamedAgent { id: id.to_owned(), slug: slug.map(str::to_owned), living, pane, about: "idle %1".to_owned() }
}

fn some() -> Vec<NamedAgent> {
    vec![
        known("aaaa1111-0000", Some("kai"), false),
        known("aaab2222-0000", Some("kai"), true),
        known("bbbb3333-0000", Some("mia"), true),
        known("bbbc4444-0000", Some("mia"), true),
        known("cccc5555-0000", Some("old"), false),
        known("dddd6666-0000", None, true),
    ]
}

fn pick(text: &str, known: &[NamedAgent]) -> Result<String, CliError> {
    pick_agent(text, known, |slug| format!("tasuki agent create {slug}"))
}

fn code(text: &str) -> String {
    pick(text, &some()).unwrap_or_else(|error| error.code)
}

#[test]
fn a_slug_names_the_living_agent() {
    assert_eq!(code("kai"), "aaab2222-0000");
}

#[test]
fn an_agent_that_has_ended_is_named_by_its_id_alone() {
    assert_eq!(code("cccc"), "cccc5555-0000");
    let error = pick("old", &some()).expect_err("it has ended");
    assert_eq!(
        (error.code.as_str(), error.message.as_str()),
        ("no_agent", "No agent of old is running: its agent has ended.")
    );
    assert!(error.hint.is_some_and(|hint| hint.contains("tasuki handoff cccc5555 --author salvage")));
}

#[test]
fn a_pane_names_the_agent_that_lives_in_it() {
    let all = some();
    assert_eq!(in_pane("%d", &all).as_deref(), Some("dddd6666-0000"));
    assert_eq!(in_pane("%a", &all).as_deref(), Some("aaab2222-0000"));
    assert_eq!(in_pane("%c", &all), None, "it has ended");
    assert_eq!(in_pane("%b", &all), None, "two can't be in one pane");
    assert!(is_pane("%12") && !is_pane("%") && !is_pane("%x") && !is_pane("12"));
}

#[test]
fn the_agent_in_the_pane_counts_before_the_agent_in_the_environment() {
    let all = some();
    let own = |named: &str, pane: Option<&str>| own_of(Some(named.to_owned()), &all, pane);
    for pane in [Some("%d"), None] {
        assert_eq!(own("DDDD6666-0000", pane).as_deref(), Some("dddd6666-0000"));
    }
    // A window beside an agent may have its environment.
    assert_eq!(own("DDDD6666-0000", Some("%a")).as_deref(), Some("aaab2222-0000"));
    assert_eq!(own("DDDD6666-0000", Some("%z")), None);
    // A new session in the same process keeps the old environment, also when the view of the old agent is gone.
    for ended in ["cccc5555-0000", "eeee7777-0000"] {
        assert_eq!(own(ended, Some("%d")).as_deref(), Some("dddd6666-0000"));
        assert_eq!(own(ended, Some("%z")).as_deref(), Some(ended), "nobody else is there");
        assert_eq!(own(ended, None).as_deref(), Some(ended));
    }
    assert_eq!(own_of(None, &all, Some("%d")).as_deref(), Some("dddd6666-0000"));
    assert_eq!(own_of(None, &all, None), None);
}

#[test]
fn a_prefix_must_be_unique_and_case_does_not_matter() {
    assert_eq!(code("AAAB"), "aaab2222-0000");
    assert_eq!(code("d"), "dddd6666-0000");
    assert_eq!(code("aaa"), "ambiguous");
    assert_eq!(code("zz"), "no_agent");
    assert_eq!(code(""), "no_agent");
}

#[test]
fn an_ambiguity_lists_the_candidates() {
    let error = pick("mia", &some()).expect_err("two living agents");
    let hint = error.hint.expect("a list");
    assert!(hint.contains("bbbb3333-0000") && hint.contains("bbbc4444-0000"), "{hint}");
    assert_eq!(error.exit, crate::exit::REFUSED);
}

#[test]
fn a_persona_with_a_living_agent_goes_before_ids_that_begin_alike() {
    let all = [
        known("ed120000-0000", None, true),
        known("edcc0000-0000", Some("kim"), false),
        known("1234-0000", Some("ed"), true),
        known("2345-0000", Some("ed"), false),
    ];
    assert_eq!(pick("ed", &all), Ok("1234-0000".to_owned()));
    assert_eq!(pick("edc", &all), Ok("edcc0000-0000".to_owned()));
    // A `shutdown feed` that is repeated must not end somebody else.
    let ended = [known("feed0000-0000", None, true), known("1234-0000", Some("feed"), false)];
    let error = pick("feed", &ended).expect_err("its agent has ended");
    let hint = error.hint.unwrap_or_default();
    assert!(error.message.contains("its agent has ended") && hint.contains("type its whole id"), "{hint}");
    assert_eq!(pick("feed0", &ended), Ok("feed0000-0000".to_owned()));
}

#[test]
fn a_persona_names_its_agent_in_a_pane_before_sessions_without_a_pane() {
    let nowhere = |id: &str| NamedAgent { pane: None, ..known(id, Some("mia"), true) };
    let in_pane = known("aaaa1111-0", Some("mia"), true);
    assert_eq!(pick("mia", &[nowhere("bbbb1111-0"), in_pane.clone(), nowhere("cccc1111-0")]), Ok(in_pane.id));
    assert_eq!(pick("mia", &[nowhere("bbbb1111-0")]), Ok("bbbb1111-0".to_owned()));
    let two = [nowhere("bbbb1111-0"), nowhere("cccc1111-0")];
    assert_eq!(pick("mia", &two).expect_err("two without a pane").code, "ambiguous");
}

#[test]
fn the_refusal_says_that_all_agents_of_a_persona_have_ended() {
    let all = ["aaaa1111-0", "bbbb1111-0", "cccc1111-0"].map(|id| known(id, Some("mia"), false));
    let error = pick("mia", &all).expect_err("nobody lives");
    assert_eq!(
        (error.code.as_str(), error.message.as_str()),
        ("no_agent", "No agent of mia is running: all 3 have ended.")
    );
    let hint = error.hint.expect("what to do");
    assert!(["tasuki agent create mia", "tasuki handoff ID --author salvage"].iter().all(|part| hint.contains(part)));
}

#[test]
fn an_agent_that_was_not_found_is_named_in_the_message() {
    assert_eq!(pick("lis\u{1b}t", &some()).expect_err("none").message, "Agent not found: \"list\"");
}

#[test]
fn a_short_id_names_the_id_that_it_was_made_from() {
    let ids = ["aaaa1111-00", "aaaa1111-01", "bbbb2222-00", "cc"];
    let short = short(ids);
    let shown: Vec<&str> = short.values().map(String::as_str).collect();
    assert_eq!(shown, ["aaaa1111-00", "aaaa1111-01", "bbbb2222", "cc"]);
    let known: Vec<String> = ids.map(str::to_owned).to_vec();
    for (id, short) in &short {
        assert_eq!(pick_id("agent", short, &known).as_ref(), Ok(id));
    }
}

#[test]
fn handoffs_are_named_by_a_unique_prefix() {
    let ids = ["0193aa".to_owned(), "0193ab".to_owned()];
    assert_eq!(pick_id("handoff", "0193aa", &ids), Ok("0193aa".to_owned()));
    assert_eq!(pick_id("handoff", "0193", &ids).expect_err("two").code, "ambiguous");
    let error = pick_id("handoff", "x", &ids).expect_err("none");
    assert_eq!((error.code.as_str(), error.message.as_str()), ("no_handoff", "Handoff not found: \"x\""));
}

#[test]
fn a_name_is_not_called_unknown_if_some_views_cannot_be_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let home = Home::resolve(Some(folder.path())).expect("a home");
    std::fs::create_dir_all(home.agent_views()).expect("a folder of views");
    let missing = agent(&home, "kai").expect_err("there is no agent");
    assert_ne!(missing.code, "not_json");

    std::fs::write(home.agent_views().join("aaaa1111.json"), "{").expect("a view that is cut short");
    let error = agent(&home, "kai").expect_err("it may be the agent of that view");
    assert_eq!((error.exit, error.code.as_str()), (crate::exit::REFUSED, "not_json"));
    assert!(error.message.starts_with("Agent not found: \"kai\". But 1 file can't be read, and it may be in it."));
    assert!(agent(&home, "%3").is_err_and(|error| error.code == "not_json"));

    std::fs::create_dir_all(home.personas().join("kai")).expect("a persona");
    std::fs::create_dir_all(home.handoff_views()).expect("a folder of views");
    std::fs::write(home.handoff_views().join("5f2a.json"), "{").expect("a view that is cut short");
    let error = handoff(&home, "kai").expect_err("the last handoff may be that one");
    assert_eq!((error.code.as_str(), error.hint.is_some_and(|hint| hint.contains("by its id"))), ("not_json", true));
}
