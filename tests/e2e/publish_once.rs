//! Nothing is published twice: answers that are lost or late, a sidecar that is killed in the middle, a look that can't
//! tell.

use super::publish::{ISSUE, Play, codes};
use super::support::github::Does;
use super::support::tally;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

#[test]
fn the_network_and_the_server_are_tried_again_and_a_lost_answer_makes_no_second_comment() {
    let Some(play) = Play::new() else { return };
    // A server that errs, then one that stores without an answer.
    play.github.uploads(&[Does::Status(502), Does::StoresOnly]);
    let id = play.hand_off("# Work\n", &json!({"issue": ISSUE}));
    let view = play.until(&id, "published");
    assert_eq!(codes(&view), [Some("gh_server"), Some("gh_timeout"), None], "{view:#}");
    assert_eq!(view["publish"]["url"], "https://github.localhost/o/r/issues/42#issuecomment-1", "it was found");
    let told = ["running", "running", "retrying", "running", "retrying", "running", "published"];
    // The journal is written after the view.
    play.stage.until("it is told", || play.told(&id).len() == told.len());
    assert_eq!(play.told(&id), told);
    assert_eq!((play.github.asked(), play.stage.errors_of(&id).len()), (2, 0));
    play.never_two(1, 0);
    tally::add(tally::FAULTS, 2);
}

#[test]
fn a_comment_that_is_stored_after_everybody_has_hung_up_is_found() {
    let Some(play) = Play::new() else { return };
    // 3 s after gh was given up: the look waits for what may still be on its way.
    play.github.uploads(&[Does::Late(9_000)]);
    let id = play.hand_off("# Work\n", &json!({"issue": ISSUE}));
    let view = play.until(&id, "published");
    assert_eq!(codes(&view), [Some("gh_timeout"), None], "{view:#}");
    assert_eq!(play.github.asked(), 1);
    play.never_two(1, 0);
}

#[test]
fn a_gist_whose_answer_was_lost_is_found_by_its_mark() {
    let Some(play) = Play::new() else { return };
    play.github.uploads(&[Does::StoresOnly]);
    let id = play.hand_off("# Work\n", &json!({"gist": true}));
    let view = play.until(&id, "published");
    assert_eq!((codes(&view), play.github.asked()), (vec![Some("gh_timeout"), None], 1), "{view:#}");
    assert_eq!(view["publish"]["url"], "https://gist.github.localhost/0000abc0");
    play.never_two(0, 1);
}

/// At a thousand agents a hundred gists are made in seconds, and the pauses between tries are minutes.
#[test]
fn a_gist_is_found_beyond_hundreds_of_newer_ones() {
    let Some(play) = Play::new() else { return };
    play.github.uploads(&[Does::StoresOnly]);
    let id = play.hand_off("# Work\n", &json!({"gist": true}));
    play.stage.until("the gist is stored", || play.github.gists().len() == 1);
    play.github.others(250);
    let view = play.until(&id, "published");
    assert_eq!((codes(&view), play.github.asked()), (vec![Some("gh_timeout"), None], 1), "{view:#}");
    assert_eq!(view["publish"]["url"], "https://gist.github.localhost/0000abc0");
    play.never_two(0, 251);
}

#[test]
fn where_more_gists_are_newer_than_are_looked_through_it_is_in_doubt() {
    let Some(play) = Play::new() else { return };
    play.github.uploads(&[Does::StoresOnly]);
    let id = play.hand_off("# Work\n", &json!({"gist": true}));
    play.stage.until("the gist is stored", || play.github.gists().len() == 1);
    play.github.others(5_000);
    let view = play.until(&id, "in_doubt");
    assert_eq!(codes(&view), [Some("gh_timeout"), Some("gh_too_many"), Some("gh_too_many")], "{view:#}");
    assert_eq!(play.github.asked(), 1);
    play.never_two(0, 5_001);
    let request = json!({"kind": "publish", "handoff_id": id, "assume": "not_published"});
    play.stage.granted(&request);
    play.until(&id, "published");
    assert_eq!(play.github.asked(), 2, "the operator has said that it is not there");
}

#[test]
fn killed_in_the_middle_of_an_upload_it_is_looked_for_and_never_made_twice() {
    let Some(play) = Play::new() else { return };
    let mut agent = play.agent.clone();
    for (round, does) in [Does::StoresOnly, Does::Hangs].into_iter().enumerate() {
        play.github.uploads(&[does]);
        let asked = play.github.asked();
        let publish = json!({"author": "provided", "document": {"text": "# Work\n"}, "publish": {"issue": ISSUE}});
        let id = play.stage.hand_off_with(&agent, &publish);
        play.stage.until("the upload has begun", || play.github.asked() > asked);
        play.stage.end_sidecar(Signal::SIGKILL);
        tally::add(tally::DEATHS, 1);
        play.stage.until("gh has died with it", || play.github.callers().is_empty());
        play.github.start_sidecar(&play.stage);
        let view = play.until(&id, "published");
        assert_eq!(codes(&view), [None], "the effect went on: {view:#}");
        let tries = if does == Does::Hangs { 2 } else { 1 };
        assert_eq!(play.github.asked(), asked + tries, "it is posted again only if it is not there");
        play.never_two(round + 1, 0);
        agent = play.stage.until_step(&id, "done")["successor_id"].as_str().expect("a successor").to_owned();
        play.stage.until_idle(&agent);
    }
}

#[test]
fn what_no_look_can_tell_is_in_doubt_until_the_operator_says() {
    let Some(play) = Play::with_config("[publish]\ntimeout = \"6s\"\nretry_after = []\n") else { return };
    play.github.uploads(&[Does::StoresOnly]);
    play.github.looks(&[Does::Status(502)]);
    let id = play.hand_off("# Work\n", &json!({"issue": ISSUE}));
    let view = play.until(&id, "in_doubt");
    assert_eq!(codes(&view), [Some("gh_timeout"), Some("gh_server")], "{view:#}");
    assert_eq!(play.stage.errors_of(&id).len(), 1);
    let answer = play.stage.refused(&json!({"kind": "publish", "handoff_id": id}));
    assert_eq!((answer.0, answer.1.as_str()), (409, "in_doubt"));
    play.stage.end_sidecar(Signal::SIGKILL);
    play.github.start_sidecar(&play.stage);
    let answer = play.stage.refused(&json!({"kind": "publish", "handoff_id": id}));
    assert_eq!(answer.1, "in_doubt", "it is remembered");
    // The operator errs; but now it can be seen.
    let request = json!({"kind": "publish", "handoff_id": id, "assume": "not_published"});
    play.stage.granted(&request);
    let view = play.until(&id, "published");
    assert_eq!(view["publish"]["url"], "https://github.localhost/o/r/issues/42#issuecomment-1");
    play.never_two(1, 0);
    let successor = play.stage.until_step(&id, "done")["successor_id"].as_str().expect("a successor").to_owned();
    play.stage.until_idle(&successor);
    play.github.uploads(&[Does::StoresOnly]);
    play.github.looks(&[Does::Status(502)]);
    let more = json!({"author": "provided", "document": {"text": "# More\n"}, "publish": {"issue": ISSUE}});
    let id = play.stage.hand_off_with(&successor, &more);
    play.until(&id, "in_doubt");
    let result = play.stage.granted(&json!({"kind": "publish", "handoff_id": id, "assume": "published"}));
    assert_eq!((&result["status"], &result["url"]), (&json!("published"), &Value::Null));
    play.never_two(2, 0);
}
