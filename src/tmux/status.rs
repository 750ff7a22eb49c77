//! The option `@tasuki_status`: a line about tasuki that users may show in their status lines.
//!
//! It is set twice. In our own private session, each home has its own line, which disappears with that session. As a
//! global option, `#{@tasuki_status}` finds it anywhere, and the home that has written last wins. Neither changes
//! anybody's status line; users add the option themselves.

use super::{Error, Tmux};
use crate::core::text::sanitise;

const STATUS: &str = "@tasuki_status";
/// Server option: the home that has written the global line last.
const STATUS_OF: &str = "@tasuki_status_of";
const MAX_STATUS: usize = 160;

impl Tmux {
    /// Sets the line. Status lines that show it are redrawn at once. Only letters, digits, blanks and a few punctuation
    /// marks are kept, because others may have a meaning to tmux or to a terminal. A line longer than 160 characters is
    /// cut.
    ///
    /// # Errors
    /// When no server answers.
    pub async fn show_status(&self, line: &str) -> Result<(), Error> {
        let live = self.live().await?;
        let names = &self.inner.shared.names;
        let line = plain(line);
        let set = [
            format!("set-option -q -t \"={}:\" {STATUS} \"{line}\"", names.session()),
            format!("set-option -gq {STATUS} \"{line}\""),
            format!("set-option -sq {STATUS_OF} {}", names.tag()),
        ];
        self.change(&live, format!("if-shell -F \"{}\" {{ {} }}", names.fenced(&live.fence), set.join(" ; "))).await?;
        Ok(())
    }
}

/// The command that removes the global line, if it is this home's.
pub(super) fn withdraw(tag: &str) -> String {
    let ours = format!("#{{==:#{{{STATUS_OF}}},{tag}}}");
    format!("if-shell -F \"{ours}\" {{ set-option -gqu {STATUS} ; set-option -squ {STATUS_OF} }}")
}

/// The line without characters that may have a meaning: it stands between tmux's quotation marks, and later in a
/// format.
fn plain(line: &str) -> String {
    let means_nothing = |c: &char| c.is_alphanumeric() || " :·,…-_.".contains(*c);
    sanitise(line).chars().filter(means_nothing).take(MAX_STATUS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_line_means_anything_to_tmux() {
        assert_eq!(plain("2 agents · 1 handoff: writing 3:10, …"), "2 agents · 1 handoff: writing 3:10, …");
        assert_eq!(
            plain("#{pid} #(id) \"; kill-server\" $HOME ~ \\ {x} %H\u{1b}[31m\n"),
            "pid id  kill-server HOME   x H31m"
        );
        assert_eq!(plain(&"x".repeat(500)).len(), MAX_STATUS);
    }
}
