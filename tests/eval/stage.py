"""A private tmux server, a home in a temporary folder and the sidecar, to which this speaks only as a dashboard does: by files."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import profiles

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
ENDS = ("done", "failed", "cancelled")
# Variables that would lead a program to somebody else's home or server.
FOREIGN = ("TMUX", "TASUKI_", "GIT_", "XDG_", "EVAL_")


class Trouble(Exception):
    """Something did not happen, or not as it had to."""


def environment(**more):
    own = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    own.update(GIT_CONFIG_GLOBAL=os.devnull, GIT_CONFIG_NOSYSTEM="1", PYTHONDONTWRITEBYTECODE="1", LC_ALL="C.UTF-8")
    own.update(more)
    return own


def read_json(path):
    """A file that is there holds whole JSON, for it was put there by rename."""
    try:
        return json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None


def json_lines(path):
    try:
        text = pathlib.Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    return [json.loads(line) for line in text[:text.rfind("\n") + 1].splitlines()]


def make_private(path):
    path.mkdir(parents=True, exist_ok=True)
    for folder in (path, *path.parents):
        if folder.stat().st_uid == os.getuid() and str(folder).startswith(tempfile.gettempdir() + "/"):
            folder.chmod(0o700)
    return path


class Stage:
    """Everything lies in one folder, and all of it ends with `close`."""

    def __init__(self, program, patience=60, config="", env=None, keep=False, prepare=None, stopping=None):
        self.program, self.patience, self.keep = program, patience, keep
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="tasuki-eval.")).resolve()
        self.home, self.eval, self.user = self.dir / "home", self.dir / "eval", self.dir / "user"
        self.socket, self.log = self.dir / "s", self.dir / "log"
        self.sidecar, self.crashes, self.also_removes = None, 0, []
        self.lock, self.requests, self.stopping = threading.RLock(), 0, stopping or threading.Event()
        self.env = environment(**dict({"HOME": str(self.user), "TMPDIR": str(self.dir)}, **(env or {})))
        # What is below may fail; then what was started has to end, too.
        try:
            self.open(config, env or {}, prepare)
        except BaseException:
            self.close()
            raise

    def open(self, config, env, prepare):
        for folder in (self.home, self.user, self.eval / "log", self.eval / "transcripts", self.home / "data/profiles"):
            make_private(folder)
        (self.home / "config.toml").write_text(config, encoding="utf-8")
        profiles.write(self.home / "data/profiles", HERE / "agent.py", ROOT / "data/profiles/demo.toml")
        if prepare:
            prepare(self)
        self.tmux("new-session", "-d", "-s", "user", "-x", "120", "-y", "40", "exec cat")
        for name, value in dict(self.env, EVAL_DIR=str(self.eval)).items():
            if name in ("HOME", "EVAL_DIR", "PATH", "TMPDIR", "LC_ALL", "PYTHONDONTWRITEBYTECODE") or name in env:
                self.tmux("set-environment", "-g", name, value)
        self.start()

    # ---- programs ----------------------------------------------------------------------------------------------------

    def run(self, *argv, cwd=None, check=True, env=None):
        done = subprocess.run(argv, cwd=cwd, env=dict(self.env, **(env or {})), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=self.patience, check=False)
        said = done.stdout.decode("utf-8", "replace")
        if check and done.returncode:
            raise Trouble("%s: exit %d: %s" % (" ".join(map(str, argv)), done.returncode, said.strip()))
        return said

    def tmux(self, *args):
        return self.run("tmux", "-u", "-S", str(self.socket), "-f", os.devnull, *args, check=False)

    def start(self):
        with open(self.log, "ab") as log:
            argv = [self.program, "--home", str(self.home), "run", "--tmux", str(self.socket)]
            self.sidecar = subprocess.Popen(argv, env=dict(self.env, TASUKI_LOG="debug"), stdin=subprocess.DEVNULL,
                                            stdout=subprocess.DEVNULL, stderr=log, start_new_session=True)
        self.until("the sidecar runs", self.is_beating)

    def is_beating(self):
        if self.sidecar.poll() is not None:
            raise Trouble("the sidecar has ended with %s: %s" % (self.sidecar.returncode, self.log_tail()))
        return (read_json(self.home / "view/sidecar.json") or {}).get("pid") == self.sidecar.pid

    def crash(self):
        """kill -9 of the sidecar, and a new start."""
        with self.lock:
            self.sidecar.send_signal(signal.SIGKILL)
            self.sidecar.wait(self.patience)
            self.crashes += 1
            self.start()

    def log_tail(self):
        try:
            return self.log.read_text(encoding="utf-8", errors="replace")[-1500:]
        except OSError:
            return ""

    def close(self):
        if self.sidecar and self.sidecar.poll() is None:
            self.sidecar.kill()
            self.sidecar.wait(10)
        try:
            self.tmux("kill-server")
        except (subprocess.SubprocessError, OSError):
            pass
        for pid in self.own_processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        if self.keep:
            print("kept: %s" % self.dir, file=sys.stderr)
        else:
            for folder in [self.dir, *self.also_removes]:
                shutil.rmtree(folder, ignore_errors=True)

    def own_processes(self):
        """What runs with this home in its environment: nothing but what this stage has started."""
        wanted = ("TASUKI_HOME=%s" % self.home).encode()
        for entry in pathlib.Path("/proc").iterdir() if os.path.isdir("/proc") else []:
            if entry.name.isdigit():
                try:
                    if wanted in (entry / "environ").read_bytes().split(b"\0"):
                        yield int(entry.name)
                except OSError:
                    continue

    # ---- the spool ---------------------------------------------------------------------------------------------------

    def until(self, what, look, patience=None):
        deadline = time.monotonic() + (patience or self.patience)
        while True:
            found = look()
            if found:
                return found
            if self.stopping.is_set():
                raise Trouble("stopped while waiting: %s" % what)
            if time.monotonic() > deadline:
                raise Trouble("not within %d s: %s" % (patience or self.patience, what))
            time.sleep(0.03)

    def send(self, **request):
        with self.lock:
            self.requests += 1
            name = "eval-%d.json" % self.requests
        scratch = self.home / "spool/tmp" / name
        scratch.write_text(json.dumps(dict(request, v=1)), encoding="utf-8")
        os.rename(scratch, self.home / "spool/requests" / name)
        return self.home / "spool/results" / name

    def ask(self, **request):
        path = self.send(**request)
        return self.until("%s is answered" % request["kind"], lambda: read_json(path))

    def granted(self, **request):
        answer = self.ask(**request)
        if not answer["ok"]:
            raise Trouble("%s: %s" % (request["kind"], answer["error"]))
        return answer["result"]

    def view(self, kind, id_):
        return read_json(self.home / "view" / kind / (id_ + ".json")) or {}

    # ---- agents ------------------------------------------------------------------------------------------------------

    def own(self, slug):
        return make_private(self.eval / slug)

    def persona(self, slug, cwd, profile="eval", skill=None, more=""):
        folder = make_private(self.home / "data/personas" / slug)
        (folder / "skill.md").write_text(skill or "# Skill of %s\n\nRead before you write.\n" % slug, encoding="utf-8")
        (folder / "persona.toml").write_text("profile = %s\ncwd = %s\n%s" % (json.dumps(profile), json.dumps(str(cwd)), more),
                                             encoding="utf-8")
        return slug

    def create(self, slug, **more):
        agent = self.granted(kind="agent_create", persona_slug=slug, **more)["agent_id"]
        self.idle(agent)
        return agent

    def idle(self, agent):
        def is_idle():
            view = self.view("agents", agent)
            if view.get("state") in ("ended", "lost"):
                raise Trouble("agent %s is %s" % (agent, view["state"]))
            return view.get("state") == "idle" and view.get("primed") and view
        return self.until("agent %s is idle" % agent, is_idle)

    def agent_log(self, agent):
        return json_lines(self.eval / "log" / (agent + ".jsonl"))

    def pane_text(self, agent):
        pane = self.view("agents", agent).get("pane")
        return self.tmux("capture-pane", "-p", "-S", "-", "-t", pane) if pane else ""

    # ---- handoffs ----------------------------------------------------------------------------------------------------

    def hand_off(self, agent, **more):
        return self.granted(kind="handoff", agent_id=agent, **dict({"reason": "context_limit"}, **more))["handoff_id"]

    def in_step(self, handoff, *steps):
        def look():
            view = self.view("handoffs", handoff)
            step = view.get("step")
            if step in steps:
                return view
            if step in ENDS:
                error = view.get("error") or {}
                raise Trouble("handoff ended %s: %s %s" % (step, error.get("step"), error.get("message")))
            return None
        return self.until("handoff %s is %s" % (handoff, " or ".join(steps)), look)

    def ended(self, handoff):
        def look():
            view = self.view("handoffs", handoff)
            return view.get("step") in ENDS and view
        return self.until("handoff %s ends" % handoff, look)
