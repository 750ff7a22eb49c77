//! Screens as the CLIs draw them (`tests/screens/<profile>/<name>.txt`, as `capture-pane -e -p` prints them, with
//! `\e` for the escape character), and how the profiles read them.

use std::path::PathBuf;
use std::sync::LazyLock;
use tasuki::agents::{Profiles, ansi};
use tasuki::core::pane::{Activity, ComposerContent, ScreenReading};

/// The first line of a screen whose text has this is where the cursor stands; the mark itself is taken away.
const CURSOR: &str = "<cursor>";

pub(crate) fn look(profile: &str, name: &str) -> ScreenReading {
    let path =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/screens").join(profile).join(format!("{name}.txt"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
    let text = text.replace("\\e", "\u{1b}");
    let marked = text.lines().enumerate().find_map(|(row, line)| Some((row, line.split_once(CURSOR)?.0)));
    let (row, before) = marked.unwrap_or_default();
    let column = ansi::cells(before, 1).first().map_or(0, Vec::len);
    let text = text.replace(CURSOR, "");
    static PROFILES: LazyLock<Profiles> = LazyLock::new(|| Profiles::load(None).expect("built in"));
    let cursor = (u16::try_from(column).expect("a small screen"), u16::try_from(row).expect("a small screen"));
    // Screens of real agents are no higher than the windows that tasuki makes for them.
    let height = u16::try_from(text.lines().count()).map_or(50, |lines| lines.min(50));
    PROFILES.get(profile).expect("built in").read_screen(&text, height, cursor)
}

pub(crate) fn text(words: &str) -> ComposerContent {
    ComposerContent::Text(words.chars().filter(|c| !c.is_whitespace()).collect())
}

/// Only the end of a longer text.
pub(crate) fn tail(words: &str) -> ComposerContent {
    ComposerContent::Tail(words.chars().filter(|c| !c.is_whitespace()).collect())
}

/// A clock in the user's own line below the composer is not the agent's work.
#[test]
fn what_is_above_the_composer_is_told_apart_from_what_is_below() {
    let profiles = Profiles::load(None).expect("built in");
    let profile = profiles.get("claude").expect("built in");
    let rows = |lines: &[&str]| profile.rows_above_composer(&lines.join("\n"), 6, (2, 3));
    let rule = "─".repeat(40);
    assert_eq!(rows(&["● Done.", "", &rule, "❯ ", &rule, "  Opus | 12:00:01"]), 2);
    assert_eq!(rows(&["● Done.", "", "no composer", "", "", "  Opus | 12:00:01"]), 6);
}

#[test]
fn demo_screens() {
    for (name, activity, composer) in [
        ("ready", Activity::Ready, ComposerContent::Empty),
        ("odd_ghost", Activity::Ready, ComposerContent::Empty),
        ("draft", Activity::Ready, text("a draft of two lines with a │ in it")),
        ("clipped", Activity::Ready, tail("line 8 line 9 (tasuki delivery 5f2a9c81d0e3.)")),
        ("collapsed", Activity::Ready, ComposerContent::Collapsed { size: Some(12) }),
        ("collapsed_and_more", Activity::Ready, text("hello [Pasted text #1 +12 lines]")),
        ("busy", Activity::Busy, ComposerContent::Empty),
        ("busy_words_in_draft", Activity::Ready, text("⠋ Working… (1s · esc to interrupt)")),
        ("blocked", Activity::Blocked, ComposerContent::Unreadable),
        ("old_menu_above", Activity::Ready, ComposerContent::Empty),
        ("box_in_the_answer", Activity::Ready, text("mine")),
        ("starting", Activity::Unknown, ComposerContent::Unreadable),
        ("shell", Activity::Unknown, ComposerContent::Unreadable),
        ("cursor_elsewhere", Activity::Unknown, ComposerContent::Unreadable),
    ] {
        assert_eq!(look("demo", name), ScreenReading { activity, composer }, "{name}");
    }
}

