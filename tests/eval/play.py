"""Plays handoffs on a stage: lays out what the agents write, triggers, and looks at what arrived."""
import hashlib
import json
import os

import grade
from stage import Trouble


def git(stage):
    def run(cwd, *args, env=None):
        return stage.run("git", *args, cwd=str(cwd), env=env)
    return run


class Play:
    """One persona that works on a case, and its agents one after the other."""

    def __init__(self, stage, case, slug, profile="eval", skill=None, below=None):
        self.stage, self.case, self.slug = stage, case, slug
        self.tally, self.handoffs, self.screens, self.leaked = grade.Tally(), [], [], []
        # The questions that are graded; all, if there are none.
        self.only = None
        self.work = (below.resolve() if below else stage.dir / "work") / slug
        if below:
            # The name stays the same, so that a user can say once to an agent CLI that the folder is to be trusted.
            if self.work.exists():
                raise Trouble("%s is there already: remove it, or name another folder with --work" % self.work)
            stage.also_removes += [self.work, self.work.parent / (slug + "-origin.git")]
        case.make(self.work, git(stage))
        self.skill = skill or "# Skill of %s\n\nRead before you write. Répondez juste.\n" % slug
        stage.persona(slug, self.work, profile, self.skill)
        self.own = stage.own(slug)
        (self.own / "lookups.json").write_text(json.dumps(case.lookups()), encoding="utf-8")
        (self.own / "conversation.json").write_text(json.dumps(case.conversation()), encoding="utf-8")

    def lay_out(self, text, name="next.md"):
        (self.own / name).write_text(text, encoding="utf-8")

    def after_record(self, handoff):
        """What somebody else commits between the record and the briefing, so that the document is stale."""
        files = self.case.data.get("after_record")
        if not files:
            return
        self.stage.in_step(handoff, "ending", "starting", "priming")
        for name, text in files.items():
            (self.work / name).write_text(text, encoding="utf-8")
        run = git(self.stage)
        run(self.work, "add", *files)
        self.case.commit(self.work, run, 3, "Somebody else's commit")

    def ends_well(self, handoff):
        view = self.stage.ended(handoff)
        if view["step"] != "done":
            error = view.get("error") or {}
            raise Trouble("%s: handoff %s in %s: %s" % (self.slug, view["step"], error.get("step"), error.get("message")))
        self.handoffs.append(view)
        self.screens.append(self.stage.pane_text(view["successor_id"]))
        return view

    def log_of(self, agent, same_pane_as=None):
        log = self.stage.agent_log(agent)
        if same_pane_as:
            lines = self.stage.agent_log(same_pane_as)
            first = lines[0]["session"] if lines else None
            log = [line for line in lines if line["session"] != first] + log
        return log

    def arrived(self, view, where, same_pane_as=None, primed=True):
        """Whether the texts and the document came once and whole. Gives the successor's log."""
        log = self.log_of(view["successor_id"], same_pane_as)
        got = grade.texts(log)
        count = lambda about, is_right, why="": self.tally.count("texts", is_right, "%s: %s %s" % (where, about, why))
        if primed:
            count("the skill", flat(self.skill) in flat(got), "is not whole")
        ids = grade.delivery_ids(log)
        count("the briefing", len(ids) == len(set(ids)) and bool(ids), "came twice or not at all")
        for name, verdict in view["verdicts"].items():
            if verdict:
                count("the " + name, verdict["verdict"] == "delivered", "is %s" % verdict["verdict"])
        if not same_pane_as:
            document = [line for line in log if line["kind"] == "read" and line["path"] == view["file_path"]]
            whole = bool(document) and document[-1]["sha256"] == view["sha256"]
            count("the document", whole, "was not read as it was recorded")
        return log

    def asks(self, agent):
        verdict = self.stage.granted(kind="agent_send", agent_id=agent, text=self.case.prompt())
        if verdict["verdict"] != "delivered":
            raise Trouble("%s: the questions are %s" % (self.slug, verdict["verdict"]))

    def answer(self, agent, same_pane_as=None):
        self.stage.idle(agent)
        self.asks(agent)
        found = self.stage.until("an answer", lambda: [
            line["text"] for line in self.log_of(agent, same_pane_as) if line["kind"] == "answer"])
        return grade.answers(found[-1])

    def graded(self, view, written, where, same_pane_as=None, primed=True):
        log = self.arrived(view, where, same_pane_as, primed)
        said = self.answer(view["successor_id"], same_pane_as)
        grade.case(self.tally, where, self.case.questions, written, log, said, self.only)
        return said

    def free(self, agent):
        """Ends an agent that is no longer needed, and lets its persona go."""
        self.stage.ask(kind="agent_shutdown", agent_id=agent, force=True)


def flat(text):
    return " ".join(text.split())


def sha256(text):
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


def leaks(stage, secrets, screens, is_told=False):
    """Where a credential is that may be nowhere but in documents: files of the home, the log, and panes. Never the credential.

    `is_told`: it was typed into an agent on request, so it is in the requests that tasuki has taken and not yet removed.
    """
    found = []
    wanted = [(name, secret.encode()) for name, secret in secrets.items()]
    for folder, _, names in os.walk(stage.home):
        if folder == str(stage.home / "state") or (is_told and folder.startswith(str(stage.home / "state"))):
            continue
        for name in names:
            path = os.path.join(folder, name)
            if "/handoffs" in folder and name.endswith(".md") and not name.endswith(".facts.md"):
                continue
            found += ["%s: %s" % (case, path[len(str(stage.home)) + 1:]) for case in held(path, wanted)]
    found += ["%s: the sidecar's log" % case for case in held(stage.log, wanted)]
    found += ["%s: the successor's pane" % case for case, secret in wanted for text in screens if secret in text.encode()]
    return sorted(set(found))


def held(path, wanted):
    """Which of the secrets a file holds."""
    try:
        with open(path, "rb") as file:
            text = file.read()
    except OSError:
        return []
    return [case for case, secret in wanted if secret in text]
