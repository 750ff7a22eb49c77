"""Counts what of a case survived: what its author wrote, what tasuki brought, what the successor does with it."""
import json
import re


class Tally:
    """What was looked at, what of it was right, and a line for each thing that was not."""

    def __init__(self):
        self.right, self.of, self.wrong = {}, {}, []

    def count(self, name, is_right, about=""):
        self.of[name] = self.of.get(name, 0) + 1
        self.right[name] = self.right.get(name, 0) + bool(is_right)
        if not is_right:
            self.wrong.append("%s: %s" % (name, about))

    def add(self, other):
        for name, of in other.of.items():
            self.of[name] = self.of.get(name, 0) + of
            self.right[name] = self.right.get(name, 0) + other.right[name]
        self.wrong += other.wrong

    def share(self, name):
        return self.right.get(name, 0) / self.of[name] if self.of.get(name) else None

    def data(self):
        return {name: {"right": self.right[name], "of": of} for name, of in self.of.items()}


def texts(log):
    """All that an agent was given and has read, in one text."""
    return "\n".join(entry.get("text", "") for entry in log if entry["kind"] in ("prompt", "read"))


def answers(text):
    """The JSON object of an answer; nothing if there is none."""
    try:
        found = json.loads(text)
    except ValueError:
        match = re.search(r"\{.*\}", text, re.S)
        try:
            found = json.loads(match.group(0)) if match else {}
        except ValueError:
            found = {}
    return found if isinstance(found, dict) else {}


def case(tally, where, questions, written, log, said, only=None):
    """Holds the answers of a successor against a case. `written`: the author's documents; `log`: what the successor has got."""
    got = texts([entry for entry in log if not entry.get("text", "").startswith("Answer by what")])
    for name, question in questions.items():
        if only and name not in only:
            continue
        at = "%s/%s" % (where, name)
        answer = said.get(name, {})
        if question.kind == "never":
            tally.count("abstention", question.is_right(answer), "%s: answered %s" % (at, answer))
            continue
        if question.by == "author":
            is_written = question.holds(written)
            tally.count("extraction", is_written, "%s is not in the document" % at)
            if not is_written:
                continue
        is_brought = question.holds(got)
        tally.count("transport", is_brought, "%s did not reach the successor" % at)
        if not is_brought and question.kind != "stale":
            continue
        kind = {"unverified": "unverified", "stale": "stale"}.get(question.kind, "use")
        tally.count(kind, question.is_right(answer), "%s: answered %s" % (at, answer))


def delivery_ids(log):
    prompts = [entry["text"] for entry in log if entry["kind"] == "prompt"]
    return [found[-1] for found in (re.findall(r"\(tasuki delivery ([0-9a-f]{12})\.\)", prompt) for prompt in prompts) if found]