/// A prompt that came back into the composer.
const INTERRUPTED: &str = "Please write a handoff document for your successor. Your context is to be handed to a \
    successor (reason: context_limit). Write a handoff document in the first person to this file: \
    `/home/kai/tasuki/data/personas/dev/handoffs/20261122T032443-1174905b.md` Write it with your own tools, as one \
    Markdown file with these sections: ## What I was working on ## Current progress ## Key decisions and why ## Blockers \
    ## Files modified ## Next steps Say what you know and your successor can't see: dead ends, half-made changes, what \
    you were about to do. Write the whole file before you end your turn, and change nothing else. (tasuki delivery \
    f0841e6000a2.)";

#[test]
fn claude_screens() {
    let rule = |n| format!("- Rule {n}: read `src/part_{n}.rs` before you change it; cost < $5 & 100% tested.");
    let rules: String = (10..25).map(rule).collect();
    let end = "indented code { stays } /not-a-command and @nobody and !nothing and # no heading (tasuki delivery d3d381c5d7ac.)";
    let scrolled = format!("{rules}{end}");
    for (name, activity, composer) in [
        ("ready", Activity::Ready, ComposerContent::Empty),
        ("ghost_under_cursor", Activity::Ready, ComposerContent::Empty),
        // The user's own line below the composer begins as a running turn does.
        ("status_line", Activity::Ready, ComposerContent::Empty),
        ("draft", Activity::Ready, text("please do not")),
        ("coloured_draft", Activity::Ready, text("a draft in colour two")),
        ("collapsed", Activity::Ready, ComposerContent::Collapsed { size: Some(40) }),
        ("busy", Activity::Busy, ComposerContent::Empty),
        ("busy_words_in_answer", Activity::Ready, ComposerContent::Empty),
        ("permission", Activity::Blocked, ComposerContent::Unreadable),
        ("trust", Activity::Blocked, ComposerContent::Unreadable),
        ("interrupted", Activity::Ready, text(INTERRUPTED)),
        ("scrolled", Activity::Ready, tail(&scrolled)),
        // In panes of 11, 10 and 9 rows. In the last one, the text's end is out of sight too.
        ("low_11", Activity::Ready, tail("Sixth Seventh (tasuki delivery 5f2a9c81d0e3.)")),
        ("low_10", Activity::Ready, tail("line 4 line 5 line 6")),
        ("low_9", Activity::Unknown, ComposerContent::Unreadable),
        ("low_blank_end", Activity::Ready, tail("")),
        ("low_unscrolled", Activity::Ready, text("one two (tasuki delivery 5f2a9c81d0e3.)")),
        // Its empty composer has no lower border in a pane of 7 rows.
        ("low_empty", Activity::Ready, ComposerContent::Unreadable),
        ("list_in_prose", Activity::Ready, ComposerContent::Empty),
        ("zsh", Activity::Unknown, ComposerContent::Unreadable),
    ] {
        assert_eq!(look("claude", name), ScreenReading { activity, composer }, "{name}");
    }
}

/// A person's words that look like what Codex tells of warnings, but stand where words do.
const WARNINGS_IN_DRAFT: &str =
    "first line of a draft second line · /with/a/path indented [x] last line: ⚠ 2 warnings · f2 to view";

/// The end of a list of paths.
const PATHS: &str = "x26 · ~/y x27 · ~/y x28 · ~/y x29 · ~/y x30 · ~/y (tasuki delivery 5f2a9c81d0e3.)";

/// A text with a small table.
const TABLE: &str = "Keep this table: name size ──────────── and say yes. (tasuki delivery 5f2a9c81d0e3.)";

