//! The verdicts on the service, as a table.

use super::super::check::CheckState;
use super::*;

fn facts() -> Facts {
    let properties = [("ActiveState", "active"), ("UnitFileState", "enabled"), ("Result", "success")];
    let words = ["/bin/sh", "--home", "/h", "run"].map(str::to_owned).into();
    let environment = vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())];
    Facts {
        kind: ManagerKind::Systemd,
        file: "/u/tasuki.service".into(),
        text: Ok(Some(format!("# {}", SIDECAR.ours()))),
        unit: Some(unit::Written { words, environment }),
        program: Some("/bin/sh".into()),
        home: "/h".into(),
        manager: Ok(properties.map(|(name, value)| (name.to_owned(), value.to_owned())).into()),
        lingers: true,
        is_alive: true,
        path: Some("/bin:/usr/bin".to_owned()),
        tmpdir: None,
    }
}

fn bad(change: impl FnOnce(&mut Facts)) -> Vec<(String, CheckState)> {
    let mut facts = facts();
    change(&mut facts);
    judge(&facts)
        .into_iter()
        .filter(|check| check.state != CheckState::Ok)
        .map(|check| (check.id, check.state))
        .collect()
}

fn one(id: &str, state: CheckState) -> Vec<(String, CheckState)> {
    vec![(id.to_owned(), state)]
}

fn set(facts: &mut Facts, name: &str, value: &str) {
    let properties = facts.manager.as_mut().expect("properties");
    properties.iter_mut().filter(|(own, _)| own == name).for_each(|(_, own)| value.clone_into(own));
}

#[test]
fn the_file_must_start_this_program_on_this_home() {
    let word = |at: usize, word: &'static str| {
        move |facts: &mut Facts| {
            facts.unit.as_mut().expect("a unit").words[at] = word.to_owned();
        }
    };
    assert_eq!(bad(|_| {}), []);
    assert_eq!(bad(|facts| facts.text = Ok(None)), one("service.file", CheckState::Skipped));
    assert_eq!(bad(|facts| facts.text = Ok(Some("[Unit]".to_owned()))), one("service.file", CheckState::Warn));
    assert_eq!(bad(word(0, "/no/such/tasuki")), one("service.file", CheckState::Fail));
    assert_eq!(bad(word(0, "/bin/ls")), one("service.file", CheckState::Warn));
    assert_eq!(bad(word(2, "/other")), one("service.file", CheckState::Warn));
}

#[test]
fn a_services_environment_state_and_lingering_are_judged() {
    assert_eq!(bad(|facts| facts.tmpdir = Some("/run".to_owned())), one("service.environment", CheckState::Warn));
    assert_eq!(
        bad(|facts| facts.path = Some("/usr/bin:/tmp".to_owned())),
        one("service.environment", CheckState::Warn)
    );
    assert_eq!(bad(|facts| facts.lingers = false), one("service.lingers", CheckState::Warn));
    assert_eq!(bad(|facts| set(facts, "ActiveState", "failed")), one("service.state", CheckState::Fail));
    assert_eq!(bad(|facts| set(facts, "UnitFileState", "disabled")), one("service.state", CheckState::Warn));
    assert_eq!(bad(|facts| set(facts, "ActiveState", "inactive")), one("service.state", CheckState::Warn));
    let dead = |facts: &mut Facts| {
        set(facts, "ActiveState", "inactive");
        facts.is_alive = false;
    };
    assert_eq!(bad(dead), one("service.state", CheckState::Fail));
    assert_eq!(bad(|facts| facts.manager = Err("no bus".to_owned())), one("service.state", CheckState::Warn));
}
