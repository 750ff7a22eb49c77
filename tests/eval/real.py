"""`run --profile …`: real agents with their user's own login. Each arm is another way to know what an earlier agent knew."""
import json
import os
import pathlib
import re
import time

import cases
import grade
import play as plays
import statistic
import usage
from stage import Stage, Trouble

PRICES = cases.FOLDER / "prices.json"
# An agent that has not changed anything by then does not.
FIRST_EDIT_WITHIN = 300
ANSWER_WITHIN = 600
CONFIG = "[document]\ncheck = \"%s\"\n\n[facts]\ngit = %s\ntranscript = %s\n\n[limits]\nwriting = \"10m\"\nreading = \"5m\"\n"
WITHOUT_HANDOFF = ("You continue the work of an agent that has left nothing but the repository in your working directory. "
                   "Look at it with your own tools first.\n\n")


class Real:
    def __init__(self, program, asked, arms, out):
        self.program, self.asked, self.arms, self.out = program, asked, arms, out
        self.author, self.successor = asked.profile, asked.successor_profile or asked.profile
        self.env = dict(pair.split("=", 1) for pair in asked.env)
        self.prices = json.loads(PRICES.read_text(encoding="utf-8"))
        self.cost, self.most, self.plays, self.failed, self.notes = 0.0, 0.0, [], [], []

    def run(self):
        start = time.monotonic()
        every = cases.every(self.asked.cases or cases.FOLDER, self.asked.case)
        if "old" in self.arms and not self.asked.old_prompts:
            raise Trouble("the arm `old` needs --old-prompts, a folder with the prompts of then")
        total = len(self.arms) * len(every) * self.asked.runs
        for number in range(self.asked.runs):
            for case in every:
                for arm in self.arms:
                    if self.cost + self.most > self.asked.max_cost:
                        self.notes.append("stopped after %d of %d: the next one might cost more than what is left of %.2f USD" % (
                            len(self.plays), total, self.asked.max_cost))
                        return self.result(start, every)
                    self.out.progress("%d of %d, %.2f USD: %s, %s" % (len(self.plays) + 1, total, self.cost, case.name, arm))
                    self.one(cases.Case(case.folder), arm, number)
        return self.result(start, every)

    def one(self, case, arm, number):
        stage = None
        has_facts = "true" if "facts" in arm else "false"
        # Salvage needs the transcript, whatever the facts.
        config = CONFIG % ("fix" if arm.endswith("fix") else "off", has_facts, has_facts)
        try:
            stage = Stage(self.program, patience=900, config=config, env=self.environment(), keep=self.asked.keep,
                          prepare=lambda stage: self.prompts(stage, arm))
            played = Played(stage, case, arm, self.author, self.successor, self.prices, self.asked.work)
            try:
                played.play()
            finally:
                self.cost += played.cost()
                self.most = max(self.most, played.cost())
            self.plays.append(dict(played.result(), run=number))
        except (Trouble, OSError, ValueError) as why:
            self.failed.append("%s, %s: %s" % (case.name, arm, why))
        finally:
            if stage:
                stage.close()

    def environment(self):
        """The user's own home, for the login is there; nothing else of what leads to another sidecar."""
        return dict({"HOME": os.path.expanduser("~")}, **self.env)

    def prompts(self, stage, arm):
        if arm == "old":
            folder = stage.home / "data/prompts"
            folder.mkdir(parents=True, mode=0o700)
            for file in self.asked.old_prompts.glob("*.md"):
                (folder / file.name).write_bytes(file.read_bytes())

    def result(self, start, every):
        arms = []
        by_arm = {arm: [play for play in self.plays if play["arm"] == arm] for arm in self.arms}
        base = statistic.share(rights(by_arm.get("repo", [])))
        best = statistic.share(rights(by_arm.get("oracle", [])))
        compared = "new+facts" if by_arm.get("new+facts") else self.arms[-1]
        for arm, played in by_arm.items():
            traps = [trap for play in played for trap in play["traps"].values()]
            firsts = [play["first_edit"] for play in played if play["first_edit"] is not None]
            arms.append({
                "name": arm, "plays": len(played), "right": statistic.share(rights(played)),
                "recovered": statistic.recovered(statistic.share(rights(played)), base, best),
                "interval": statistic.bootstrap(played, lambda some: statistic.recovered(statistic.share(rights(some)), base, best)),
                "over_trust": statistic.share(trap == "trusted" for trap in traps), "leaks": sum(len(play["leaks"]) for play in played),
                "tokens": sum(sum(play["tokens"].values()) for play in played), "cost": sum(play["cost"] for play in played),
                "first_edit": sum(firsts) / len(firsts) if firsts else None,
                "p": None if arm == compared else statistic.mcnemar(pairs(by_arm[compared], played))})
        self.notes.append("p: McNemar against the arm %s, question by question" % compared)
        return {"v": 1, "mode": "real", "profile": self.author, "successor_profile": self.successor, "cases": [case.name for case in every],
                "seconds": round(time.monotonic() - start, 1), "cost": round(self.cost, 4), "arms": arms, "plays": self.plays,
                "failed": self.failed, "notes": self.notes,
                "met": not self.failed and bool(self.plays) and not any(play["leaks"] for play in self.plays)}