#[test]
fn codex_and_pi_screens() {
    let items: String = (18..=30).map(|number| format!("{number}. item ")).collect();
    let items = items + "(tasuki delivery 5f2a9c81d0e3.)";
    for (profile, name, activity, composer) in [
        ("codex", "ready", Activity::Ready, ComposerContent::Empty),
        ("codex", "draft", Activity::Ready, text("please do not")),
        (
            "codex",
            "long_draft",
            Activity::Ready,
            text("first line of a draft second line · /with/a/path indented [x] last line"),
        ),
        ("codex", "collapsed", Activity::Ready, ComposerContent::Collapsed { size: Some(2211) }),
        // Its composer takes all the rows down to the end, and the line with model and folder is not drawn.
        ("codex", "fills_screen", Activity::Ready, tail(&items)),
        ("codex", "low", Activity::Ready, tail("step 3 step 4 step 5 step 6 (tasuki delivery 5f2a9c81d0e3.)")),
        // Lines of the text look like the line with model and folder.
        ("codex", "paths_fill_screen", Activity::Ready, tail(PATHS)),
        (
            "codex",
            "paths_apart_fill_screen",
            Activity::Ready,
            tail("x29 · ~/y x30 · ~/y (tasuki delivery 5f2a9c81d0e3.)"),
        ),
        // What it tells of warnings is drawn all the same, and is nobody's text.
        ("codex", "fills_screen_warnings", Activity::Ready, tail(&items)),
        ("codex", "fills_screen_warning", Activity::Ready, tail(&items)),
        ("codex", "warnings_in_draft", Activity::Ready, text(WARNINGS_IN_DRAFT)),
        ("codex", "command", Activity::Ready, text("/quit")),
        ("codex", "busy", Activity::Busy, ComposerContent::Empty),
        ("codex", "busy_words_in_answer", Activity::Ready, ComposerContent::Empty),
        // While its answer comes in, it shows no sign of work.
        ("codex", "streaming", Activity::Ready, ComposerContent::Empty),
        ("codex", "permission", Activity::Blocked, ComposerContent::Unreadable),
        ("codex", "sign_in", Activity::Blocked, ComposerContent::Unreadable),
        ("pi", "ready", Activity::Ready, ComposerContent::Empty),
        ("pi", "draft", Activity::Ready, text("please do not")),
        // A line of the text that looks like the composer's border is not the border: text stands above it.
        ("pi", "rule_in_draft", Activity::Ready, text(TABLE)),
        ("pi", "rule_ends_draft", Activity::Ready, text("MY DRAFT do not send name size ────────────")),
        ("pi", "count_in_draft", Activity::Ready, tail("─── ↑ 5 more ───")),
        ("pi", "no_models", Activity::Unknown, ComposerContent::Empty),
        ("pi", "collapsed", Activity::Ready, ComposerContent::Collapsed { size: Some(11) }),
        // One long paragraph: the number of the paste stands right before the number of its characters.
        ("pi", "collapsed_paragraph", Activity::Ready, ComposerContent::Collapsed { size: Some(5101) }),
        ("pi", "busy", Activity::Busy, ComposerContent::Empty),
    ] {
        assert_eq!(look(profile, name), ScreenReading { activity, composer }, "{profile} {name}");
    }
}

#[test]
fn gemini_and_opencode_screens() {
    for (profile, name, activity, composer) in [
        ("gemini", "ready", Activity::Ready, ComposerContent::Empty),
        ("gemini", "draft", Activity::Ready, text("half a prompt")),
        // What completes a command is listed below the composer.
        ("gemini", "quit_typed", Activity::Ready, text("/quit")),
        ("gemini", "full_quit_typed", Activity::Ready, text("/quit")),
        ("gemini", "collapsed", Activity::Ready, ComposerContent::Collapsed { size: Some(7) }),
        ("gemini", "busy", Activity::Busy, ComposerContent::Empty),
        // An earlier frame's end stands above this one, as after the window has got another size.
        ("gemini", "after_resize", Activity::Ready, ComposerContent::Empty),
        // The dialog takes the composer's place; above it stands the last prompt, with the composer's own sign.
        ("gemini", "usage_limit", Activity::Blocked, ComposerContent::Unreadable),
        ("opencode", "ready", Activity::Ready, ComposerContent::Empty),
        ("opencode", "draft", Activity::Ready, text("half a prompt")),
        // Only the last line says which agent and model answer; a draft may look like it.
        ("opencode", "dotted_draft", Activity::Ready, text("line · with dot")),
        // In a narrow pane that line takes several rows, and blank rows may stand below it.
        ("opencode", "narrow", Activity::Ready, ComposerContent::Empty),
        ("opencode", "narrow_44", Activity::Ready, ComposerContent::Empty),
        ("opencode", "narrow_start", Activity::Ready, ComposerContent::Empty),
        ("opencode", "narrow_draft", Activity::Ready, text("Fix · it that now")),
        ("opencode", "narrow_draft_44", Activity::Ready, text("Fix · it that now")),
        ("opencode", "narrow_busy", Activity::Busy, ComposerContent::Empty),
        // No blank row parts that line from the text.
        ("opencode", "narrow_squeezed", Activity::Ready, tail("Fix · it that now Buil Claude Sonnet 4.5 (d latest)")),
        // What completes a command is listed right above the composer.
        ("opencode", "exit_typed", Activity::Ready, text("/exit")),
        ("opencode", "exit_typed_at_start", Activity::Ready, text("/exit")),
        ("opencode", "collapsed", Activity::Ready, ComposerContent::Collapsed { size: Some(7) }),
        // A sidebar with a long path stands beside the composer.
        ("opencode", "sidebar", Activity::Ready, ComposerContent::Empty),
        ("opencode", "sidebar_draft", Activity::Ready, text("half a prompt")),
        ("opencode", "question", Activity::Blocked, ComposerContent::Unreadable),
        ("opencode", "busy", Activity::Busy, ComposerContent::Empty),
    ] {
        assert_eq!(look(profile, name), ScreenReading { activity, composer }, "{profile} {name}");
    }
}

