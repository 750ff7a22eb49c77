//! How a client finds its way past our session, and what is moved out of it.

use super::*;

fn sessions(names: &[&str]) -> Vec<Session> {
    let numbered = (1..).zip(names);
    numbered.map(|(n, name)| Session { activity: n, id: format!("${n}"), name: (*name).to_owned() }).collect()
}

#[test]
fn a_client_that_goes_through_the_sessions_comes_to_the_next() {
    let names = ["Beta", "_tasuki-0", "_tasuki-1", "_tasuki-2", "main", "zeta"];
    for ours in ["_tasuki-0", "_tasuki-1", "_tasuki-2"] {
        let out = |left| way_out(&sessions(&names), ours, left).map(|session| session.name.clone());
        assert_eq!(out("Beta").as_deref(), Some("main"));
        assert_eq!(out("main").as_deref(), Some("Beta"));
        assert_eq!(out("zeta").as_deref(), Some("zeta"), "not through the sessions, so to the latest");
        assert_eq!(out("").as_deref(), Some("zeta"));
    }
    let out = |names: &[&str], left| way_out(&sessions(names), "_tasuki-1", left).map(|session| session.name.clone());
    assert_eq!(out(&["A", "B", "_tasuki-1"], "B").as_deref(), Some("A"), "the list is a ring");
    assert_eq!(out(&["_tasuki-1", "a", "b"], "a").as_deref(), Some("b"));
    assert_eq!(out(&["_tasuki-1", "main"], "main").as_deref(), Some("main"));
    assert_eq!(out(&["_tasuki-1", "_tasuki-2"], ""), None);
}

#[test]
fn only_programs_are_moved_and_an_empty_pane_stays() {
    let read = |rows: &[&str]| Contents::read(rows.iter().map(|row| (*row).to_owned()));
    let names = Names::new("00c0ffee");
    let empty = read(&["%0 @0 0 0"]);
    assert!(!empty.has_programs() && empty.moves(&names, "$1").is_empty());
    let mixed = read(&["%0 @0 0 0", "%1 @0 77 0", "%2 @1 78 0", "%3 @2 79 1"]);
    assert!(mixed.has_programs() && mixed.keeps_a_pane());
    let moves = mixed.moves(&names, "$1");
    assert_eq!(moves.len(), 3, "{moves:?}");
    for (line, part) in moves.iter().zip([
        "{ break-pane -d -s %1 -t \"=_tasuki-00c0ffee:\" ; move-window -d -s %1 -t \"\\$1:\" }",
        "{ move-window -d -s \"=_tasuki-00c0ffee:@1\" -t \"\\$1:\" }",
        "{ unlink-window -t \"=_tasuki-00c0ffee:@2\" }",
    ]) {
        assert!(line.ends_with(part) && line.contains(",_tasuki-00c0ffee @"), "{line}");
    }
    assert!(!read(&["%1 @0 77 0"]).keeps_a_pane());
    assert!(!read(&["%1 @0 77 1", "%2 @0 0 1"]).keeps_a_pane(), "the window goes as a whole");
}
