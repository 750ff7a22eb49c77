//! What each CLI really printed, and what it means.

use super::super::profile::Profiles;
use super::*;
use crate::contract::LimitKind;
use crate::contract::LimitKind::{LoggedOut, NoCredit, Overloaded, UsageLimit};
use crate::core::time::rfc3339;
use serde_json::json;
use std::fs;

/// 2026-11-25 13:24 UTC.
const CLOCK: ReadingTime = ReadingTime { now_ms: 1_795_613_040_000, is_utc: true };

fn profile(name: &str) -> Profile {
    Profiles::load(None).expect("built in").get(name).expect("a profile").clone()
}

fn kind_and_end(found: Option<LimitFound>) -> Option<(LimitKind, Option<String>)> {
    found.map(|found| (found.kind, found.until_ms.map(|at| rfc3339(at)[..16].to_owned())))
}

#[test]
fn an_event_s_words_tell_which_limit_it_is() {
    let today = |time: &str| Some(format!("2026-11-25T{time}"));
    let cases = [
        ("claude", "You've hit your 5-hour limit · resets 3:24pm (UTC)", Some((UsageLimit, today("15:25")))),
        ("claude", "You've hit your weekly limit · resets Nov 25, 11:24pm (UTC)", Some((UsageLimit, today("23:25")))),
        ("claude", "You're out of usage credits · resets 4:28pm (UTC)", Some((UsageLimit, today("16:29")))),
        ("claude", "You've hit your limit · resets 3pm (Mars/Olympus_Mons)", Some((UsageLimit, None))),
        ("claude", "Credit balance is too low", Some((NoCredit, None))),
        ("claude", "API Error: 402 pay first", Some((NoCredit, None))),
        ("claude", "Not logged in · Please run /login", Some((LoggedOut, None))),
        ("claude", "Please run /login · API Error: 401 no", Some((LoggedOut, None))),
        ("claude", "API Error: Repeated 529 Overloaded errors. The API is at capacity", Some((Overloaded, None))),
        (
            "claude",
            "API Error: Server is temporarily limiting requests (not your usage limit) · slow",
            Some((Overloaded, None)),
        ),
        ("claude", "You've used 85% of your weekly limit · resets 3pm", None),
        ("claude", "API Error: 400 wrong", None),
        (
            "pi",
            "You have hit your ChatGPT usage limit (plus plan). Try again in ~60 min.",
            Some((UsageLimit, today("14:24"))),
        ),
        (
            "pi",
            "429 You exceeded your current quota, please check your plan and billing details.",
            Some((NoCredit, None)),
        ),
        ("pi", "401 Incorrect API key provided", Some((LoggedOut, None))),
        ("pi", "529 Overloaded", Some((Overloaded, None))),
        ("pi", "404 no such model", None),
        (
            "opencode",
            "Free usage exceeded, subscribe to Go (it tries again at 1795620000000)",
            Some((UsageLimit, today("15:20"))),
        ),
        ("opencode", "5 hour usage limit reached. It will reset in 2 hours.", Some((UsageLimit, today("15:24")))),
        ("opencode", "402 Insufficient credits.", Some((NoCredit, None))),
        ("opencode", "401 Insufficient balance. Manage your billing here (CreditsError)", Some((NoCredit, None))),
        ("opencode", "401 Incorrect API key provided", Some((LoggedOut, None))),
        ("opencode", "Provider is overloaded", Some((Overloaded, None))),
        ("demo", "Usage limit reached; it resets at 1795620000", Some((UsageLimit, today("15:20")))),
    ];
    for (name, said, expected) in cases {
        assert_eq!(kind_and_end(profile(name).limit_in_event(said, &CLOCK)), expected, "{name}: {said}");
    }
}

fn in_transcript(name: &str, lines: &[Value]) -> Option<(LimitKind, Option<String>)> {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("t.jsonl");
    fs::write(&path, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).expect("written");
    match profile(name).limit_in_transcript(&path, &CLOCK).expect("readable") {
        TranscriptEnd::Limited { found, .. } => kind_and_end(Some(found)),
        TranscriptEnd::NotLimited | TranscriptEnd::Unknown => None,
    }
}

