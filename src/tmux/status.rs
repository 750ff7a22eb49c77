//! The option `@tasuki_status`: a line about tasuki that users may show in their status lines.
//!
//! It is set twice: in our own private session, so that each home has its own and it disappears with that session; and
//! as a global option, where `#{@tasuki_status}` finds it and the home that has written last wins. Neither changes
//! anybody's status line; users add it themselves.

use super::{Error, Tmux};
use crate::core::text::sanitise;

const STATUS: &str = "@tasuki_status";
/// Server option: which home has written the global one.
const STATUS_OF: &str = "@tasuki_status_of";
const MAX_STATUS: usize = 160;

impl Tmux {
    /// Sets the line. Terminals that show it in their status lines redraw these at once. Characters that mean more than
    /// themselves to tmux or a terminal are left out; a line longer than 160 characters is cut.
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

/// The command that takes the global line back, if it is this home's.
pub(super) fn withdraw(tag: &str) -> String {
    let ours = format!("#{{==:#{{{STATUS_OF}}},{tag}}}");
    format!("if-shell -F \"{ours}\" {{ set-option -gqu {STATUS} ; set-option -squ {STATUS_OF} }}")
}

/// A text between tmux's quotation marks, which later becomes part of a format, must have no meaning in either.
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
