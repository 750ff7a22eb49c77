"""`run --offline`: all of it with the scripted agent, in less than a minute."""
import concurrent.futures
import threading
import time

import canary
import cases
import defects
import grade
import play as plays
import scenes
from stage import Stage, Trouble

AT_ONCE = 8
LANES = 3
BASE = "rust-retry"


class Offline:
    def __init__(self, program, wanted, good_folders, out, keep=False, folder=None):
        self.folder = folder or cases.FOLDER
        self.program, self.wanted, self.good_folders, self.out, self.keep = program, wanted, good_folders, out, keep
        self.tally, self.lock = grade.Tally(), threading.Lock()
        self.by_case, self.by_scene, self.by_defect, self.alarms, self.warned = {}, {}, [], [], []
        self.documents, self.screens, self.secrets, self.leaks, self.killed, self.twice = 0, [], {}, [], {}, 0
        self.failed = []
        self.key = canary.letters("own", 24, "abcdefghjkmnpqrstuvwxyz23456789")

    # ---- jobs --------------------------------------------------------------------------------------------------------

    def jobs(self, stage):
        """What can be played beside each other, the long things first."""
        wanted = cases.every(self.folder, self.wanted)
        self.secrets.update({case.name: case.secret for case in wanted})
        jobs = [("case " + case.name, lambda case=case: self.case(stage, case)) for case in sorted(wanted, key=lambda c: -len(c.documents))]
        if self.wanted:
            return jobs
        lanes = [("documents %d" % (lane + 1), lambda lane=lane: self.lane(stage, lane)) for lane in range(LANES)]
        base = lambda: cases.every(name=BASE)[0]
        played = [("scene " + name, lambda name=name, scene=scene: self.scene(stage, base(), name, scene))
                  for name, scene in scenes.by_name().items()]
        return [("kill -9", lambda: self.kill(base()))] + jobs[:3] + lanes + played + jobs[3:]

    def case(self, stage, case):
        start = time.monotonic()
        play = plays.Play(stage, case, case.name)
        agent = stage.create(case.name)
        written = ""
        for number, name in enumerate(case.documents):
            written = case.text(name)
            play.lay_out(written)
            more = {"check": "warn"}
            if (case.folder / "first.md").exists():
                play.lay_out(written, "rework.md")
                play.lay_out(case.text("first.md"))
                more = {"check": "fix"}
            handoff = stage.hand_off(agent, **more)
            if name == case.documents[-1]:
                play.after_record(handoff)
            view = play.ends_well(handoff)
            self.checked("%s/%s" % (case.name, name), view["faults"])
            if more["check"] == "fix":
                play.tally.count("repaired", view["reworks"] == 1 and not [f for f in view["faults"] if f["grade"] == "fix"],
                                 "%s: %s" % (case.name, "; ".join(map(defects.said, view["faults"])) or "the author was not asked"))
            agent = view["successor_id"]
            if name != case.documents[-1]:
                play.arrived(view, "%s/%d" % (case.name, number + 1))
        play.tally.count("texts", view["generation"] == len(case.documents), "%s: generation %s" % (case.name, view["generation"]))
        play.graded(view, written, case.name)
        play.free(agent)
        self.end(self.by_case, case.name, play, start)

    def scene(self, stage, case, name, scene):
        start = time.monotonic()
        play = scenes.play_one(stage, case, name, scene)
        self.end(self.by_scene, name, play, start)

    def kill(self, case):
        start = time.monotonic()
        stage = Stage(self.program, keep=self.keep, stopping=self.stopping)
        self.stages.append(stage)
        play, self.killed = scenes.crashes(stage, case)
        self.look_for_leaks(stage, {case.name: case.secret}, play.screens)
        self.count_twice(stage)
        self.end(self.by_scene, "kill -9 in %d steps" % len(self.killed), play, start)

    def lane(self, stage, lane):
        """An agent that writes one document after the other, each of which is checked and then let be."""
        base = cases.every(name=BASE)[0]
        slug = "lane-%d" % lane
        play = plays.Play(stage, base, slug)
        text = base.text("document.md")
        agent = stage.create(slug)
        work = [(defect, None, None) for number, defect in enumerate(defects.DEFECTS) if number % LANES == lane]
        if any(defect[0].startswith("a copy") for defect, _, _ in work):
            play.lay_out(text)
            agent = play.ends_well(stage.hand_off(agent, check="warn"))["successor_id"]
            stage.idle(agent)
        about = {"predecessor": text, "changed": list((base.folder / "changes").rglob("*")), "key": self.key}
        about["changed"] = [file.relative_to(base.folder / "changes").as_posix() for file in about["changed"] if file.is_file()]
        other = text.replace("Ines", "Ines and Karl")
        for (name, spoil, checks, more), _, _ in work:
            if "dirty_files" in checks:
                for number in range(3):
                    (play.work / ("src/extra_%d.rs" % number)).write_text("// more\n", encoding="utf-8")
            found = defects.faults(stage, play.own, agent, spoil(other, about), **more)
            got = {fault["check"] for fault in found}
            is_caught = set(checks) <= got
            with self.lock:
                self.by_defect.append({"name": name, "checks": list(checks), "found": sorted(got), "caught": is_caught})
                self.tally.count("defects", is_caught, "%s: found %s" % (name, "; ".join(map(defects.said, found)) or "nothing"))
            if "dirty_files" in checks:
                for number in range(3):
                    (play.work / ("src/extra_%d.rs" % number)).unlink()
        play.free(agent)
        for number, folder in enumerate([defects.GOOD] + self.good_folders):
            self.good(stage, lane, number, folder)
        self.end({}, slug, play, time.monotonic())

    def good(self, stage, lane, number, folder):
        files, about = defects.good(folder)
        mine = files[lane::LANES]
        if not mine:
            return
        slug = "good-%d-%d" % (number, lane)
        work, marks = stage.dir / "work" / slug, {}
        work.mkdir(parents=True)
        if about:
            marks = lay_repository(stage, work, about)
        stage.persona(slug, work)
        agent = stage.create(slug)
        for file in mine:
            text = file.read_bytes().decode("utf-8")
            for mark, value in marks.items():
                text = text.replace(mark, value)
            self.checked(file.name, defects.faults(stage, stage.own(slug), agent, text))
        stage.ask(kind="agent_shutdown", agent_id=agent, force=True)

    # ---- counting ----------------------------------------------------------------------------------------------------

    def checked(self, name, faults):
        """A good document was checked. A warning is told, and is not an alarm: nobody is asked to do anything."""
        wrong = [defects.said(fault) for fault in faults if fault["grade"] == "fix"]
        with self.lock:
            self.documents += 1
            self.warned += ["%s: %s" % (name, defects.said(fault)) for fault in faults if fault["grade"] != "fix"]
            if wrong:
                self.alarms.append({"document": name, "faults": wrong})

    def end(self, table, name, play, start):
        with self.lock:
            self.tally.add(play.tally)
            self.screens += play.screens
            self.leaks += play.leaked
            table[name] = {"counts": play.tally.data(), "wrong": play.tally.wrong, "seconds": round(time.monotonic() - start, 1)}

    def look_for_leaks(self, stage, secrets, screens):
        found = plays.leaks(stage, secrets, screens)
        with self.lock:
            self.leaks += found

    def count_twice(self, stage):
        """Delivery ids that any two prompts have."""
        ids = []
        for path in (stage.eval / "log").glob("*.jsonl"):
            ids += grade.delivery_ids(stage.agent_log(path.stem))
        with self.lock:
            self.twice += len(ids) - len(set(ids))

    # ---- the run -----------------------------------------------------------------------------------------------------

    def run(self):
        start = time.monotonic()
        self.stages, self.stopping = [], threading.Event()
        stage = Stage(self.program, env={"BILLING_SERVICE_TOKEN": self.key}, keep=self.keep, stopping=self.stopping)
        self.stages.append(stage)
        pool = concurrent.futures.ThreadPoolExecutor(AT_ONCE)
        try:
            running = {pool.submit(job): name for name, job in self.jobs(stage)}
            for number, done in enumerate(concurrent.futures.as_completed(running), 1):
                error = done.exception()
                if error:
                    self.failed.append("%s: %s" % (running[done], error if isinstance(error, Trouble) else repr(error)))
                self.out.progress("%d of %d, %d s: %s" % (number, len(running), time.monotonic() - start, running[done]))
            self.out.progress("looking for credentials and for texts that came twice")
            self.secrets.update({"the user's own key": self.key, "a planted token": canary.make("github", "d1")[1],
                                 "a planted password": canary.make("url", "d2")[1]})
            self.look_for_leaks(stage, self.secrets, self.screens)
            self.count_twice(stage)
        finally:
            self.stopping.set()
            pool.shutdown(wait=True, cancel_futures=True)
            for one in self.stages:
                one.close()
        self.seconds = round(time.monotonic() - start, 1)
        return self.result()

    def result(self):
        alarms = len(self.alarms) / self.documents if self.documents else None
        met = {"transport": self.share("texts", "transport") == 1.0, "abstention": self.tally.share("abstention") == 1.0,
               "answers": self.share("use", "stale", "unverified") in (1.0, None), "leaks": not self.leaks, "twice": self.twice == 0,
               "complete": not self.failed, "repaired": self.tally.share("repaired") in (1.0, None)}
        if not self.wanted:
            met["defects"] = self.tally.share("defects") == 1.0
        met["false alarms"] = alarms is not None and alarms <= 0.02
        return {"v": 1, "mode": "offline", "seconds": self.seconds, "met": all(met.values()), "targets": met,
                "counts": self.tally.data(), "cases": self.by_case, "scenes": self.by_scene, "defects": self.by_defect,
                "killed_in": sorted(self.killed, key=scenes.STEPS.index), "leaks": self.leaks, "twice": self.twice,
                "false_alarms": {"documents": self.documents, "share": alarms, "of": self.alarms, "warnings": self.warned},
                "failed": self.failed, "wrong": self.tally.wrong}

    def share(self, *names):
        of = sum(self.tally.of.get(name, 0) for name in names)
        return sum(self.tally.right.get(name, 0) for name in names) / of if of else None


