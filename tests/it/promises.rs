//! Which test holds which promise of the README and the guide (chapter "promises") and of the map in `src/lib.rs`
//! ("What tasuki never does"). Each promise stands here in its own words, which are looked up where they are made;
//! names of tests are looked up as those in `rules` are.
//!
//! | promise | its words | held by |
//! |---|---|---|
//! | 1 | every request that was moved into `spool/requests/` gets exactly one result | `storm::kill_9_under_load_loses_nothing_and_types_nothing_twice`, `death_at_calls::death_at_every_call_of_a_commit_loses_no_request`, `hostile_files::thousands_of_files_at_once_are_each_answered_once` |
//! | 2 | tasuki by itself types no text twice, starts no second successor and publishes no document twice | `death_at_calls::death_at_every_call_of_a_handoff_types_nothing_twice`, `tmux_births::a_creation_makes_one_process_whatever_stops_or_dies_meanwhile`, `publish_once::killed_in_the_middle_of_an_upload_it_is_looked_for_and_never_made_twice` |
//! | 3 | the agent is not ended before its document is recorded, and the briefing never comes before the skill | `flow::sequenced_delivery`, `sim::every_promise_holds_over_crashes_losses_and_clock_jumps` |
//! | 4 | each handoff ends `done`, `cancelled` or `failed`, and each failure has one error file and one journal line | `crash::kill_9_of_the_sidecar_at_random_instants`, `flow::error_notification` |
//! | 5 | Two homes may share a tmux server, but never an agent | `tmux_claim::a_pane_of_another_living_home_is_neither_claimed_nor_typed_into`, `tmux_claim::of_homes_that_claim_at_once_one_gets_the_pane` |
//! | 6 | is refused with 409 `pane_claimed`, which names that home | `tmux_claim::registering_the_pane_of_another_living_home_is_refused_by_name` |
//! | 7 | A claim also ends with the agent that it names | `tmux_claim::a_claim_ends_with_its_agent_and_with_its_sidecar_and_keeps_the_former_one_out` |
//! | 8 | Changing the wall clock does not affect them | `time_lies::a_wall_clock_that_jumps_while_it_runs_moves_no_limit`, `time_lies::time_counts_by_the_clock_that_runs_on_while_the_machine_sleeps` |
//! | 9 | the rest of a limit is never longer than the whole limit | `time_lies::another_boot_loses_no_limit_and_what_happened_before_counts`, `src/sidecar/time_tests::deadlines_of_another_boot_are_neither_lost_nor_doubled_nor_early` |
//! | 10 | A state file of a later version is refused with exit code 78 and not written to | `upgrades::a_state_file_of_a_later_version_is_refused_and_left_as_it_was` |
//! | 11 | If the damage hides whether a request was carried out, tasuki does not carry it out again | `src/sidecar/corrupt_tests::a_corrupt_ledger_row_refuses_its_own_request_and_no_other` |
//! | 12 | tasuki looks at the screen once if an agent is `busy` and has reported nothing for ten minutes | `core_time::an_agent_that_was_silent_for_long_is_looked_at_once_and_is_idle_if_it_looks_so` |
//! | 13 | If the option `command-alias` of a tmux server redefines a command that tasuki uses, tasuki leaves that server alone | `tmux_lies::a_server_whose_user_has_redefined_our_commands_is_left_alone_until_they_are_back` |
//! | 14 | tasuki never sends Escape, never answers a dialog, never touches a draft, never kills a process that it did not start | `tmux_refuse::dialogs_drafts_busy_and_unknown_screens_are_refused`, `flow_failures::a_draft_is_not_touched_and_a_retry_types_once_it_is_gone`, `flow_faults::a_dialog_within_a_handoff_is_told_and_waited_for`, `tmux_races::a_pane_that_is_respawned_between_the_look_and_the_line_is_not_killed` |
//! | 15 | does nothing at all to an agent that has no persona | `contract_agents::nothing_is_ever_typed_into_an_anonymous_agent`, `flow::agent_without_persona` |
//! | 16 | Prompts and documents are never logged | `hostile_log::no_text_is_in_any_log_at_the_loudest_level` |
//! | 17 | Only your own user has access | `other_people::a_process_of_another_user_gets_nothing`, `other_people::what_belongs_to_others_is_refused_at_the_start` |
//! | 18 | every request has one result, which never changes; every text is typed at most once; no agent runs that tasuki does not know, and there is no second successor | `storm::kill_9_under_load_loses_nothing_and_types_nothing_twice` |
//! | 19 | the same; tasuki reports the failure, and never panics | `calls_that_fail::a_call_that_fails_loses_no_request`, `calls_that_fail::a_call_that_fails_in_a_handoff_types_nothing_twice` |
//! | 20 | nothing that was committed is lost, and no commit is there only in part | `src/store/power_tests::a_power_cut_loses_nothing_that_was_committed_and_tears_no_commit` |
//! | 21 | read completely, or refused with its path and left as it was | `state_file::a_state_file_with_a_bit_turned_is_read_whole_or_refused_and_left`, `state_file::a_state_file_that_is_cut_short_or_foreign_is_refused_and_left` |
//! | 22 | reported in `view/sidecar.json`, which can be written even then; nothing is lost; it continues by itself | `disk_full::a_full_disk_is_told_and_nothing_is_lost`, `disk_full::a_disk_without_inodes_is_told_and_nothing_is_lost` |
//! | 23 | only the latency changes | `watch_lies::an_overflow_of_the_queue_loses_nothing`, `watch_lies::without_watches_a_whole_handoff_is_only_slower`, `watch_lies::folders_that_are_moved_and_made_anew_are_found_again` |
//! | 24 | nothing is typed twice or into another pane, and the server survives | `tmux_crash::however_often_it_is_killed_each_text_arrives_once_and_in_order`, `tmux_lies::pane_numbers_that_begin_again_are_other_panes`, `tmux_lies::our_client_killed_in_mid_command_loses_and_doubles_nothing` |
//! | 25 | size, focus, windows and buffers are as before; typing is never mixed into a text unnoticed | `tmux_user::a_whole_handoff_leaves_the_users_size_focus_buffers_and_windows_alone`, `tmux_user::what_a_user_types_while_we_type_is_never_merged_unseen` |
//! | 26 | refused with the reason; no link is followed, nothing blocks | `hostile_files::every_hostile_file_is_put_aside_and_answered_where_it_has_an_id`, `spool_races::what_is_no_file_is_not_opened_to_see_that` |
//! | 27 | harmless in panes, paths, logs and terminals; no prompt in a log at any level | `hostile_text::no_field_of_any_request_does_harm`, `hostile_words::nothing_that_a_terminal_acts_on_comes_out_of_any_command` |
//! | 28 | refused with the path and the fix; that user can neither read, drop, rename nor watch | `other_people::what_others_can_get_at_is_refused_at_the_start_with_path_and_fix`, `other_people::a_process_of_another_user_gets_nothing` |
//! | 29 | the earlier home is used; the later state is refused and not written to | `upgrades::a_home_of_every_earlier_version_is_gone_on_with`, `upgrades::a_state_file_of_a_later_version_that_was_killed_is_left_as_it_was_too` |
//! | 30 | a test pastes the commands of [Use it](../../README.md#use-it) into a real pane, runs the recipes of the README and of this guide, and checks every file that results against its schema | `first_use::the_first_use_works_when_it_is_pasted_and_every_file_is_as_its_schema_says` |
//! | 31 | It never acts before the decision to act is durable | `src/sidecar/reproject_tests::before_the_commit_no_request_is_answered_no_file_moved_and_no_effect_started` |
//! | 32 | never reads a clock, a file or a random number while it decides | `house::the_core_touches_no_file_no_clock_no_process_and_no_chance`, `house::a_turn_sees_one_clock` |
//! | 33 | It never types a text twice: not after a crash, not on a retry, not because a screen could not be read | `tmux_type::the_same_delivery_again_types_nothing`, `tmux_type::a_half_done_line_is_never_done_again_blindly`, `flow_doubt::no_receipt_and_the_operator_says_that_it_arrived` |
//! | 34 | It never publishes a document twice: if an upload may have been stored without an answer, tasuki looks for its mark first | `publish_once::a_gist_whose_answer_was_lost_is_found_by_its_mark`, `publish_once::what_no_look_can_tell_is_in_doubt_until_the_operator_says` |
//! | 35 | It never presses Enter before it has seen its text in the composer | `tmux_refuse::what_is_not_seen_is_not_submitted`, `tmux_mixed::the_rest_of_a_text_whose_beginning_a_person_has_submitted_is_not_submitted` |
//! | 36 | It never ends the agent of a handoff before its document is recorded, and never briefs a successor before it is primed | `flow::sequenced_delivery`, `flow::graceful_shutdown`, `sim::every_promise_holds_over_crashes_losses_and_clock_jumps` |
//! | 37 | never changes a user's focus, window sizes or paste buffers | `tmux_user::a_whole_handoff_leaves_the_users_size_focus_buffers_and_windows_alone`, `tmux_server::the_user_notices_nothing` |
//! | 38 | It never overwrites a state file that it could not read, never deletes a document, and never follows a link | `state_file::a_state_file_that_is_cut_short_or_foreign_is_refused_and_left`, `hostile_files::links_in_place_of_its_own_files_are_not_written_through`, `spool_documents::no_folder_on_the_way_may_be_a_link` |
//! | 39 | It never retries a failed step of a handoff by itself (uploads are retried), and never fails a handoff without an error file, a journal line and a notice | `publish::each_failure_has_its_code_and_is_told_and_only_a_person_tries_again`, `flow::error_notification` |
//! | 40 | It never logs the text of a prompt or a document, and never gives a text from outside to a shell | `hostile_log::no_text_is_in_any_log_at_the_loudest_level`, `tmux_create::one_word_is_a_program_and_no_command_line`, `src/notify::arguments_reach_no_shell` |
//! | 41 | talks to a tmux server that another user could have started, and never runs a file of its home, or types the text of one, if another user could have written the file | `another_user::a_tmux_socket_that_another_user_could_have_made_is_never_spoken_to`, `another_user::what_is_run_or_typed_and_others_could_change_is_refused_at_the_start` |

