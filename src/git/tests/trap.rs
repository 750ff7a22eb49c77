//! A hostile repository. Every setting, attribute and hook that makes git run a program names a program that writes its
//! own name into a file.

use super::support::{Place, facts, gits};
use crate::contract::facts::RepositoryFacts;
use crate::core::check::Claims;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Settings whose value is a command; `CANARY` stands for a program with the name of the setting.
const PROGRAMS: [(&str, &str); 47] = [
    ("core.fsmonitor", "CANARY"),
    ("core.pager", "CANARY"),
    ("core.editor", "CANARY"),
    ("core.askPass", "CANARY"),
    ("core.sshCommand", "CANARY"),
    ("core.gitProxy", "CANARY"),
    ("core.alternateRefsCommand", "CANARY"),
    ("sequence.editor", "CANARY"),
    ("pager.status", "CANARY"),
    ("pager.log", "CANARY"),
    ("pager.diff", "CANARY"),
    ("pager.config", "CANARY"),
    ("pager.rev-parse", "CANARY"),
    ("pager.for-each-ref", "CANARY"),
    ("alias.status", "!CANARY"),
    ("alias.log", "!CANARY"),
    ("alias.diff", "!CANARY"),
    ("alias.config", "!CANARY"),
    ("alias.rev-parse", "!CANARY"),
    ("diff.external", "CANARY"),
    ("diff.canary.command", "CANARY"),
    ("diff.canary.textconv", "CANARY"),
    ("difftool.canary.cmd", "CANARY"),
    ("merge.canary.driver", "CANARY"),
    ("mergetool.canary.cmd", "CANARY"),
    ("filter.canary.clean", "CANARY"),
    ("filter.canary.smudge", "CANARY"),
    ("filter.canary.required", "true"),
    ("filter.second.process", "CANARY"),
    ("gpg.program", "CANARY"),
    ("gpg.openpgp.program", "CANARY"),
    ("gpg.ssh.program", "CANARY"),
    ("gpg.ssh.defaultKeyCommand", "CANARY"),
    ("credential.helper", "!CANARY"),
    ("credential.https://example.org.helper", "!CANARY"),
    ("trailer.signed.command", "CANARY"),
    ("trailer.signed.cmd", "CANARY"),
    ("submodule.module.update", "!CANARY"),
    ("interactive.diffFilter", "CANARY"),
    ("uploadpack.packObjectsHook", "CANARY"),
    ("receive.procReceiveRefs", "refs"),
    ("remote.origin.uploadpack", "CANARY"),
    ("remote.origin.receivepack", "CANARY"),
    ("remote.origin.url", "ext::CANARY"),
    ("hook.canary.command", "CANARY"),
    ("man.canary.cmd", "CANARY"),
    ("sendemail.sendmailCmd", "CANARY"),
];

/// Settings that make git use the ones above.
const SWITCHES: [(&str, &str); 24] = [
    ("hook.canary.event", "post-index-change"),
    ("core.untrackedCache", "true"),
    ("core.splitIndex", "true"),
    ("log.showSignature", "true"),
    ("log.diffMerges", "remerge"),
    ("log.mailmap", "true"),
    ("diff.submodule", "log"),
    ("diff.ignoreSubmodules", "none"),
    ("diff.autoRefreshIndex", "true"),
    ("status.submoduleSummary", "true"),
    ("submodule.recurse", "true"),
    ("fetch.recurseSubmodules", "true"),
    ("fetch.bundleURI", "https://127.0.0.1:1/bundle"),
    ("protocol.allow", "always"),
    ("protocol.ext.allow", "always"),
    ("protocol.file.allow", "always"),
    ("color.ui", "always"),
    ("column.ui", "always"),
    ("gc.auto", "1"),
    ("maintenance.auto", "true"),
    ("extensions.partialClone", "origin"),
    ("remote.origin.promisor", "true"),
    ("safe.directory", "*"),
    ("core.repositoryFormatVersion", "1"),
];

const HOOKS: [&str; 5] =
    ["post-index-change", "reference-transaction", "fsmonitor-watchman", "post-checkout", "pre-auto-gc"];
const ATTRIBUTES: &str = "a filter=canary diff=canary merge=canary\nsub/b filter=second diff=canary\n";

/// A hostile repository and the file in which its programs leave their names.
pub(super) struct Trap {
    pub place: Place,
    pub ran: PathBuf,
    hooks: PathBuf,
}

impl Trap {
    /// Files that differ, look as if they differ, are new, and are staged; a signed commit; all settings above.
    pub(super) fn new() -> Trap {
        Trap::of(Place::new())
    }

