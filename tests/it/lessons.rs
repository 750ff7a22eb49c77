//! Which test holds which of the failures that others have met in driving agents through tmux, in the order in which
//! they were collected. Names are looked up as those in `rules` are.
//!
//! | failure | what went wrong | held by |
//! |---|---|---|
//! | 1 | "sent" is not "submitted" | `tmux_refuse::what_is_not_seen_is_not_submitted`, `flow_doubt::no_receipt_and_the_operator_says_that_it_did_not_arrive`, `cli::a_send_that_is_not_proven_is_no_success` |
//! | 2 | the receipt can win the race | `src/core/text::receipts_are_told_apart`, `sim::every_promise_holds_over_crashes_losses_and_clock_jumps` |
//! | 3 | local commands have no receipt | `tmux_type::an_exit_command_that_ends_the_process_is_submitted`, `flow_options::a_new_session_in_the_same_pane_takes_over` |
//! | 4 | blind repeats | `flow_doubt::a_receipt_that_comes_too_late_does_not_settle_the_doubt_by_itself`, `tmux_type::a_half_done_line_is_never_done_again_blindly` |
//! | 5 | Enter in the same tick as the text | `tmux_refuse::what_is_not_seen_is_not_submitted`, `demo_faults::swallow_enter` |
//! | 6 | key names that stop to submit | `src/demo/keys::carriage_return_submits_and_line_feed_does_not`, `tmux_type::a_text_arrives_as_it_was_written_and_is_submitted_once` |
//! | 7 | Escape before Enter | `tmux_type::a_text_arrives_as_it_was_written_and_is_submitted_once` |
//! | 8 | ghost text taken for a draft | `agents_screens::claude_screens`, `src/agents/ansi::faint_is_a_look_and_a_parameter_of_a_colour_is_not`, `demo_faults::ghost` |
//! | 9 | pickers that eat Enter | `tmux_type::a_text_arrives_as_it_was_written_and_is_submitted_once`, `src/core/prompts_tests::the_instruction_asks_for_the_six_sections_and_the_focus` |
//! | 10 | line ends and paste marks | `tmux_type::a_text_arrives_as_it_was_written_and_is_submitted_once`, `tmux_refuse::input_off_cooked_shell_and_wrong_front_are_refused` |
//! | 11 | shared buffers, lost semicolons, cut characters | `tmux_server::buffers_that_a_crash_left_are_swept`, `src/tmux/quote::quoting_and_tmux_cancel_out`, `src/tmux/deliver::pieces_are_whole_characters_and_hold_no_tab` |
//! | 12 | canonical mode drops long lines | `tmux_refuse::input_off_cooked_shell_and_wrong_front_are_refused` |
//! | 13 | a box that is drawn and takes nothing yet | `demo_faults::start_slow_loses_what_is_typed_before`, `tmux_server::ready_means_ready_and_stable`, `flow_failures::a_successor_that_is_too_slow_is_adopted_by_a_retry` |
//! | 14 | copy mode | `tmux_refuse::copy_mode_and_synchronised_panes_are_no_obstacle`, `tmux_refuse::texts_without_tabs_come_in_once_and_whole_in_copy_mode` |
//! | 15 | prompts run by a shell | `tmux_refuse::input_off_cooked_shell_and_wrong_front_are_refused`, `flow_rules::what_is_meant_for_an_agent_never_reaches_the_shell_that_it_was_started_from` |
//! | 16 | dialogs answered by accident | `tmux_refuse::dialogs_drafts_busy_and_unknown_screens_are_refused`, `agents_screens::claude_screens`, `flow_faults::a_dialog_within_a_handoff_is_told_and_waited_for` |
//! | 17 | drafts merged or destroyed | `tmux_user::what_a_user_types_while_we_type_is_never_merged_unseen`, `flow_failures::a_draft_is_not_touched_and_a_retry_types_once_it_is_gone`, `tmux_refuse::a_draft_that_its_author_sends_in_time_is_waited_for` |
//! | 18 | two writers in one pane | `tmux_type::two_callers_with_one_delivery_type_it_once`, `tmux_type::two_adapters_of_one_home_type_it_once` |
//! | 19 | control characters in texts and headers | `hostile_text::no_field_of_any_request_does_harm`, `src/core/text::nothing_that_drives_a_terminal_is_left`, `src/tmux/deliver::a_text_with_control_characters_is_refused_whole`, `src/notify::arguments_reach_no_shell` |
//! | 20 | prompts in logs and errors | `hostile_log::no_text_is_in_any_log_at_the_loudest_level`, `src/notify::failures_say_which_command_and_why_and_never_what` |
//! | 21 | a Stop before the transcript, or with work running | `demo_transcript::a_lagging_transcript_has_the_answer_after_the_stop`, `src/agents/rules::a_stop_with_work_in_the_background_is_a_pause` |
//! | 22 | a Stop that never comes | `flow_failures::stop_never_came_and_the_document_is_accepted`, `flow_failures::agent_failed_and_a_retry_instructs_anew_for_the_same_path` |
//! | 23 | the Stop of an earlier turn | `flow_faults::a_prompt_of_the_user_before_ours_does_not_end_our_turn` |
//! | 24 | a state that stays stale after Escape | `core_time::an_agent_that_was_silent_for_long_is_looked_at_once_and_is_idle_if_it_looks_so`, `flow_failures::a_turn_of_ours_that_was_broken_off_does_not_keep_a_handoff_waiting` |
//! | 25 | a shell's prompt taken for a composer | `agents_screens::an_empty_or_broken_screen_is_unknown`, `src/agents/rules::one_event_can_mean_three_things_by_its_value` |
//! | 26 | a nudge by hook never reaches an idle agent | `contract_agents::a_text_is_sent_when_the_agent_is_idle_and_its_verdict_is_the_answer` |
//! | 27 | a turn of no length with every signal well | `flow_faults::documents_that_are_none_are_not_taken` |
//! | 28 | sessions that change, panes that come back | `flow_faults::odd_hooks_are_no_obstacle`, `tmux_refuse::a_respawned_pane_is_another_one` |
//! | 29 | prompts that are not ours | `flow_faults::a_prompt_of_the_user_before_ours_does_not_end_our_turn`, `src/core/text::receipts_are_told_apart` |
//! | 30 | a goodbye, and the process stays | `flow_failures::did_not_exit_and_a_retry_when_it_obeys`, `flow_failures::the_end_of_a_session_is_not_the_end_of_the_agent` |
//! | 31 | two agents in one place | `flow_rules::an_agent_that_leaves_its_shell_behind_has_not_made_room`, `contract_agents::an_agent_that_does_not_obey_is_ended_by_force` |
//! | 32 | a session that survives, an old conversation resumed | `tmux_places::a_held_place_outlives_its_last_program`, `flow::successor_created` |
//! | 33 | reapers that kill what is not theirs | `tmux_user::a_whole_handoff_leaves_the_users_size_focus_buffers_and_windows_alone`, `contract_agents::a_pane_that_runs_already_is_adopted_never_primed_and_handed_off`, `tmux_server::the_user_notices_nothing` |
//! | 34 | environments, argument vectors, working directories | `src/agents/launch::claude_gets_its_rule_and_its_hooks_with_the_launch_line_as_json`, `tmux_create::the_program_gets_its_environment_arguments_and_directory_exactly` |
//! | 35 | sizes of detached panes | `demo::small_panes_and_changes_of_size_do_no_harm`, `tmux_create::a_missing_session_is_made_only_when_it_is_ours` |
//! | 36 | a start-up check that is too short | `flow_failures::a_successor_that_is_too_slow_is_adopted_by_a_retry` |
//! | 37 | an automatic handoff under a person's eyes | `context::while_a_client_shows_the_window_nothing_begins`, `src/core/agent/context_usage_tests::only_one_automatic_handoff_begins_in_a_session` |
//! | 38 | session starts that are none | `flow_faults::odd_hooks_are_no_obstacle`, `src/agents/rules::reasons_tell_an_end_from_a_change_of_session` |
//! | 39 | a success that was none | `flow::successor_creation_fails`, `flow::sequenced_delivery` |
//! | 40 | a handoff that dies with its server | `storm::kill_9_under_load_loses_nothing_and_types_nothing_twice`, `crash::kill_9_of_the_sidecar_at_random_instants`, `crash::an_ordered_end_in_the_middle_loses_nothing` |
//! | 41 | a sweeper that closes what is being written | `flow_faults::a_document_that_is_still_being_written_is_waited_for`, `src/core/check/sections_tests::missing_sections_are_named_and_present_ones_are_not` |
//! | 42 | marked before, or after | `tmux_crash::however_often_it_is_killed_each_text_arrives_once_and_in_order` |
//! | 43 | half-written and malformed files | `spool_intake::a_half_written_file_waits_until_it_is_whole`, `agents_hook::input_that_stalls_in_the_middle_is_given_up`, `contract::what_is_no_json_is_answered_and_kept_whole` |
//! | 44 | ids that come again | `contract::a_request_is_answered_once_and_again_with_the_same_words`, `contract::a_request_that_was_granted_is_not_carried_out_twice`, `src/sidecar/corrupt_tests::a_corrupt_ledger_row_refuses_its_own_request_and_no_other` |
//! | 45 | pane ids that come again | `tmux_server::after_a_restart_the_same_pane_number_is_another_pane`, `src/tmux/pane::an_id_that_came_back_is_not_the_pane` |
//! | 46 | control clients that pile up | `tmux_server::a_client_that_a_former_process_left_is_ended_first`, `tmux_server::killing_us_with_answers_on_their_way_leaves_no_client_and_a_healthy_server` |
//! | 47 | a stall taken for a death | `tmux_server::a_stopped_server_is_waited_for_and_nothing_is_typed_twice` |
//! | 48 | blocks that end too early | `src/tmux/protocol::only_the_exact_end_line_closes_a_block` |
//! | 49 | blocks of other people's hooks | `tmux_lies::hooks_of_the_users_shift_no_answer_and_double_nothing`, `tmux_type::a_waiting_hook_of_the_users_does_not_double_a_text`, `src/tmux/protocol::a_counter_that_does_not_rise_is_a_desync` |
//! | 50 | screens that look like answers | `tmux_lies::words_of_the_protocol_on_screens_and_in_names_are_only_words`, `src/tmux/protocol::only_the_exact_end_line_closes_a_block`, `tmux_server::a_capture_is_the_screen_of_exactly_that_pane` |
//! | 51 | how many blocks a line gives | `src/tmux/protocol::any_payload_comes_out_as_it_went_in` |
//! | 52 | line ends and lengths of commands | `src/tmux/quote::quoting_and_tmux_cancel_out`, `tmux_type::sixty_four_kibibytes_arrive_whole` |
//! | 53 | `run-shell`, and how output is escaped | `src/tmux/quote::words_in_formats_are_literal`, `tmux_server::the_user_notices_nothing` |
//! | 54 | clients that are dropped for being behind | `src/tmux/notice_queue::a_slow_receiver_loses_nothing_about_the_connection`, `tmux_server::the_private_session_has_no_process_and_cannot_crash_by_its_own_end` |
//! | 55 | the server's end | `tmux_server::a_server_that_starts_later_is_found_and_one_that_goes_is_told`, `src/tmux/protocol::an_open_block_gives_nothing_at_the_end_of_the_stream` |
//! | 56 | comments that are too long | `publish::characters_are_counted_and_what_is_too_long_becomes_a_gist_if_that_was_allowed` |
//! | 57 | a path that the other side can't read | `flow_rules::a_successor_that_must_ask_whether_it_may_read_is_shown_in_the_handoff`, `flow_doubt::no_receipt_and_the_operator_says_that_it_arrived` |
//! | 58 | a note that names no command | `ack_flow::an_urgent_briefing_says_what_to_acknowledge_and_how` |
//! | 59 | a bus that is down | `publish_once::the_network_and_the_server_are_tried_again_and_a_lost_answer_makes_no_second_comment`, `ack_flow::killed_between_every_two_timers_each_reminder_comes_once` |

#[test]
fn every_failure_of_others_has_a_test() {
    super::rules::check_table(include_str!("lessons.rs"), 59);
}