use crate::readme;
use crate::rules::check_table;

const TABLE: &str = include_str!("promises.rs");

#[test]
fn every_promise_has_a_test() {
    check_table(TABLE, 41);
}

/// A promise that is worded anew is looked at anew: does its test still hold it?
#[test]
fn every_promise_is_made_in_these_words() {
    let map = include_str!("../../src/lib.rs").replace("\n//! ", " ");
    let made = one_line(&format!("{} {map}", readme::text()));
    let rows = TABLE.lines().filter_map(|line| line.strip_prefix("//! | ")).filter_map(|row| row.split(" | ").nth(1));
    let unmade: Vec<&str> = rows.filter(|words| *words != "its words" && !made.contains(words)).collect();
    assert!(unmade.is_empty(), "{unmade:#?}");
}

/// A point that is added to the list in the map needs a row here.
#[test]
fn every_point_of_the_list_of_what_it_never_does_is_in_the_table() {
    let map = include_str!("../../src/lib.rs");
    let (_, list) = map.split_once("# What tasuki never does").expect("the list");
    let (list, _) = list.split_once("//! #").expect("its end");
    let points = one_line(&list.replace("\n//!", "\n"));
    let held: Vec<&str> = TABLE.lines().filter_map(|line| line.strip_prefix("//! | ")?.split(" | ").nth(1)).collect();
    let bare: Vec<&str> = points
        .split("- It never")
        .skip(1)
        .filter(|point| !held.iter().any(|words| format!("It never{point}").contains(words)))
        .collect();
    assert!(bare.is_empty(), "{bare:#?}");
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