    /// Makes a harmless repository hostile.
    pub(super) fn of(place: Place) -> Trap {
        let ran = place.outside().join("ran");
        place.write(".gitattributes", ATTRIBUTES);
        place.write("staged", "x\n");
        place.commit("Attributes");
        sign_head(&place);
        place.git(&["update-ref", "refs/remotes/origin/main", "HEAD"]);
        let hooks = place.outside().join("hooks");
        let trap = Trap { place, ran, hooks };
        trap.set_all(&trap.place.work().join(".git/config"));
        trap.set_hooks();
        let info = trap.place.work().join(".git/info/attributes");
        fs::write(info, ATTRIBUTES).expect("written");
        trap.touch();
        trap
    }

    /// Makes a program that writes this name and does nothing else, except that a `clean` filter passes its text on.
    /// Returns the program's path.
    pub(super) fn canary(&self, name: &str) -> String {
        let filter = if name.ends_with(".clean") { "cat" } else { "exit 1" };
        let script = format!("echo '{name}' >>'{}'\n{filter}", self.ran.display());
        self.place.program(&name.replace('/', "-"), &script)
    }

    /// Adds every setting to a configuration file.
    pub(super) fn set_all(&self, config: &Path) {
        let attributes = self.place.outside().join("attributes");
        fs::write(&attributes, ATTRIBUTES).expect("written");
        let attributes = attributes.to_str().expect("UTF-8");
        let others = [
            ("core.attributesFile", attributes),
            ("core.hooksPath", self.hooks.to_str().expect("UTF-8")),
            ("branch.main.remote", "origin"),
            ("branch.main.merge", "refs/heads/main"),
        ];
        let mut text = fs::read_to_string(config).unwrap_or_default();
        for (name, value) in PROGRAMS.iter().chain(&SWITCHES).chain(&others) {
            let value = value.replace("CANARY", &self.canary(name));
            text += &setting(name, &value);
        }
        fs::write(config, text).expect("written");
    }

    fn set_hooks(&self) {
        for folder in [self.hooks.clone(), self.place.work().join(".git/hooks")] {
            fs::create_dir_all(&folder).expect("a folder");
            for hook in HOOKS {
                fs::copy(self.canary("hook"), folder.join(hook)).expect("copied");
            }
        }
    }

    /// Writes the same text again with another time, so that git compares it; another text; a new file. Forgets which
    /// programs have run.
    pub(super) fn touch(&self) {
        self.place.write("a", "one\n");
        self.place.write("sub/b", "owt\n");
        self.place.write("staged", "longer text\n");
        self.place.write("new", "x\n");
        let _ = fs::remove_file(&self.ran);
    }

    /// Which programs have run.
    pub(super) fn ran(&self) -> BTreeSet<String> {
        let text = fs::read_to_string(&self.ran).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Takes facts and answers claims in this folder with every git; nothing may run, and nothing may be written.
    pub(super) async fn assert_nothing_runs(&self, cwd: &Path) -> Option<RepositoryFacts> {
        let claims = Claims {
            commits: [self.place.head(), "0123456789".to_owned()].into(),
            branches: ["main", "nowhere"].map(str::to_owned).into(),
            paths: ["a", "gone", "sub/never"].map(str::to_owned).into(),
        };
        let _ = fs::remove_file(&self.ran);
        let mut last = None;
        for git in gits() {
            let before = self.place.snapshot();
            git.lookups(cwd, &claims).await;
            assert!(before == self.place.snapshot(), "something has written into the repository");
            last = facts(&git, &self.place, cwd).await.0;
            assert_eq!(self.ran(), BTreeSet::new(), "{git:?}");
        }
        last
    }
}

/// A setting as a configuration file has it.
pub(super) fn setting(name: &str, value: &str) -> String {
    let (section, rest) = name.split_once('.').expect("a section");
    let value = value.replace('\\', "\\\\").replace('"', "\\\"");
    match rest.rsplit_once('.') {
        Some((part, name)) => format!("[{section} \"{part}\"]\n{name} = \"{value}\"\n"),
        None => format!("[{section}]\n{rest} = \"{value}\"\n"),
    }
}

/// Replaces HEAD by a commit with a forged signature.
fn sign_head(place: &Place) {
    let text = place.git(&["cat-file", "commit", "HEAD"]);
    let (head, message) = text.split_once("\n\n").expect("a message");
    let signature = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----";
    let file = place.outside().join("commit");
    fs::write(&file, format!("{head}\n{signature}\n\n{message}\n\nSigned: x\n")).expect("written");
    let hash = place.git(&["hash-object", "-t", "commit", "-w", file.to_str().expect("UTF-8")]);
    place.git(&["update-ref", "refs/heads/main", &hash]);
}
