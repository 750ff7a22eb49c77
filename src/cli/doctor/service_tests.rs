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
        is_shared: false,
        text: Ok(Some(format!("# {}", SIDECAR.ours()))),
        unit: Some(Written { words, environment }),
        is_current: true,
        program: Some("/bin/sh".into()),
        home: "/h".into(),
        manager: Ok(properties.map(|(name, value)| (name.to_owned(), value.to_owned())).into()),
        launchd: Err(String::new()),
        lingers: true,
        is_alive: true,
        path: Some("/bin:/usr/bin".to_owned()),
        tmpdir: None,
        time_zone: None,
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
    // How the service of another home does is not this home's concern.
    let of_another = |facts: &mut Facts| {
        word(2, "/tmp")(facts);
        set(facts, "ActiveState", "failed");
        facts.is_alive = false;
    };
    assert_eq!(bad(of_another), one("service.file", CheckState::Warn));
}

#[test]
fn a_services_environment_state_and_lingering_are_judged() {
    let elsewhere = || Some("America/New_York".to_owned());
    assert_eq!(bad(|facts| facts.time_zone = elsewhere()), one("service.environment", CheckState::Warn));
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

#[test]
fn what_launchd_says_is_judged() {
    let runs = LaunchdState { is_loaded: true, pid: Some(7), ..LaunchdState::default() };
    let judged = |state: Result<LaunchdState, String>, is_alive: bool| {
        bad(|facts| {
            (facts.kind, facts.launchd, facts.is_alive) = (ManagerKind::Launchd, state, is_alive);
            // What systemd says does not count here.
            (facts.manager, facts.lingers) = (Err("no bus".to_owned()), false);
        })
    };
    let (warn, fail) = (one("service.state", CheckState::Warn), one("service.state", CheckState::Fail));
    assert_eq!(judged(Ok(runs.clone()), true), []);
    assert_eq!(judged(Ok(LaunchdState { is_disabled: true, ..runs.clone() }), true), warn);
    let ended = LaunchdState { pid: None, last_exit: Some("78".to_owned()), ..runs };
    assert_eq!((judged(Ok(ended.clone()), false), judged(Ok(ended), true)), (fail.clone(), warn.clone()));
    let gone = LaunchdState::default();
    assert_eq!((judged(Ok(gone.clone()), false), judged(Ok(gone.clone()), true)), (fail.clone(), warn.clone()));
    assert_eq!(judged(Ok(LaunchdState { is_disabled: true, ..gone }), false), fail);
    assert_eq!(judged(Err("no answer".to_owned()), true), warn);
    let old = |facts: &mut Facts| {
        (facts.kind, facts.is_current) = (ManagerKind::Launchd, false);
        facts.launchd = Ok(LaunchdState { is_loaded: true, pid: Some(7), ..LaunchdState::default() });
    };
    assert_eq!(bad(old), one("service.file", CheckState::Warn));
}