def rights(played):
    return [right for play in played for right in play["facts"].values()]


def pairs(one, other):
    """What two arms got right, question by question of the same case and run."""
    found = {(play["case"], play["run"], name): right for play in one for name, right in play["facts"].items()}
    return [(found[key], right) for play in other for name, right in play["facts"].items()
            if (key := (play["case"], play["run"], name)) in found]


class Played:
    """One case in one arm."""

    def __init__(self, stage, case, arm, author, successor, prices, work=None):
        self.trusted = work
        self.stage, self.case, self.arm, self.prices = stage, case, arm, prices
        self.profiles = {"author": author, "successor": successor}
        self.agents, self.said, self.first, self.leaks, self.written = {}, {}, None, [], None

    def play(self):
        play = plays.Play(self.stage, self.case, "eval-" + self.case.name, self.profiles["author"], below=self.trusted)
        self.work = play.work
        if self.arm == "repo":
            successor = self.agents["successor"] = self.stage.create(play.slug, profile=self.profiles["successor"])
        else:
            successor = self.handed_off(play)
        self.stage.idle(successor)
        begin = WITHOUT_HANDOFF if self.arm == "repo" else ""
        self.say(successor, begin + self.case.prompt(), ANSWER_WITHIN)
        self.said = self.answers(successor)
        self.leaks = plays.leaks(self.stage, {self.case.name: self.case.secret}, [self.stage.pane_text(successor)], is_told=True)
        self.first = self.first_edit(successor)

    def handed_off(self, play):
        """Gives the successor, after a handoff by the way of this arm."""
        if self.arm == "oracle":
            # Nothing of it comes from an agent: it is what could be known.
            agent = self.agents["author"] = self.stage.create(play.slug)
            more = {"author": "provided", "document": {"text": oracle(self.case)}}
        else:
            agent = self.agents["author"] = self.stage.create(play.slug)
            play.lay_out(self.case.text(self.case.documents[-1]))
            self.say(agent, told(self.case), ANSWER_WITHIN)
            transcript = self.stage.view("agents", agent).get("transcript_path")
            more = {"author": "salvage"} if self.arm == "salvage" else {}
            if self.arm == "trace":
                more = {"author": "provided", "document": {"text": trace(transcript)}}
        if self.profiles["successor"] != self.profiles["author"]:
            more["successor"] = {"agent_id": self.stage.create(play.slug, profile=self.profiles["successor"])}
        handoff = self.stage.hand_off(agent, **more)
        play.after_record(handoff)
        view = play.ends_well(handoff)
        self.agents["successor"] = view["successor_id"]
        self.written = pathlib.Path(view["file_path"]).read_text(encoding="utf-8", errors="replace")
        return view["successor_id"]

    def say(self, agent, text, within):
        verdict = self.stage.granted(kind="agent_send", agent_id=agent, text=text)
        if verdict["verdict"] != "delivered":
            raise Trouble("a text is %s: %s" % (verdict["verdict"], verdict["reason"]))
        self.stage.until("the agent has answered", lambda: self.stage.view("agents", agent).get("state") == "idle", within)

    def answers(self, agent):
        path = self.stage.view("agents", agent).get("transcript_path")
        names = set(self.case.questions)
        for text in reversed(list(usage.texts(path))):
            found = grade.answers(text)
            if len(names & set(found)) * 2 > len(names):
                return found
        return {}

    def first_edit(self, agent):
        """Seconds from the request to continue until a file of the repository has changed; None if none did in time."""
        def state():
            return {name: name.stat().st_mtime_ns for name in self.work.rglob("*") if name.is_file() and ".git" not in name.parts}
        before, start = state(), time.monotonic()
        self.stage.granted(kind="agent_send", agent_id=agent, text="Now continue the work: do what comes first, and then stop.")
        while time.monotonic() - start < FIRST_EDIT_WITHIN and not self.stage.stopping.is_set():
            if state() != before:
                return round(time.monotonic() - start, 1)
            if self.stage.view("agents", agent).get("state") == "idle":
                return None
            time.sleep(0.2)
        return None

    def tokens(self):
        counted = {}
        for role, agent in self.agents.items():
            path = self.stage.view("agents", agent).get("transcript_path")
            for name, count in usage.tokens(path).items():
                counted[name] = counted.get(name, 0) + count
        return counted

    def cost(self):
        total = 0.0
        for role, agent in self.agents.items():
            path = self.stage.view("agents", agent).get("transcript_path")
            total += statistic.cost(usage.tokens(path), price(self.prices, self.profiles[role], usage.model(path)))
        return total

    def result(self):
        facts, traps, extracted = {}, {}, {}
        for name, question in self.case.questions.items():
            answer = self.said.get(name, {})
            if question.kind in cases.TRAPS:
                status = str(answer.get("status", "")).lower() if isinstance(answer, dict) else "stated"
                traps[name] = "right" if question.is_right(answer) else "trusted" if status == "stated" else "wrong"
                continue
            facts[name] = question.is_right(answer)
            if self.written is not None and question.by == "author":
                extracted[name] = question.holds(self.written)
        return {"case": self.case.name, "arm": self.arm, "facts": facts, "traps": traps, "extracted": extracted, "leaks": self.leaks,
                "tokens": self.tokens(), "cost": round(self.cost(), 4), "first_edit": self.first}


