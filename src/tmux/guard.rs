//! The names that tasuki uses inside a tmux server, and the guard of every line that types. Names contain the home's
//! tag, except those that all homes share: the claim, [`Names::LEAVING`], and the options that [`super::status`] shows
//! to users.
//!
//! The server evaluates the guard and makes the change in one step. The guard checks the fence (no former connection of
//! ours can act late), the claim (no other home owns the pane), the pane's mark (no text is typed twice), the pane's
//! process, that the pane is alive and takes input, and, if it is known, the program in the foreground.

use super::quote::{HasNul, in_comparison, quote};
use crate::core::id::DeliveryId;
use crate::core::pane::PaneRef;

/// The names of one home inside the server.
#[derive(Debug, Clone)]
pub(super) struct Names {
    tag: String,
}

impl Names {
    /// `tag` is 8 hexadecimal digits.
    pub(super) fn new(tag: &str) -> Names {
        Names { tag: tag.to_owned() }
    }

    pub(super) fn tag(&self) -> &str {
        &self.tag
    }

    /// Pane option: which home the agent there belongs to. All homes share this name.
    pub(super) const CLAIM: &'static str = "@tasuki_claim";

    /// Whether a claim does not belong to this home. A claim that was written by hand stops our typing too, until this
    /// home claims the pane the next time and replaces it.
    pub(super) fn is_foreign(&self, claim: &str) -> bool {
        !claim.is_empty() && claim.get(..8) != Some(self.tag.as_str())
    }

    /// Condition: the pane is claimed by this home or by nobody.
    fn ours_or_unclaimed(&self) -> String {
        let claim = Self::CLAIM;
        format!("#{{||:#{{==:#{{{claim}}},}},#{{==:#{{=8:{claim}}},{}}}}}", self.tag)
    }

    /// Format: a pane's process id, 0 if it has no process. tmux 3.8 prints nothing in that case, and older versions
    /// print 0.
    pub(super) const PROCESS: &'static str = "#{?pane_pid,#{pane_pid},0}";

    /// The private session that our control client sits in.
    pub(super) fn session(&self) -> String {
        format!("{}{}", Self::SESSIONS, self.tag)
    }

    /// How the names of all homes' private sessions begin.
    pub(super) const SESSIONS: &'static str = crate::core::request::PRIVATE_SESSIONS;

    /// Server option: the fence of the connection that may act.
    pub(super) fn fence(&self) -> String {
        format!("@tasuki_fence_{}", self.tag)
    }

    /// Pane option: what was typed last.
    pub(super) fn mark(&self) -> String {
        format!("@tasuki_mark_{}", self.tag)
    }

    /// Server option: this creation was carried out. Its value is the time of the creation, in seconds since 1970.
    pub(super) fn made(&self, creation: &str) -> String {
        format!("{}{}", self.made_prefix(), creation.replace('-', ""))
    }

    /// How the names of creation marks begin.
    pub(super) fn made_prefix(&self) -> String {
        format!("@tasuki_made_{}_", self.tag)
    }

    /// Pane option: the creation that made the pane.
    pub(super) fn born(&self) -> String {
        format!("@tasuki_born_{}", self.tag)
    }

    /// Condition: the creation made the pane, or nothing says which creation did.
    pub(super) fn may_be_born_of(&self, creation: &str) -> String {
        format!("#{{?#{{{0}}},#{{==:#{{{0}}},{creation}}},1}}", self.born())
    }

    /// Server option: holds the directory of a new window, because tmux expands formats in an argument and not in an
    /// option's value.
    pub(super) fn directory(&self) -> String {
        format!("@tasuki_dir_{}", self.tag)
    }

    /// How the names of our paste buffers begin.
    pub(super) fn buffers(&self) -> String {
        format!("tasuki-{}-", self.tag)
    }

    /// The name of a placeholder window.
    pub(super) fn placeholder(&self, tag: &str) -> String {
        format!("tasuki-place-{}-{tag}", self.tag)
    }

