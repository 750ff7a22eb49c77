//! Facts that tests give to the pure core.

use tasuki::core::settings::ProfileFacts;

/// A profile with the name `demo`. It reports nearly everything, but can't begin a new session in the same process.
pub(crate) fn demo_facts() -> ProfileFacts {
    ProfileFacts {
        name: "demo".to_owned(),
        launchable: true,
        takes_model: true,
        shows_limits: true,
        reports_failures: true,
        reports_prompts: true,
        screen_proof: false,
        starts_at_launch: true,
        turn_ids: true,
        new_session: None,
        reports_answers: true,
        has_transcript: true,
        reports_context: true,
        proves_prompts: false,
        reports_tools: true,
        resume: ["demo", "--session", "{session_id}"].map(str::to_owned).to_vec(),
        shows_dialogs: true,
    }
}
