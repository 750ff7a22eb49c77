#!/usr/bin/env python3
"""wren: a small terminal program that stands for an agent CLI that tasuki has never seen.

It has a composer between two double lines, hooks (shell commands with JSON on standard input), /reset and /quit.
It reads its hooks from the file behind --hooks, and from settings.json in $WREN_HOME or ~/.wren. With WREN_TWICE set,
it runs each of them twice. Whoever asks it for a document in a Markdown file gets one.
"""
import json
import os
import re
import select
import shutil
import subprocess
import sys
import termios
import time
import tty
import uuid

PASTE_START, PASTE_END = "\x1b[200~", "\x1b[201~"


class Wren:
    def __init__(self):
        self.hooks = self.read_hooks()
        self.log, self.draft, self.busy = [], "", False
        self.conversation = "conversation-" + uuid.uuid4().hex[:8]
        self.exchange = None

    @staticmethod
    def read_hooks():
        folder = os.environ.get("WREN_HOME") or os.path.expanduser("~/.wren")
        files = [os.path.join(folder, "settings.json")]
        if "--hooks" in sys.argv:
            files.append(sys.argv[sys.argv.index("--hooks") + 1])
        hooks = {}
        for file in files:
            if os.path.exists(file):
                with open(file, encoding="utf-8") as text:
                    for name, commands in json.load(text).get("hooks", {}).items():
                        hooks.setdefault(name, []).extend(commands)
        return hooks

    def tell(self, type_, **more):
        event = {"type": type_, "conversation": self.conversation, "exchange": self.exchange, "dir": os.getcwd(), **more}
        for command in self.hooks.get(type_, []) * (2 if os.environ.get("WREN_TWICE") else 1):
            subprocess.run(command, shell=True, input=json.dumps(event), text=True, timeout=5,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def draw(self):
        columns, rows = shutil.get_terminal_size()
        wide = columns - 3
        lines = [line[at:at + wide] for line in self.draft.split("\n") for at in range(0, max(len(line), 1), wide)]
        lines = lines[-(rows - 6):]
        composer = ["» " + lines[0]] + ["  " + line for line in lines[1:]]
        above = (self.log + (["", "~ thinking …"] if self.busy else [""]))[-(rows - len(composer) - 3):]
        bottom = ["═" * columns, " /quit ends, /reset starts over"]
        text = "\r\n".join(line[:columns] for line in above + ["═" * columns] + composer + bottom)
        at_row, at_column = len(above) + 1 + len(composer), 3 + len(lines[-1])
        sys.stdout.write("\x1b[?25l\x1b[H\x1b[2J" + text + f"\x1b[{at_row};{at_column}H\x1b[?25h")
        sys.stdout.flush()

    def submit(self):
        prompt, self.draft = self.draft, ""
        if prompt.strip() == "/quit":
            self.tell("conversation.over", because="quit")
            return False
        if prompt.strip() == "/reset":
            self.tell("conversation.over", because="reset")
            self.log, self.conversation = [], "conversation-" + uuid.uuid4().hex[:8]
            self.tell("conversation.begun", because="reset")
            return True
        self.exchange = "exchange-" + uuid.uuid4().hex[:8]
        self.log += ["", "you: " + prompt.split("\n")[0]]
        self.note(prompt)
        self.busy = True
        self.draw()
        self.tell("prompt.taken", message={"body": prompt})
        time.sleep(0.3)
        reply = self.answer(prompt)
        self.log += ["wren: " + reply]
        self.busy = False
        self.draw()
        self.tell("answer.done", reply=reply)
        self.exchange = None
        return True

    @staticmethod
    def answer(prompt):
        file = re.search(r"`(/[^`]+\.md)`", prompt)
        if not file or "handoff document" not in prompt:
            return "I have read it."
        with open(file.group(1), "w", encoding="utf-8") as document:
            document.write("# Handoff\n\nWhat a wren knows.\n")
        return "I have written it."

    @staticmethod
    def note(prompt):
        if os.environ.get("WREN_LOG"):
            line = json.dumps({"agent_id": os.environ.get("TASUKI_AGENT_ID"), "text": prompt})
            with open(os.environ["WREN_LOG"], "a", encoding="utf-8") as log:
                log.write(line + "\n")

    def run(self):
        sys.stdout.write("\x1b[?2004h")
        self.draw()
        self.tell("conversation.begun", because="start")
        pending = ""
        while True:
            select.select([0], [], [])
            data = os.read(0, 65536).decode("utf-8", "replace")
            if not data:
                return
            pending += data
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
                    elif key == "\x7f":
                        self.draft = self.draft[:-1]
                    elif key.isprintable():
                        self.draft += key
            self.draw()


def main():
    former = termios.tcgetattr(0)
    tty.setraw(0)
    try:
        Wren().run()
    finally:
        sys.stdout.write("\x1b[?2004l\r\n")
        sys.stdout.flush()
        termios.tcsetattr(0, termios.TCSADRAIN, former)


main()
