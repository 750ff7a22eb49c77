#!/usr/bin/env python3
"""The agent CLI of the evaluation: a terminal program with a composer, that reports its events by files in the spool.

It has no mind. It writes the documents that a case has laid out for it, reads what it is briefed with, and answers questions by
looking them up in what it has read, and in nothing else. Everything that it was given, has read and has written is in its log.

EVAL_DIR/<persona>/ holds next.md (its next document), rework.md (that document once more), conversation.json (what was said to the
first agent of a case) and lookups.json (how to find an answer in a text). EVAL_DIR/log/<agent>.jsonl is its log.
"""
import datetime
import hashlib
import json
import os
import pathlib
import re
import select
import shutil
import sys
import termios
import time
import tty
import uuid

import lookup

PASTE_START, PASTE_END = "\x1b[200~", "\x1b[201~"
LINE, MARK, WORKING = {"plain": ("═", "» ", "~ thinking …"), "other": ("─", "$ ", "* busy")}[
    sys.argv[1] if len(sys.argv) > 1 else "plain"]
MOST_TEXT = 64 * 1024
TURN = float(os.environ.get("EVAL_TURN", "0.05"))
# The process stays for a moment after its farewell, so that an ending agent can be seen.
LEAVING = 0.25


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


class Agent:
    def __init__(self):
        self.id = os.environ.get("TASUKI_AGENT_ID", "")
        self.persona = os.environ.get("TASUKI_PERSONA", "")
        self.home = pathlib.Path(os.environ["TASUKI_HOME"])
        self.eval = pathlib.Path(os.environ["EVAL_DIR"])
        self.own = self.eval / self.persona
        self.draft, self.screen, self.busy, self.count = "", [], False, 0
        self.session, self.turn = "", None
        self.read = []
        self.begin()

    def begin(self):
        """A new conversation; the case's own is that of the first agent."""
        self.session = str(uuid.uuid4())
        self.read = []
        self.transcript = self.eval / "transcripts" / (self.session + ".jsonl")
        said = self.own / "conversation.json"
        try:
            os.rename(said, self.own / ("conversation-" + self.session + ".json"))
        except OSError:
            return
        with open(self.own / ("conversation-" + self.session + ".json"), encoding="utf-8") as file:
            for entry in json.load(file):
                self.record(entry)

    # ---- what is kept ------------------------------------------------------------------------------------------------

    def note(self, kind, **more):
        with open(self.eval / "log" / (self.id + ".jsonl"), "a", encoding="utf-8") as log:
            log.write(json.dumps({"kind": kind, "at": time.time(), "session": self.session, **more}) + "\n")

    def line(self, type_, **message):
        line = {"type": type_, "sessionId": self.session, "timestamp": now(), "message": message}
        with open(self.transcript, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def record(self, entry):
        """One entry of a conversation: what the user said, the agent answered, ran or wrote."""
        name = next((name for name in ("user", "assistant", "ran", "wrote") if name in entry), None)
        if name == "user":
            self.line("user", role="user", content=entry["user"])
        elif name == "assistant":
            self.line("assistant", role="assistant", model="eval", id="msg_" + uuid.uuid4().hex,
                      content=[{"type": "text", "text": entry["assistant"]}],
                      usage={"input_tokens": 70000, "context_window": 100000})
        elif name:
            id_ = "toolu_" + uuid.uuid4().hex
            tool = ("Bash", {"command": entry["ran"]}) if name == "ran" else ("Write", {"file_path": entry["wrote"]})
            self.line("assistant", role="assistant", model="eval", id="msg_" + uuid.uuid4().hex,
                      content=[{"type": "tool_use", "id": id_, "name": tool[0], "input": tool[1]}])
            failed = bool(entry.get("exit"))
            printed = ("Exit code %d\n" % entry["exit"] if failed else "") + entry.get("printed", "")
            self.line("user", role="user", content=[
                {"type": "tool_result", "tool_use_id": id_, "content": printed, "is_error": failed}])

    def tell(self, event, **more):
        """One event file, whole, by rename."""
        self.count += 1
        name = "%s-%d-%06d.json" % (self.id[:8] or "anyone", os.getpid(), self.count)
        file = {"v": 1, "event": event, "agent_id": self.id, "pane": os.environ.get("TMUX_PANE"),
                "tmux": os.environ.get("TMUX"), "profile": os.environ.get("EVAL_PROFILE"), "at": now(), "session_id": self.session,
                "turn_id": self.turn, "cwd": os.getcwd(), "transcript_path": str(self.transcript), **more}
        scratch = self.home / "spool" / "tmp" / name
        scratch.write_text(json.dumps({key: value for key, value in file.items() if value is not None}), encoding="utf-8")
        os.rename(scratch, self.home / "spool" / "events" / name)

    # ---- turns -------------------------------------------------------------------------------------------------------

    def submit(self):
        prompt, self.draft = self.draft, ""
        if prompt.strip() == "/quit":
            self.tell("session_end", reason="process")
            time.sleep(LEAVING)
            return False
        if prompt.strip() == "/reset":
            self.tell("session_end", reason="replaced")
            self.screen = []
            self.begin()
            self.tell("session_start", reason="replaced")
            return True
        self.turn = "turn-" + uuid.uuid4().hex[:8]
        self.screen.append("you: " + prompt.split("\n")[0])
        self.busy = True
        self.draw()
        self.note("prompt", text=prompt)
        self.line("user", role="user", content=prompt)
        whole = prompt.encode()
        self.tell("prompt_submit", text=whole[-MOST_TEXT:].decode("utf-8", "ignore"))
        slow = re.search(r"\[\[slow:([0-9.]{1,4})\]\]", prompt)
        time.sleep(min(float(slow.group(1)), 5) if slow else TURN)
        reply = self.answer(prompt)
        self.line("assistant", role="assistant", model="eval", id="msg_" + uuid.uuid4().hex, content=[{"type": "text", "text": reply}],
                  usage={"input_tokens": 1000, "context_window": 100000})
        self.screen.append("agent: " + reply.split("\n")[0])
        self.busy = False
        self.draw()
        self.tell("stop", last_text=reply)
        self.turn = None
        return True

    def answer(self, prompt):
        paths = re.findall(r"`(/[^`\n]+\.md)`", prompt)
        if paths and "/texts/" in paths[0]:
            self.keep("text", paths[0])
            prompt = pathlib.Path(paths[0]).read_text(encoding="utf-8")
            paths = re.findall(r"`(/[^`\n]+\.md)`", prompt)
        if "<handoff-context>" in prompt:
            self.read.append(("document", prompt.split("<handoff-context>", 1)[1].rsplit("</handoff-context>", 1)[0]))
            return "I have read the context."
        if re.search(r"^Write your handoff document once more|^Please repair your handoff document", prompt, re.M) and paths:
            return self.write(paths[0], "rework.md")
        if re.search(r"^Your context is to be handed|Write a handoff document", prompt, re.M) and paths:
            return self.write(paths[0], "next.md")
        if "You take over from agent" in prompt:
            self.read.append(("briefing", prompt))
            for path in paths:
                if path.endswith(".facts.md"):
                    self.keep("facts", path)
            self.keep("document", paths[0])
            return "I have read the document and what tasuki saw."
        if prompt.count("Questions of the evaluation:"):
            return self.look_up(prompt)
        return "Understood."

    def write(self, path, name):
        try:
            text = (self.own / name).read_bytes()
        except OSError:
            return "I have nothing to write."
        with open(path, "wb") as document:
            document.write(text)
        self.note("wrote", path=path, sha256=hashlib.sha256(text).hexdigest(), bytes=len(text), source=name)
        self.line("assistant", role="assistant", model="eval", id="msg_" + uuid.uuid4().hex,
                  content=[{"type": "tool_use", "id": "toolu_" + uuid.uuid4().hex, "name": "Write", "input": {"file_path": path}}])
        return "I have written it."

    def keep(self, source, path):
        try:
            text = pathlib.Path(path).read_bytes()
        except OSError as error:
            self.note("not_read", path=path, why=str(error))
            return
        self.note("read", source=source, path=path, sha256=hashlib.sha256(text).hexdigest(), bytes=len(text),
                  text=text.decode("utf-8", "replace"))
        self.read.append((source, text.decode("utf-8", "replace")))

    def look_up(self, prompt):
        with open(self.own / "lookups.json", encoding="utf-8") as file:
            lookups = json.load(file)
        answers = {}
        for id_ in re.findall(r"^- ([a-z0-9_]+): ", prompt, re.M):
            answers[id_] = lookup.answer(lookups.get(id_, {}), self.read)
        reply = json.dumps(answers)
        self.note("answer", text=reply)
        return reply

    # ---- the terminal ------------------------------------------------------------------------------------------------

    def draw(self):
        columns, rows = shutil.get_terminal_size()
        wide = columns - 3
        lines = [line[at:at + wide] for line in self.draft.split("\n") for at in range(0, max(len(line), 1), wide)]
        lines = lines[-(rows - 6):]
        composer = [MARK + lines[0]] + ["  " + line for line in lines[1:]]
        above = (self.screen + (["", WORKING] if self.busy else [""]))[-(rows - len(composer) - 3):]
        bottom = [LINE * columns, " /quit ends, /reset starts over"]
        text = "\r\n".join(line[:columns] for line in above + [LINE * columns] + composer + bottom)
        at_row, at_column = len(above) + 1 + len(composer), 3 + len(lines[-1])
        sys.stdout.write("\x1b[?25l\x1b[H\x1b[2J" + text + "\x1b[%d;%dH\x1b[?25h" % (at_row, at_column))
        sys.stdout.flush()

    def run(self):
        sys.stdout.write("\x1b[?2004h")
        self.draw()
        self.note("began", pid=os.getpid(), cwd=os.getcwd())
        self.tell("session_start", reason="process")
        decoder = __import__("codecs").getincrementaldecoder("utf-8")("replace")
        pending = ""
        while True:
            select.select([0], [], [])
            data = os.read(0, 65536)
            if not data:
                return
            pending += decoder.decode(data)
            while pending:
                if pending.startswith(PASTE_START):
                    if PASTE_END not in pending:
                        break
                    pasted, pending = pending[len(PASTE_START):].split(PASTE_END, 1)
                    self.draft += pasted.replace("\r\n", "\n").replace("\r", "\n")
                elif PASTE_START.startswith(pending):
                    break
                else:
                    key, pending = pending[0], pending[1:]
                    if key == "\r":
                        self.draw()
                        if not self.submit():
                            return
                    elif key == "\n":
                        self.draft += "\n"
                    elif key == "\x7f":
                        self.draft = self.draft[:-1]
                    elif key.isprintable():
                        self.draft += key
            self.draw()


def main():
    former = termios.tcgetattr(0)
    tty.setraw(0)
    try:
        Agent().run()
    finally:
        sys.stdout.write("\x1b[?2004l\r\n")
        sys.stdout.flush()
        termios.tcsetattr(0, termios.TCSADRAIN, former)


if __name__ == "__main__":
    main()
