//! launchd's property list. The packaged file is the template, so that both say the same.

use super::{Plan, UnfitValue, Written, text};

/// The last variable in the template, which tells the program that launchd has started it.
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
    // The log is replaced first, then the variables are added. In the other order, a home or a value could contain the
    // text that a later replacement looks for.
    Ok(without_comments(service.list_template)
        .replace(&format!("<string>{}</string>", service.packaged_log), &format!("<string>{log}</string>"))
        .replace(MANAGER, &format!("{MANAGER}{variables}"))
        .replace("<plist ", &format!("{note}<plist "))
        .replace(&packaged, &words))
}

/// Reads a property list that [`render`] wrote; `None` if the command line or the variables have another form than
/// `render` gives them. Other changes are not noticed.
#[must_use]
pub fn read(list: &str) -> Option<Written> {
    let words = elements(section(list, "ProgramArguments", "array")?)?;
    let words: Option<Vec<String>> = words.into_iter().map(|(tag, text)| (tag == "string").then_some(text)).collect();
    let mut environment = Vec::new();
    let variables = elements(section(list, "EnvironmentVariables", "dict")?)?;
    for pair in variables.chunks(2) {
        let [(key, name), (string, value)] = pair else { return None };
        if key != "key" || string != "string" {
            return None;
        }
        // This variable comes with the template.
        if name != "TASUKI_SERVICE" {
            environment.push((name.clone(), value.clone()));
        }
    }
    Some(Written { words: words.filter(|words| !words.is_empty())?, environment })
}

/// The contents of the element that follows a key. No text in it can look like its end tag, because `<` is escaped.
fn section<'a>(list: &'a str, key: &str, tag: &str) -> Option<&'a str> {
    let (_, after) = list.split_once(&format!("<key>{key}</key>"))?;
    let (inside, _) = after.trim_start().strip_prefix(&format!("<{tag}>"))?.split_once(&format!("</{tag}>"))?;
    Some(inside)
}

/// Elements that hold only a text: the tag and the text of each.
fn elements(inside: &str) -> Option<Vec<(String, String)>> {
    let (mut elements, mut rest) = (Vec::new(), inside.trim());
    while !rest.is_empty() {
        let (tag, after) = rest.strip_prefix('<')?.split_once('>')?;
        let (text, after) = after.split_once(&format!("</{tag}>"))?;
        elements.push((tag.to_owned(), unescaped(text)));
        rest = after.trim_start();
    }
    Some(elements)
}

fn unescaped(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
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
    fn a_written_list_can_be_read_again_and_would_be_written_as_it_is() {
        for tmux in [None, Some("work".to_owned())] {
            let plan = Plan {
                service: &SIDECAR,
                program: PathBuf::from("/opt/my tools/tasuki"),
                home: PathBuf::from("/Users/ada/a & <b> &lt; </array>"),
                tmux,
                environment: BTreeMap::from(
                    ["PATH", "TASUKI_LOG"].map(|name| (name.to_owned(), "/a b:/c&d".to_owned())),
                ),
                starts_server: false,
                log: PathBuf::from("/Users/ada/log"),
            };
            let list = render(&plan).expect("fit");
            let written = read(&list).expect("ours");
            assert_eq!(Ok(&written.words), plan.words().as_ref());
            assert_eq!(written.environment, plan.environment.clone().into_iter().collect::<Vec<_>>());
            assert_eq!(written.plan(&SIDECAR, plan.log.clone()), Some(plan));
        }
        assert_eq!(read(SIDECAR.list_template).map(|written| written.words.len()), Some(2), "the packaged one");
        for other in ["", "<plist/>", "<key>ProgramArguments</key><array><integer>1</integer></array>"] {
            assert_eq!(read(other), None, "{other}");
        }
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