def lay_repository(stage, work, about):
    """The repository of the good documents. Gives what stands for its commits in them."""
    run, marks = plays.git(stage), {}
    when = {"GIT_COMMITTER_DATE": cases.WHEN % 1}
    who = ("-c", "user.name=Eval", "-c", "user.email=eval@example.org", "-c", "commit.gpgsign=false")
    run(work, "init", "-q", "-b", "main")
    for number, commit in enumerate(about["commits"], 1):
        lay_files(work, commit["files"])
        run(work, "add", "-A")
        run(work, *who, "commit", "-q", "--date", cases.WHEN % 1, "-m", commit["message"], env=when)
        marks["{commit%d}" % number] = run(work, "rev-parse", "--short=9", "HEAD").strip()
        if number == about.get("pushed"):
            bare = work.parent / (work.name + "-origin.git")
            run(work.parent, "clone", "-q", "--bare", str(work), str(bare))
            run(work, "remote", "add", "origin", str(bare))
            run(work, "fetch", "-q", "origin")
            run(work, "checkout", "-q", "-b", about["branch"])
            if about.get("follows"):
                run(work, "push", "-q", "-u", "origin", about["branch"])
    lay_files(work, about.get("changed", {}))
    marks["{root}"] = str(work)
    return marks


def lay_files(work, files):
    for name, text in files.items():
        path = work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
