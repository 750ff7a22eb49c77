//! A record that can't be written or removed after its file was changed.

use super::*;

#[test]
fn a_new_file_whose_folders_could_not_be_recorded_is_taken_back() {
    let desk = Desk::new();
    let change = desk.plan(Profile::plan_install).expect("it can be changed");
    change.records.write(change.record.as_ref()).expect("recorded");
    let made = change.found.replace(change.after.as_deref()).expect("written");
    assert!(desk.settings().exists() && !made.is_empty());
    change.take_back(&made);
    assert!(!desk.path(".claude").exists());
    assert_eq!(change.records.read().expect("readable"), None);
}

#[test]
fn a_record_that_could_not_be_removed_is_told_and_removed_the_next_time() {
    let desk = Desk::new();
    desk.install();
    let change = desk.plan(Profile::plan_uninstall).expect("it can be changed");
    change.found.replace(change.after.as_deref()).expect("removed");
    let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
    let failed = InstallError::Io { doing: "write", path: "/h/record.json".into(), source: full };
    let told = unrecorded(change.file(), failed).to_string();
    assert!(told.contains("settings.json was changed as planned") && told.contains("/h/record.json"), "{told}");
    assert!(change.records.read().expect("readable").is_some());
    assert!(!desk.uninstall(), "the file is as it should be already");
    assert_eq!(change.records.read().expect("readable"), None);
}
