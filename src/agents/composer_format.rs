//! The part of a profile that says where the composer stands on the screen, and what in it is text.

use super::condition::Pattern;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

/// From which side the composer is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Anchor {
    /// The last line that matches `bottom`, then upwards the nearest `top`.
    #[default]
    Bottom,
    /// The last line that matches `top`, then downwards the first `bottom`, or the end of the screen.
    Top,
}

/// Where the composer is, and what in it is not text.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ComposerSection {
    /// The line above the composer's text, such as a border; with `top_is_text` its first line.
    pub top: Pattern,
    /// The line below its text.
    pub bottom: Pattern,
    /// A line counts as `top` only if it is as wide as the `bottom` line: for borders that a line of text may look
    /// like, but that are wider than any line of text.
    #[serde(default)]
    pub top_as_wide_as_bottom: bool,
    /// The composer is as wide as what `bottom` matches; what stands to the right of that is not its text.
    #[serde(default)]
    pub as_wide_as_bottom: bool,
    /// A long text takes the screen down to its end, and `bottom` is not drawn: then the text begins at the last `top`
    /// and ends with the screen. With `cursor_inside`, `top` must be in the upper half; without it, the cursor must
    /// stand at the text's end. Looked for only if no composer with a `bottom` and no dialog is seen; never read as
    /// empty.
    #[serde(default)]
    pub fills_screen: bool,
    /// A long text takes the screen up to its first row, and `top` is out of sight. Then all rows above `bottom` are
    /// text, if one of `strip` fits each and the cursor is in one. Looked for only if no `top` and no dialog is seen.
    #[serde(default)]
    pub outgrows_screen: bool,
    /// From which side to look.
    #[serde(default)]
    pub anchor: Anchor,
    /// The `top` line holds text itself.
    #[serde(default)]
    pub top_is_text: bool,
    /// What the first line of text must look like, such as a prompt sign.
    pub first: Option<Pattern>,
    /// How the `top` line, or the first line of text that is in sight, looks while the composer shows only the end of a
    /// long text. The text's first line, such as one with a prompt sign, is then out of sight and not looked for. If
    /// this is not set, tasuki treats a text of five lines or more as one whose beginning may be out of sight, and
    /// five blank lines or more as the end of such a text.
    pub scrolled: Option<Pattern>,
    /// The terminal's cursor must be inside, above `bottom`: for a CLI that shows the real cursor.
    #[serde(default)]
    pub cursor_inside: bool,
    /// Skips the composer's last line if it matches: some CLIs name the model there.
    pub last: Option<Pattern>,
    /// The `last` line may take several rows, with blank rows below them. A blank row must part it from the text. Its
    /// first row must match, and none of the others.
    #[serde(default)]
    pub last_wraps: bool,
    /// Taken off each line, one after the other: borders, the prompt sign.
    #[serde(default)]
    pub strip: Vec<Pattern>,
    /// How ghost text (a hint in the place of text) is drawn. Faint (`dim`) and bright black (`grey8`) unless
    /// said otherwise.
    #[serde(default = "ghost_looks")]
    pub ghost: Vec<GhostLook>,
    /// Foreground colours that only ghost text has: `38;5;244`, `38;2;108;112;134`, `37`.
    #[serde(default)]
    pub ghost_colours: Vec<String>,
    /// Texts that are ghosts however they are drawn; matched against the whole composer.
    #[serde(default)]
    pub ghost_texts: Vec<Pattern>,
    /// What a collapsed paste looks like, with the number of its lines or characters in a group named `size`. A blank
    /// in the pattern matches any white space or none: the composer's text is matched as it is, and then
    /// without white space.
    #[serde(default)]
    pub collapsed: Vec<Collapsed>,
}

/// How ghost text may be drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GhostLook {
    /// Faint: SGR 2.
    Dim,
    /// Bright black: SGR 90 or 38;5;8.
    Grey8,
}

/// A pattern in which a blank matches any white space or none.
#[derive(Debug, Clone, JsonSchema)]
#[schemars(transparent)]
pub struct Collapsed(pub Pattern);

impl<'de> Deserialize<'de> for Collapsed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?.replace(' ', r"\s*");
        Pattern::checked(format!("^(?:{text})$"))
            .map(Collapsed)
            .map_err(|why| serde::de::Error::custom(format!("not a regular expression: {why}")))
    }
}

fn ghost_looks() -> Vec<GhostLook> {
    vec![GhostLook::Dim, GhostLook::Grey8]
}
