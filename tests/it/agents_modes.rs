//! The modes of each CLI's composer (a shell's, a search, vim's, a menu), as the CLIs draw them. A text goes into a
//! composer that hands it to the model, and into no other: some modes give every line to a shell.

use crate::agents_screens::look;
use tasuki::core::pane::{Activity, Composer};

/// Whether a text would be typed into what this screen shows.
fn invites(profile: &str, name: &str) -> bool {
    let view = look(profile, name);
    view.activity == Activity::Ready && view.composer == Composer::Empty
}

#[test]
fn a_composer_in_another_mode_invites_no_text() {
    for (profile, name) in
        [("gemini", "shell"), ("gemini", "shell_emptied"), ("gemini", "shell_after_turn"), ("gemini", "search")]
    {
        assert!(!invites(profile, name), "{profile} {name}: {:?}", look(profile, name));
    }
}
