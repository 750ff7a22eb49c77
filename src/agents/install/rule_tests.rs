//! Permission rules of a person's own beside ours.

use super::*;

/// They only look like ours.
const LOOK_ALIKE: &str = r#"{"permissions": {"allow": [
  "Read(//srv/crm/data/personas/**)", "Edit(//srv/crm/data/personas/*/handoffs/**)"
]}}
"#;

fn rules(text: &str) -> Vec<String> {
    let value: Value = serde_json::from_str(text).expect("JSON");
    let all = value["permissions"]["allow"].as_array().cloned().unwrap_or_default();
    all.iter().filter_map(|rule| rule.as_str().map(str::to_owned)).collect()
}

/// The same file as another program writes it.
fn rewritten(text: &str) -> String {
    let value: Value = serde_json::from_str(text).expect("JSON");
    format!("{value:#}")
}

#[test]
fn a_rule_of_the_users_own_that_looks_like_ours_stays() {
    let own = rules(LOOK_ALIKE);
    let desk = Desk::with(LOOK_ALIKE);
    assert!(desk.install());
    let both = rules(&desk.text());
    assert_eq!((both.len(), &both[..2]), (4, &own[..]), "{both:?}");
    assert!(!desk.install(), "a second time there is nothing to do");
    desk.uninstall();
    assert_eq!(desk.text(), LOOK_ALIKE);
    // Also where our pieces can't be found as they were put in.
    desk.install();
    fs::write(desk.settings(), rewritten(&desk.text())).expect("rewritten");
    desk.uninstall();
    assert_eq!(rules(&desk.text()), own);
}

#[test]
fn rules_for_a_home_that_has_moved_are_known_by_its_record() {
    for rewrite in [str::to_owned as fn(&str) -> String, rewritten] {
        let mut desk = Desk::with(LOOK_ALIKE);
        desk.install();
        fs::rename(desk.path("tasuki"), desk.path("moved")).expect("moved");
        desk.home = "moved".to_owned();
        fs::write(desk.settings(), rewrite(&desk.text())).expect("written");
        assert!(desk.install());
        let both = rules(&desk.text());
        assert_eq!((both.len(), &both[..2]), (4, &rules(LOOK_ALIKE)[..]), "{both:?}");
        assert!(both[2..].iter().all(|rule| rule.contains("/moved/data/personas/")), "{both:?}");
        desk.uninstall();
        assert_eq!(rules(&desk.text()), rules(LOOK_ALIKE));
    }
}
