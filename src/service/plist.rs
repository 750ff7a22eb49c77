//! launchd's property list. The packaged file is the template, so that both say the same.

use super::{Plan, UnfitValue, text};

/// The last line of the variables in the template: what tells the program that launchd has started it.
const MANAGER: &str = "    <key>TASUKI_SERVICE</key>\n    <string>launchd</string>\n";

/// The property list for this user and this machine.
///
/// # Errors
/// A path or a name can't be written into it.
pub fn render(plan: &Plan) -> Result<String, UnfitValue> {
    let words: String = plan.words()?.iter().map(|word| format!("    <string>{}</string>\n", escaped(word))).collect();
    let variables: String = plan
        .environment
        .iter()
        .map(|(name, value)| format!("    <key>{}</key>\n    <string>{}</string>\n", escaped(name), escaped(value)))
        .collect();
    let log = escaped(&text("the path of the log", &plan.log)?);
    let service = plan.service;
    let packaged = format!("    <string>{}</string>\n    <string>run</string>\n", service.packaged);
    let note = format!(
        "<!-- {}, which rewrites this file on every run; \"{} uninstall\" removes it. -->\n",
        service.ours(),
        service.command
    );
    // The place of the log goes first, then the variables: what is put in afterwards may be called like them.
    Ok(without_comments(service.list_template)
        .replace(&format!("<string>{}</string>", service.packaged_log), &format!("<string>{log}</string>"))
        .replace(MANAGER, &format!("{MANAGER}{variables}"))
        .replace("<plist ", &format!("{note}<plist "))
        .replace(&packaged, &words))
}

/// The template without its comments, which describe the packaged file and not the generated one.
fn without_comments(template: &str) -> String {
    template.lines().filter(|line| !line.starts_with("<!--")).map(|line| format!("{line}\n")).collect()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::SIDECAR;
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    #[test]
    fn a_home_that_is_called_like_the_packaged_log_stays_the_home() {
        let plan = Plan {
            service: &SIDECAR,
            program: PathBuf::from("/opt/tasuki"),
            home: PathBuf::from("/Users/YOU/Library/Logs/tasuki/tasuki.log"),
            tmux: None,
            environment: BTreeMap::new(),
            starts_server: false,
            log: PathBuf::from("/Users/ada/log"),
        };
        let list = render(&plan).expect("fit");
        assert!(
            list.contains("<string>--home</string>\n    <string>/Users/YOU/Library/Logs/tasuki/tasuki.log</string>"),
            "{list}"
        );
        assert_eq!(list.matches("<string>/Users/ada/log</string>").count(), 2, "{list}");
    }

    #[test]
    fn the_packaged_places_are_all_replaced() {
        let plan = Plan {
            service: &SIDECAR,
            program: PathBuf::from("/opt/homebrew/bin/tasuki"),
            home: PathBuf::from("/Users/ada/a & <b>"),
            tmux: None,
            environment: BTreeMap::from([("PATH".to_owned(), "/opt/homebrew/bin:/usr/bin".to_owned())]),
            starts_server: false,
            log: PathBuf::from("/Users/ada/Library/Logs/tasuki.log"),
        };
        let list = render(&plan).expect("fit");
        assert!(!list.contains("/usr/local/bin/tasuki") && !list.contains("/Users/YOU"), "{list}");
        assert!(list.contains("<string>/Users/ada/a &amp; &lt;b&gt;</string>"), "{list}");
        assert!(list.contains("<key>PATH</key>\n    <string>/opt/homebrew/bin:/usr/bin</string>"), "{list}");
        assert!(list.contains("<key>TASUKI_SERVICE</key>\n    <string>launchd</string>\n"), "{list}");
        assert!(!list.contains("Background"), "a heartbeat must not wait for other work: {list}");
    }
}