    /// Pane option: the tag of the placeholder that the pane belongs to.
    pub(super) fn place(&self) -> String {
        format!("@tasuki_place_{}", self.tag)
    }

    /// Condition: the pane belongs to the placeholder of this tag, or its window has the placeholder's name.
    pub(super) fn is_in_placeholder(&self, tag: &str) -> String {
        let window = self.placeholder(tag);
        format!("#{{||:#{{==:#{{{}}},{tag}}},#{{==:#{{window_name}},{window}}}}}", self.place())
    }

    /// Pane option: a handoff of any home is about to end the program there.
    pub(super) const LEAVING: &'static str = "@tasuki_leaving";

    /// Condition: the connection with this fence may act.
    pub(super) fn fenced(&self, fence: &str) -> String {
        format!("#{{==:#{{{}}},{fence}}}", self.fence())
    }

    /// Condition: the connection with this fence may act, and the pane still has the same process.
    pub(super) fn same_pane(&self, fence: &str, pane: &PaneRef) -> String {
        format!("#{{&&:{},#{{==:#{{pane_pid}},{}}}}}", self.fenced(fence), pane.pid)
    }

    /// The whole guard of a line that types. `before`: the mark that the pane must have; `front`: the program that must
    /// be in the foreground, if it matters.
    pub(super) fn may_type(&self, fence: &str, pane: &PaneRef, before: &str, front: Option<&str>) -> String {
        let mark = format!("#{{==:#{{{}}},{before}}}", self.mark());
        let alive = "#{==:#{pane_dead}#{pane_input_off},00}";
        let same = self.same_pane(fence, pane);
        let guard = format!("#{{&&:{same},#{{&&:{},#{{&&:{mark},{alive}}}}}}}", self.ours_or_unclaimed());
        match front {
            None => guard,
            Some(name) => {
                format!("#{{&&:{guard},#{{==:#{{pane_current_command}},{}}}}}", in_comparison(name))
            }
        }
    }

    /// The same guard, for a paste that must keep its brackets: in copy mode, tmux would paste without them.
    pub(super) fn out_of_modes(&self, guard: &str) -> String {
        format!("#{{&&:{guard},#{{==:#{{pane_in_mode}},0}}}}")
    }
}

impl Names {
    /// The line that puts a text into a pane, all under `guard`: it sets the pane's mark to the first of the `stages`,
    /// pastes, and sets the mark to the second. It leaves no buffer behind. The text is outside the braces, because
    /// tmux 3.2 prints what is inside them and parses it a second time.
    pub(super) fn typing_line(
        &self,
        pane: &PaneRef,
        id: &DeliveryId,
        guard: &str,
        stages: (DeliveryStage, DeliveryStage),
        text: &str,
        paste: &str,
    ) -> Result<String, HasNul> {
        let (guard, text, mark) = (quote(guard)?, quote(text)?, self.mark());
        let buffer = format!("{}{id}", self.buffers());
        let (during, after) = (stages.0.mark(id), stages.1.mark(id));
        Ok(format!(
            "set-buffer -b {buffer} -- {text} ; if-shell -F -t {pane} {guard} {{ set-option -p -t {pane} {mark} {during} ; \
             {paste} -b {buffer} -t {pane} ; set-option -p -t {pane} {mark} {after} }} ; delete-buffer -b {buffer}"
        ))
    }
}

/// How far a delivery is, as its pane's mark shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeliveryStage {
    /// Piece `n` (from 1) was begun and not ended: a user's tmux hook runs between two commands of the line, or the
    /// server has dropped the rest of the line, as it does when our connection ends.
    Begun(usize),
    /// `n` pieces are in, and more are to come.
    Pieces(usize),
    Pasted,
    /// Enter number `n` (from 1) was begun and not ended.
    EnterBegun(u32),
    /// Enter was pressed `n` times.
    Entered(u32),
}

