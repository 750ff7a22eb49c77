"""A private tmux server, a home and a sidecar for the tests of the page, with demo agents."""

import json
import os
import signal
import subprocess
import time

from github import GitHub

PATIENCE = 180
FOREIGN = ["TMUX", "TMUX_PANE", "TASUKI_HOME", "TASUKI_TMUX", "TASUKI_AGENT_ID", "TASUKI_PERSONA"]


def until(what, look, patience=PATIENCE):
    """Waits until `look` finds something, and gives it."""
    end = time.monotonic() + patience
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"not within {patience} s: {what}")
        time.sleep(0.05)


def check(is_so, what):
    if not is_so:
        raise AssertionError(what)


class Stage:
    """A tmux server, a home, a sidecar, agents and a server. All of it ends with `close`."""

    def __init__(self, tasuki, folder):
        self.tasuki, self.folder, self.children = tasuki, folder, []
        self.home, self.socket, self.faults_file = folder / "home", folder / "tmux", folder / "faults"
        self.home.mkdir(mode=0o700)
        (folder / "work").mkdir()
        publish = '[publish]\ntimeout = "6s"\nretry_after = []\n'
        (self.home / "config.toml").write_text('[limits]\ninstructing = "6s"\n' + publish)
        self.env = {name: value for name, value in os.environ.items() if name not in FOREIGN}
        self.env |= {"TASUKI_HOME": str(self.home), "TASUKI_TMUX": str(self.socket), "TASUKI_LOG": "warn"}
        self.github = GitHub(folder) if GitHub.can() else None
        if self.github:
            self.env |= self.github.surroundings()
        self.faults("")
        self.tmux("new-session", "-d", "-s", "user", "-x", "120", "-y", "40", "exec cat")
        self.tmux("set-environment", "-g", "TASUKI_DEMO_FAULTS_FILE", str(self.faults_file))
        self.start("run")
        until("the sidecar beats", lambda: (self.home / "view/sidecar.json").exists())

    def tmux(self, *args):
        command = ["tmux", "-u", "-S", str(self.socket), "-f", "/dev/null", *args]
        subprocess.run(command, env=self.env, check=False, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)

    def has_pane(self, pane):
        command = ["tmux", "-S", str(self.socket), "list-panes", "-a", "-F", "#{pane_id}"]
        listed = subprocess.run(command, env=self.env, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=True)
        return pane in listed.stdout.decode().split()

    def start(self, *args, **more):
        log = open(self.folder / f"{args[0]}.log", "wb")
        child = subprocess.Popen([self.tasuki, *args], env=self.env, stdin=subprocess.DEVNULL, stderr=log, **more)
        self.children.append(child)
        return child

    def run(self, *args):
        done = subprocess.run(
            [self.tasuki, *args, "--json"], env=self.env, cwd=self.folder / "work", stdin=subprocess.DEVNULL,
            capture_output=True, timeout=PATIENCE, check=False,
        )
        check(done.returncode == 0, f"tasuki {args}: {done.stderr.decode()}")
        return json.loads(done.stdout)

    def faults(self, lines):
        scratch = self.folder / "faults.new"
        scratch.write_text(f"slow_turn=1200\n{lines}\n")
        scratch.rename(self.faults_file)

    def agent(self, slug, role=None):
        self.run("persona", "new", slug, "--profile", "demo", *(["--role", role] if role else []))
        return self.run("agent", "create", slug, "--cwd", str(self.folder / "work"))["agent_id"]

    def serve(self):
        ours, theirs = os.openpty()
        self.start("serve", "--listen", "127.0.0.1:0", stdout=theirs)
        os.close(theirs)
        said = os.fdopen(ours, "rb", buffering=0).readline().decode().strip()
        url, code = said.split("#code=")
        return url, code, (self.home / "state/serve.token").read_text().strip()

    def handoffs(self):
        return [json.loads(path.read_text()) for path in (self.home / "view/handoffs").glob("*.json")]

    def close(self):
        for child in reversed(self.children):
            child.send_signal(signal.SIGTERM)
        for child in self.children:
            try:
                child.wait(20)
            except subprocess.TimeoutExpired:
                child.kill()
        self.tmux("kill-server")