def price(prices, profile, model):
    """The prices of a model; of one that is not in the table, the highest of its CLI, so that a limit holds."""
    table = prices[profile]
    for expression, found in table.items():
        if model and re.search(expression, model):
            return found
    return max(table.values(), key=lambda one: one.get("output", 0))


def told(case):
    """What the author is told of its session so far: a real conversation would cost a hundred times as much."""
    lines = ["This is the session so far, as you have worked in it. Do nothing now but remember it; answer with: remembered.", ""]
    for entry in case.conversation():
        for name, how in (("user", "The user said: %s"), ("assistant", "You said: %s"), ("wrote", "You wrote the file %s.")):
            if name in entry:
                lines.append(how % entry[name])
        if "ran" in entry:
            lines.append("You ran `%s`; exit %d; it printed: %s" % (entry["ran"], entry.get("exit", 0), entry.get("printed", "")))
    if "stale" in case.questions and "{first}" in case.marks:
        lines.append("You ran the last check at commit %s, and have committed more since." % case.marks["{first}"])
    lines += ["You know this, too, and have not yet told anybody:"]
    lines += ["- %s %s" % (question.asks, "; ".join(map(plain, question.tokens))) for question in case.questions.values()
              if question.kind not in ("never", "stale") and question.tokens]
    return "\n".join(lines)


def oracle(case):
    """All that could be known: the case's own document, and each answer."""
    lines = [case.text(case.documents[-1]), "", "## What else is known", ""]
    for question in case.questions.values():
        if question.kind == "stale":
            lines.append("- %s No: it is stale." % question.asks)
        elif question.kind != "never":
            mark = "UNVERIFIED: " if question.kind == "unverified" else ""
            lines.append("- %s %s%s" % (question.asks, mark, "; ".join(map(plain, question.tokens))))
    return "\n".join(lines) + "\n"


def trace(path):
    return ("# Handoff\n\nThere is no document, but the whole transcript of the agent before you, one JSON object a line. Search it "
            "for what you need:\n\n`%s`\n" % path)


def plain(token):
    return re.sub(r"\\.|[()?:|]", " ", token[3:]) if token.startswith("re:") else token