#[test]
fn the_last_turn_of_a_transcript_counts_and_its_own_number_names_the_end() {
    let limit = json!({"type": "assistant", "isApiErrorMessage": true, "error": "rate_limit",
        "quotaLimits": {"resetsAt": 1_795_620_000},
        "message": {"model": "<synthetic>", "content": [{"type": "text", "text": "You've hit your limit · resets 3pm (Asia/Tokyo)"}]}});
    let other = json!({"type": "assistant", "isApiErrorMessage": true,
        "message": {"content": [{"type": "text", "text": "API Error: 400 wrong"}]}});
    let answer =
        json!({"type": "assistant", "message": {"content": [{"type": "text", "text": "You've hit your limit"}]}});
    let prompt = json!({"type": "user", "message": {"content": "continue"}});
    let system = json!({"type": "system", "subtype": "informational"});
    let found = Some((UsageLimit, Some("2026-11-25T15:20".to_owned())));
    assert_eq!(in_transcript("claude", &[answer.clone(), limit.clone(), system]), found);
    assert_eq!(in_transcript("claude", &[limit.clone(), other]), None, "another error came later");
    assert_eq!(in_transcript("claude", &[limit.clone(), prompt.clone(), answer]), None, "it was answered since");
    assert_eq!(in_transcript("claude", &[limit, prompt]), None, "it was asked since");
    assert_eq!(in_transcript("claude", &[]), None);
}

#[test]
fn codex_and_gemini_tell_it_in_their_transcripts_alone() {
    let complete = |error: Value| json!({"type": "event_msg", "payload": {"type": "task_complete", "error": error}});
    let said = "You’ve hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro) or try again at 2:24 PM.";
    let limit = complete(json!({"message": said, "codex_error_info": "usage_limit_exceeded"}));
    let found = Some((UsageLimit, Some("2026-11-25T14:25".to_owned())));
    assert_eq!(in_transcript("codex", std::slice::from_ref(&limit)), found);
    let answer = json!({"type": "response_item", "payload": {"type": "message", "role": "assistant", "content": []}});
    assert_eq!(in_transcript("codex", &[limit, answer, complete(Value::Null)]), None, "the next turn went well");
    let credits = complete(json!({"message": "Your workspace is out of credits. Add credits to continue."}));
    assert_eq!(in_transcript("codex", &[credits]), Some((NoCredit, None)));
    let error = json!({"type": "error", "content": "[API Error: You have exhausted your daily quota on this model.]"});
    let info = json!({"type": "info", "content": "This request failed."});
    assert_eq!(in_transcript("gemini", &[error, info]), Some((UsageLimit, None)));
}

#[test]
fn a_screen_shows_a_limit_in_its_last_lines() {
    let on = |name: &str, screen: &str| kind_and_end(profile(name).limit_on_screen(screen, &CLOCK));
    let dialog = "│ Usage limit reached for all Pro models. │\n│ Access resets at 6:54 PM UTC. │\n│ ● 1. Keep trying │\n│   2. Stop │\n";
    assert_eq!(on("gemini", dialog), Some((UsageLimit, Some("2026-11-25T18:55".to_owned()))));
    let said = profile("gemini").limit_on_screen(dialog, &CLOCK).map(|found| found.said);
    assert_eq!(said.as_deref(), Some("Usage limit reached for all Pro models. Access resets at 6:54 PM UTC."));
    let codex = "■ You’ve hit your usage limit. Visit https://chatgpt.com/settings/usage to purchase more credits or\ntry again at 2:24 PM.\n\n› \n";
    assert_eq!(on("codex", codex), Some((UsageLimit, Some("2026-11-25T14:25".to_owned()))));
    let broken = codex.replace("or\ntry again at 2", "or try again\nat 2");
    assert_eq!(on("codex", &broken), on("codex", codex), "wherever the line is broken");
    let far = format!("{dialog}{}", "more\n".repeat(30));
    assert_eq!(on("gemini", &far), None, "it has scrolled away");
    assert_eq!(on("gemini", "we talk about a usage limit that was reached"), None);
    assert_eq!(
        on("opencode", "⬝⬝■■ Rate limit reached for requests [retrying in 1h 59m attempt #1]"),
        Some((UsageLimit, Some("2026-11-25T15:23".to_owned())))
    );
}

#[test]
fn a_screen_rule_with_a_condition_is_refused_at_loading() {
    let demo = include_str!("../../data/profiles/demo.toml");
    let with = |rule: &str| {
        let text = format!("{demo}\n[[limits.screen]]\nkind = \"usage_limit\"\npattern = 'used up'\n{rule}");
        Profile::parse("x", Path::new("x.toml"), &text).map(|_| text.lines().count())
    };
    let lines = with("").expect("a profile");
    let refused = with("when = [{ at = '/status', is = ['429'] }]\n").expect_err("it would apply to every screen");
    let place = format!("line {}, key `limits.screen`", lines - 2);
    assert!(refused.to_string().contains(&place), "{refused}");
}

#[test]
fn what_the_cli_says_is_kept_short_clean_and_without_credentials() {
    let key = ["gh", "p_", "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"].concat();
    let said = format!("API Error: 529 \u{1b}[31mOverloaded\n{key} {}", "x ".repeat(400));
    let found = profile("claude").limit_in_event(&said, &CLOCK).expect("a limit");
    assert!(found.said.chars().count() <= 300 && !found.said.contains('\u{1b}') && !found.said.contains('\n'));
    assert!(!found.said.contains(&key[..20]), "{}", found.said);
}