impl DeliveryStage {
    pub(super) fn mark(self, id: &DeliveryId) -> String {
        match self {
            DeliveryStage::Begun(n) => format!("{id}.{n}b"),
            DeliveryStage::Pieces(n) => format!("{id}.{n}"),
            DeliveryStage::Pasted => format!("{id}.P"),
            DeliveryStage::EnterBegun(1) => format!("{id}.e"),
            DeliveryStage::EnterBegun(n) => format!("{id}.e{n}"),
            DeliveryStage::Entered(1) => format!("{id}.E"),
            DeliveryStage::Entered(n) => format!("{id}.E{n}"),
        }
    }

    /// Reads a mark; `None` if it does not belong to this delivery.
    pub(super) fn read(mark: &str, id: &DeliveryId) -> Option<DeliveryStage> {
        let stage = mark.strip_prefix(id.as_str())?.strip_prefix('.')?;
        let count = |digits: &str| if digits.is_empty() { Some(1) } else { digits.parse().ok() };
        if stage == "P" {
            Some(DeliveryStage::Pasted)
        } else if let Some(digits) = stage.strip_prefix('e') {
            count(digits).map(DeliveryStage::EnterBegun)
        } else if let Some(digits) = stage.strip_prefix('E') {
            count(digits).map(DeliveryStage::Entered)
        } else if let Some(digits) = stage.strip_suffix('b') {
            digits.parse().ok().map(DeliveryStage::Begun)
        } else {
            stage.parse().ok().map(DeliveryStage::Pieces)
        }
    }
}

