//! The modes of each CLI's composer (a shell's, a search, vim's, a menu), as the CLIs draw them in 24 rows and in 50. A
//! text goes into a composer that hands it to the model, and into no other: some modes give every line to a shell.

use crate::agents_screens::{look, tail};
use tasuki::agents::Profiles;
use tasuki::core::pane::{Activity, ComposerContent, ScreenReading};

/// Modes in which a text must not go in.
const OTHERS: [(&str, &str); 8] = [
    ("claude", "shell shell_emptied shell_after search slash at history memory vim_text vim_normal_text transcript"),
    // As an agent may be that its user has started.
    (
        "claude",
        "classic_shell classic_shell_emptied classic_shell_after classic_search classic_slash classic_at classic_history \
         classic_memory classic_vim_text classic_vim_normal_text classic_transcript",
    ),
    ("codex", "shell shell_emptied shell_after search slash at history vim_text vim_normal_text"),
    (
        "codex",
        "inline_shell inline_shell_emptied inline_shell_after inline_search inline_slash inline_at inline_history",
    ),
    ("gemini", "shell shell_emptied shell_after search slash at history vim_normal vim_text"),
    (
        "gemini",
        "full_shell full_shell_emptied full_shell_after full_search full_slash full_at full_history full_vim_normal \
         full_vim_text",
    ),
    ("pi", "shell shell_emptied shell_after slash at history"),
    // Over the palette nothing is drawn where the composer stands: it looks as if it took a text.
    ("opencode", "shell shell_emptied slash at history palette"),
];

/// Modes in which a prompt goes to the model.
const PROMPTS: [(&str, &str); 7] = [
    ("claude", "after_turn after_shell plan vim_insert"),
    ("claude", "classic_ready classic_after_turn classic_after_shell classic_plan classic_vim_insert"),
    // A paste is no command of vim's: in its NORMAL mode too it comes in whole.
    ("codex", "after_turn plan vim_insert vim_normal inline_after_turn inline_plan"),
    ("gemini", "after_turn edits plan vim_insert"),
    ("gemini", "full_ready full_after_turn full_edits full_plan full_vim_insert"),
    ("pi", "after_turn after_shell"),
    ("opencode", "after_turn after_shell plan"),
];

/// Modes that can't be told from one that takes a prompt: nothing but what the keys do shows them. Claude Code in vim's
/// NORMAL mode takes the first letter for a command, and gets no further one as long as that is not seen.
const UNSEEN: [(&str, &str); 1] = [("claude", "vim_normal classic_vim_normal")];

/// Whether a text would be typed into what this screen shows.
fn invites(profile: &str, name: &str) -> bool {
    let view = look(profile, name);
    view.activity == Activity::Ready && view.composer == ComposerContent::Empty
}

/// Which of these screens are not judged as they should be.
fn misjudged(screens: &[(&'static str, &'static str)], right: bool) -> Vec<String> {
    let all = screens.iter().flat_map(|(profile, names)| names.split_whitespace().map(move |name| (*profile, name)));
    let sized = all.flat_map(|(profile, name)| [24, 50].map(|rows| (profile, format!("modes/{name}_{rows}"))));
    let wrong = sized.filter(|(profile, name)| invites(profile, name) != right);
    wrong.map(|(profile, name)| format!("{profile} {name}: {:?}", look(profile, &name))).collect()
}

#[test]
fn a_composer_in_another_mode_invites_no_text() {
    assert_eq!(misjudged(&OTHERS, false), [""; 0]);
}

#[test]
fn a_composer_that_takes_a_prompt_invites_one_in_every_mode() {
    assert_eq!(misjudged(&PROMPTS, true), [""; 0]);
}

#[test]
fn a_mode_that_shows_nothing_looks_as_if_it_took_a_prompt() {
    assert_eq!(misjudged(&UNSEEN, true), [""; 0]);
    // opencode waits for the rest of a two-key command, which only colours of its theme show: a paste comes in whole
    // all the same, and the first Enter is taken for that rest, so that it is pressed again.
    assert!(invites("opencode", "modes/leader_24") && invites("opencode", "modes/leader_50"));
}

/// An agent that its user has started may have Claude Code's classic renderer: its composer grows out of the pane.
#[test]
fn a_composer_that_has_grown_out_of_the_pane_is_read_to_its_end() {
    let lines: String = (20..40).map(|number| format!("short line {number} ")).collect();
    let shown = tail(&(lines + "(tasuki delivery 5f2a9c81d0e3.)"));
    let expected = ScreenReading { activity: Activity::Ready, composer: shown };
    assert_eq!(look("claude", "modes/classic_tall_24"), expected);
}

/// Claude Code's classic renderer lets the composer grow out of the pane, where only its end is known.
#[test]
fn claude_is_started_with_the_renderer_whose_composer_scrolls() {
    let view = look("claude", "modes/classic_tall_24");
    assert!(view.activity != Activity::Ready || view.composer != ComposerContent::Empty, "{view:?}");
    let profiles = Profiles::load(None).expect("built in");
    let launch = profiles.get("claude").expect("built in").file.launch.as_ref().expect("it is started");
    assert_eq!(launch.env.get("CLAUDE_CODE_NO_FLICKER").map(String::as_str), Some("1"));
}