/// Each holds a row that fills the pane's columns and has more characters than the pane has columns: marks above and
/// below letters and the signs that make a character an emoji take none.
#[test]
fn a_text_in_any_script_is_read_whole() {
    let thai = "กรุณาแก้ข้อผิดพลาดที่เกี่ยวกับการชำระเงินนี้ด้วย".repeat(5);
    let warnings = "⚠️ stop ".repeat(24);
    let end = "(tasuki delivery 5f2a9c81d0e3.)";
    for (profile, name, words) in [
        ("claude", "thai", format!("{thai}{end}")),
        ("claude", "warnings", format!("{warnings}{end}")),
        // The sidebar stands beside the text: with wide characters, fewer of them are the composer's than it has
        // columns.
        ("opencode", "sidebar_thai", thai),
        ("opencode", "sidebar_japanese", "支払いの再試行を直してください。".repeat(5)),
    ] {
        assert_eq!(look(profile, name), ScreenReading { activity: Activity::Ready, composer: text(&words) }, "{name}");
    }
}

/// The composer shows only the end of the text, and that end is blank.
#[test]
fn a_draft_whose_visible_end_is_blank_is_not_taken_for_an_empty_composer() {
    for profile in ["claude", "codex", "opencode", "pi"] {
        let drafted = ScreenReading { activity: Activity::Ready, composer: tail("") };
        assert_eq!(look(profile, "blank_end"), drafted, "{profile}");
    }
}

#[test]
fn an_empty_or_broken_screen_is_unknown() {
    let profiles = Profiles::load(None).expect("built in");
    for profile in profiles.iter() {
        for screen in ["", "\n\n\n", "\u{1b}[", "\u{1b}[38;5", "╭─╮", "╰─╯", "❯", "───\n───"]
        {
            for height in [24, 1, 0] {
                let view = profile.read_screen(screen, height, (200, 200));
                assert_ne!(view.activity, Activity::Blocked, "{} {screen:?}", profile.name);
                assert!(!matches!(view.composer, ComposerContent::Text(_)), "{} {screen:?}", profile.name);
            }
        }
    }
}

#[test]
fn a_composer_that_begins_below_the_screen_is_not_looked_into() {
    let built_in = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("data/profiles/codex.toml");
    let text = std::fs::read_to_string(built_in).expect("a profile");
    let dir = tempfile::tempdir().expect("a folder");
    let mine = text.replacen("top_is_text = true", "first = '^> '", 1);
    assert_ne!(mine, text);
    std::fs::write(dir.path().join("mine.toml"), mine).expect("written");
    let profiles = Profiles::load(Some(dir.path())).expect("a right profile");
    let view = profiles.get("mine").expect("loaded").read_screen("an answer\n\n› ", 3, (0, 2));
    assert_eq!(view, ScreenReading { activity: Activity::Unknown, composer: ComposerContent::Unreadable });
}