/// Whether a mark may be part of a format. A mark with any other characters was not written by us.
pub(super) fn is_mark(mark: &str) -> bool {
    mark.len() <= 64 && mark.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'.')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::pane::ServerId;

    #[test]
    fn marks_are_read_as_they_were_written() {
        let id = DeliveryId::from_bits(0xabc);
        let other = DeliveryId::from_bits(0xabd);
        let stages = [
            DeliveryStage::Begun(1),
            DeliveryStage::Begun(12),
            DeliveryStage::Pieces(1),
            DeliveryStage::Pieces(3),
            DeliveryStage::Pasted,
            DeliveryStage::EnterBegun(1),
            DeliveryStage::EnterBegun(2),
            DeliveryStage::Entered(1),
            DeliveryStage::Entered(4),
        ];
        for stage in stages {
            let mark = stage.mark(&id);
            assert!(is_mark(&mark));
            assert_eq!(DeliveryStage::read(&mark, &id), Some(stage), "{mark}");
            assert_eq!(DeliveryStage::read(&mark, &other), None);
        }
        for foreign in ["", "000000000abc", "000000000abc.x", "000000000abcP", "000000000abc.", "000000000abc.-1"] {
            assert_eq!(DeliveryStage::read(foreign, &id), None, "{foreign}");
        }
        assert!(!is_mark("#{pid}"));
    }

    #[test]
    fn the_guard_names_fence_process_mark_life_and_front() {
        let pane = PaneRef { server: ServerId { pid: 1, start_time: 2 }, pane: 3, pid: 44 };
        let guard = Names::new("00c0ffee").may_type("f1", &pane, "m0", Some("a,b"));
        for part in [
            "#{==:#{@tasuki_fence_00c0ffee},f1}",
            "#{==:#{@tasuki_mark_00c0ffee},m0}",
            "#{==:#{pane_pid},44}",
            "#{||:#{==:#{@tasuki_claim},},#{==:#{=8:@tasuki_claim},00c0ffee}}",
            "#{==:#{pane_dead}#{pane_input_off},00}",
            "#{==:#{pane_current_command},a#,b}",
        ] {
            assert!(guard.contains(part), "{part}");
        }
    }

    /// A tmux server for one test. The program in its only pane writes all input to a file.
    struct TestServer {
        dir: tempfile::TempDir,
        pane: PaneRef,
    }

    impl TestServer {
        fn start() -> TestServer {
            let server = ServerId { pid: 1, start_time: 2 };
            let mut bare =
                TestServer { dir: tempfile::tempdir().expect("a folder"), pane: PaneRef { server, pane: 0, pid: 0 } };
            bare.tmux(&["new-session", "-d", "-x", "80", "-y", "24", "exec sh"]);
            let out = bare.dir.path().join("out");
            bare.tmux(&["respawn-pane", "-k", &format!("stty raw -echo; touch '{0}'; exec cat >'{0}'", out.display())]);
            let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
            while bare.tmux(&["display-message", "-p", "#{pane_current_command}"]) != "cat" {
                assert!(std::time::Instant::now() < until, "the pane's program never came");
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            let row = bare.tmux(&["display-message", "-p", "#{pane_id} #{pane_pid}"]);
            let (pane, pid) = row.trim_start_matches('%').split_once(' ').expect("two words");
            bare.pane = PaneRef { server, pane: pane.parse().expect("a number"), pid: pid.parse().expect("a number") };
            bare
        }

        fn tmux(&self, words: &[&str]) -> String {
            let mut command = std::process::Command::new("tmux");
            command.arg("-u").arg("-S").arg(self.dir.path().join("s")).args(["-f", "/dev/null"]).args(words);
            let out = command.env_remove("TMUX").output().expect("tmux runs");
            assert!(out.status.success(), "{words:?}: {}", String::from_utf8_lossy(&out.stderr));
            String::from_utf8_lossy(&out.stdout).trim_end().to_owned()
        }

        /// Carries out a line that types, and returns whether the guard let it through: the pane's mark has moved then.
        fn is_let_through(&self, line: &str) -> bool {
            let file = self.dir.path().join("line");
            std::fs::write(&file, format!("{line}\n")).expect("written");
            self.tmux(&["source-file", file.to_str().expect("plain")]);
            self.tmux(&["display-message", "-p", "#{@tasuki_mark_00c0ffee}"]) == "000000000001.P"
        }
    }

    impl Drop for TestServer {
        fn drop(&mut self) {
            self.tmux(&["kill-server"]);
        }
    }

    /// The server refuses a line if one part of its guard is false when the line arrives, whatever tasuki saw before.
    #[test]
    fn the_server_checks_every_part_of_the_guard_when_the_line_arrives() {
        let (server, names) = (TestServer::start(), Names::new("00c0ffee"));
        server.tmux(&["set-option", "-s", &names.fence(), "f2"]);
        let pane = server.pane;
        let line = |fence: &str, pane: PaneRef, before: &str, front: &str| {
            let (guard, id) = (names.may_type(fence, &pane, before, Some(front)), DeliveryId::from_bits(1));
            names.typing_line(
                &pane,
                &id,
                &guard,
                (DeliveryStage::Begun(1), DeliveryStage::Pasted),
                "text",
                "paste-buffer -r",
            )
        };
        let right = || line("f2", pane, "", "cat").expect("no NUL");
        let wrong = [
            ("a former connection", line("f1", pane, "", "cat")),
            ("another process", line("f2", PaneRef { pid: pane.pid + 1, ..pane }, "", "cat")),
            ("another mark", line("f2", pane, "000000000001.1", "cat")),
            ("another program in front", line("f2", pane, "", "sh")),
        ];
        for (what, line) in wrong {
            assert!(!server.is_let_through(&line.expect("no NUL")), "{what}");
        }
        let target = pane.to_string();
        for (what, set, unset) in [
            (
                "another home's claim",
                ["set-option", "-p", "-t", &target, Names::CLAIM, "11111111.1.1"].as_slice(),
                ["set-option", "-p", "-u", "-t", &target, Names::CLAIM].as_slice(),
            ),
            ("input off", &["select-pane", "-d", "-t", &target], &["select-pane", "-e", "-t", &target]),
        ] {
            server.tmux(set);
            assert!(!server.is_let_through(&right()), "{what}");
            server.tmux(unset);
        }
        let out = server.dir.path().join("out");
        assert_eq!(std::fs::read(&out).expect("it runs"), b"", "something came in");
        assert!(server.is_let_through(&right()), "all is as it should be");
        assert_eq!(server.tmux(&["list-buffers"]), "", "a buffer was left behind");
    }
}
