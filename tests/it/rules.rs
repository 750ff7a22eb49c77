//! Which test holds which rule of the flow. `module::name` is a test in `tests/it` or `tests/e2e`, `src/module::name`
//! one beside the code; every name is looked up, and a rule without a test is a failure.
//!
//! | rule | what it is about | held by |
//! |---|---|---|
//! | 1 | another turn's Stop | `flow_faults::a_prompt_of_the_user_before_ours_does_not_end_our_turn`, `flow_faults::now_types_into_a_running_turn_and_waits_for_the_next_one`, `flow_rules::without_turn_ids_a_running_turn_is_waited_for_even_when_asked_not_to` |
//! | 2 | nested CLIs | `flow_faults::events_of_a_nested_copy_do_not_count`, `flow_faults::odd_hooks_are_no_obstacle`, `src/agents/hook_time::ancestors_begin_with_the_parent` |
//! | 3 | a stale id after a new session | `flow_options::a_new_session_in_the_same_pane_takes_over`, `contract_agents::events_of_nobody_change_nothing` |
//! | 4 | a session's end is not an exit | `flow_failures::the_end_of_a_session_is_not_the_end_of_the_agent`, `flow_failures::did_not_exit_and_a_retry_when_it_obeys`, `flow_rules::an_agent_that_leaves_its_shell_behind_has_not_made_room`, `src/agents/rules::reasons_tell_an_end_from_a_change_of_session` |
//! | 5 | the order of events, each once | `spool_intake::events_come_in_the_order_in_which_hooks_began`, `src/spool/order::whatever_the_file_times_one_boot_stays_in_order`, `death_at_calls::death_at_every_call_of_a_handoff_types_nothing_twice`, `rules::the_extension_of_pi_waits_for_each_event` |
//! | 6 | absence is decided late | `flow_rules::a_stop_that_lies_in_the_spool_counts_before_the_death_of_its_agent`, `src/sidecar/tests::deaths_are_judged_only_after_the_start_is_over`, `src/sidecar/tests::a_lane_that_cannot_be_read_is_not_empty`, `crash::what_happens_while_no_sidecar_runs_is_taken_up` |
//! | 7 | a Stop is not always the end | `flow_faults::odd_hooks_are_no_obstacle`, `flow_faults::a_document_that_is_still_being_written_is_waited_for`, `src/agents/rules::a_stop_with_work_in_the_background_is_a_pause` |
//! | 8 | a lost Stop | `flow_failures::a_turn_of_ours_that_was_broken_off_does_not_keep_a_handoff_waiting`, `flow_failures::priming_failed_and_the_operator_says_that_it_arrived`, `core_time::an_agent_that_was_silent_for_long_is_looked_at_once_and_is_idle_if_it_looks_so`, `sim::every_promise_holds_over_crashes_losses_and_clock_jumps` |
//! | 9 | receipts | `flow_rules::a_prompt_that_arrived_with_more_or_with_less_is_said_to_have`, `flow_faults::odd_composers_are_no_obstacle`, `src/core/text::receipts_are_told_apart`, `src/tmux/composer_match::a_collapsed_paste_counts_only_with_the_right_size`, `src/agents/prune::the_end_of_a_long_prompt_is_kept` |
//! | 10 | pieces | `tmux_type::resumed_pieces_go_on_where_the_composer_ends`, `src/tmux/composer_match::the_next_piece_follows_only_the_pieces_before_it` |
//! | 11 | tabs, first lines, commands | `src/tmux/deliver::pieces_are_whole_characters_and_hold_no_tab`, `src/core/text::a_frame_begins_with_our_line_and_ends_with_our_sentence`, `contract::what_is_wrong_with_a_request_is_named` |
//! | 12 | pasted and not submitted | `tmux_type::a_pasted_text_that_was_not_submitted_is_resumed_at_enter`, `flow_doubt::an_enter_that_is_never_taken_leaves_doubt`, `src/core/text::a_text_of_ours_is_known_in_a_composer` |
//! | 13 | hooks never loaded | `flow_rules::an_agent_whose_hooks_were_never_seen_is_typed_nothing`, `agents_hook::the_home_in_the_command_serves_where_the_environment_has_none` |
//! | 14 | Enter again, and `/exit` | `tmux_type::a_swallowed_enter_is_pressed_again_and_no_more_often_than_allowed`, `tmux_type::an_exit_command_that_ends_the_process_is_submitted` |
//! | 15 | adopted shell panes | `flow_rules::what_is_meant_for_an_agent_never_reaches_the_shell_that_it_was_started_from`, `tmux_front::the_rest_of_a_text_is_kept_back`, `tmux_front::an_agent_that_is_gone_is_refused_although_its_screen_invites`, `contract_agents::what_can_not_be_registered_is_named` |
//! | 16 | the place of the start | `flow::successor_created`, `tmux_places::a_held_place_outlives_its_last_program`, `tmux_create::a_missing_session_is_made_only_when_it_is_ours` |
//! | 17 | one successor | `tmux_create::one_creation_makes_one_process_however_often_it_is_asked_for`, `crash::kill_9_of_the_sidecar_at_random_instants` |
//! | 18 | two homes on one server | `tmux_claim::a_pane_of_another_living_home_is_neither_claimed_nor_typed_into`, `tmux_claim::registering_the_pane_of_another_living_home_is_refused_by_name`, `tmux_server::buffers_that_a_crash_left_are_swept`, `src/tmux/guard::the_guard_names_fence_process_mark_life_and_front` |
//! | 19 | a new session in the same pane | `flow_options::a_new_session_in_the_same_pane_takes_over`, `flow_options::a_cli_that_tells_of_its_new_session_late_can_be_handed_off_in_its_pane`, `flow_options::a_cli_without_a_command_for_a_new_session_is_refused` |
//! | 20 | two handoffs | `flow_options::who_can_t_take_over_is_refused`, `flow_faults::three_handoffs_at_once_do_not_touch_each_other`, `flow_failures::a_document_is_accepted_while_it_is_waited_for` |
//! | 21 | a dead successor | `flow_failures::a_successor_that_dies_before_its_briefing_gives_way_to_another`, `flow_failures::a_successor_that_is_too_slow_is_adopted_by_a_retry` |
//! | 22 | permissions | `flow_rules::a_successor_that_must_ask_whether_it_may_read_is_shown_in_the_handoff`, `flow_faults::a_dialog_within_a_handoff_is_told_and_waited_for`, `src/agents/launch::claude_gets_its_rule_and_its_hooks_with_the_launch_line_as_json` |
//! | 23 | batches | `sim::every_promise_holds_over_crashes_losses_and_clock_jumps`, `src/sidecar/tests::a_store_that_cannot_be_reopened_is_tried_again_and_then_requests_are_answered`, `src/sidecar/tests::effects_that_are_not_in_the_outbox_are_stopped_after_a_reload` |
//! | 24 | clocks | `time_lies::a_wall_clock_that_jumps_while_it_runs_moves_no_limit`, `time_lies::a_wall_clock_that_jumps_across_a_restart_moves_no_limit`, `time_lies::another_boot_loses_no_limit_and_what_happened_before_counts`, `time_lies::a_limit_that_passes_while_the_sidecar_stands_still_falls_once_when_it_goes_on`, `time_lies::time_counts_by_the_clock_that_runs_on_while_the_machine_sleeps`, `crash::a_sidecar_that_stood_still_takes_events_before_deadlines`, `core_time::every_deadline_of_another_boot_is_counted_in_this_one`, `src/sidecar/time_tests::deadlines_of_another_boot_are_neither_lost_nor_doubled_nor_early`, `src/sidecar/time_tests::after_a_sleep_events_are_decided_before_deadlines`, `sim::every_promise_holds_over_crashes_losses_and_clock_jumps` |
//! | 25 | a pure core | `house::the_core_touches_no_file_no_clock_no_process_and_no_chance`, `src/core/handoff/document::a_taken_name_gives_the_next_free_second` |
//! | 26 | projections | `spool_output::what_a_crash_left_half_written_does_no_harm`, `spool_journal::cut_anywhere_the_journal_is_whole_again_after_the_store_repeats_it`, `src/sidecar/tests::dismissed_failures_stay_dismissed_after_a_restart` |
//! | 27 | compare-and-swap deliveries | `tmux_type::the_same_delivery_again_types_nothing`, `tmux_type::a_half_done_line_is_never_done_again_blindly`, `tmux_crash::however_often_it_is_killed_each_text_arrives_once_and_in_order` |
//! | 28 | a killed tmux server | `crash::kill_9_of_the_tmux_server_in_the_middle`, `tmux_server::after_a_restart_the_same_pane_number_is_another_pane` |
//! | 29 | a cap on what is rejected | `spool_intake::a_full_reject_folder_evicts_nothing_and_intake_goes_on_when_there_is_room` |
//! | 30 | the demo agent's faults | `demo_faults::queue`, `demo_faults::nested`, `demo_faults::end_by_clear`, `demo_faults::lazy_start`, `demo_faults::stop_twice`, `demo_faults::in_shell`, `demo_faults::linger`, `demo_faults::dialog_on_write`, `flow_rules::a_cli_that_tells_of_its_session_only_with_the_first_prompt_is_handed_off` |

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Holds that a table in a file's head names rows 1 to `rows`, each of them a test, and that each of its tests exists.
pub(crate) fn check_table(source: &str, rows: usize) {
    let mut found: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    let mut wrong = Vec::new();
    for line in source.lines().filter_map(|line| line.strip_prefix("//! | ")) {
        let Some(number) = line.split(' ').next().and_then(|number| number.parse::<usize>().ok()) else { continue };
        let held_by = line.trim_end_matches('|').rsplit('|').next().unwrap_or_default();
        let tests: Vec<String> =
            held_by.split('`').skip(1).step_by(2).filter(|name| name.contains("::")).map(str::to_owned).collect();
        wrong
            .extend(tests.iter().filter(|name| !exists(name)).map(|name| format!("{number}: there is no test {name}")));
        if tests.is_empty() {
            wrong.push(format!("{number}: no test is named"));
        }
        if found.insert(number, tests).is_some() {
            wrong.push(format!("{number} stands there twice"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(found.keys().copied().collect::<Vec<_>>(), (1..=rows).collect::<Vec<_>>());
}

/// Whether there is such a test in one of the files that the module's name may mean.
pub(crate) fn exists(name: &str) -> bool {
    let Some((module, test)) = name.rsplit_once("::") else { return false };
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders: &[&str] = if module.starts_with("src/") { &[""] } else { &["tests/it", "tests/e2e"] };
    let places = folders.iter().map(|folder| root.join(folder).join(module));
    let mut files = places.flat_map(|place| [place.with_extension("rs"), place.join("mod.rs")]);
    let text = files.find_map(|file| fs::read_to_string(file).ok()).unwrap_or_default();
    let (_, after) = text.split_once(&format!("fn {test}(")).unwrap_or_default();
    let before = text.split(&format!("fn {test}(")).next().unwrap_or_default();
    let attributes: String = before.lines().rev().take(4).collect();
    !after.is_empty() && (attributes.contains("test]") || attributes.contains("test("))
}

#[test]
fn every_rule_of_the_flow_has_a_test() {
    check_table(include_str!("rules.rs"), 30);
}

/// Events that overtake each other are worse than an agent that waits some milliseconds (rule 5).
#[test]
fn the_extension_of_pi_waits_for_each_event() {
    let profile = include_str!("../../data/profiles/pi.toml");
    assert!(profile.contains("spawnSync(PROGRAM, [\"hook\""));
    for word in ["async ", "await ", "spawn("] {
        assert!(!profile.contains(word), "{word}");
    }
}
