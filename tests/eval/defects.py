"""Documents with planted defects, each of which one check has to find, and good documents, in which none may find anything."""
import json
import pathlib
import re

import canary

GOOD = pathlib.Path(__file__).resolve().parent / "good"
FRONT = re.compile(r"\A---\n.*?\n---\n+", re.S)


def headings(text, _):
    return "".join(line + "\n\n" for line in text.splitlines() if line.startswith("#"))


def claims(text, _):
    return text + "\nEverything is committed at deadbee, the working tree is clean, the branch is pushed, and 412 tests pass.\n"


def secrets(text, _):
    return text + "\nI used the token %s and the database %s.\n" % (canary.make("github", "d1")[0], canary.make("url", "d2")[0])


def without_steps(text, _):
    return re.sub(r"(?s)(## Next steps\n\n).*", r"\1Go on with this as before.\n", text)


def without_files(text, about):
    return re.sub("|".join(re.escape(name) for name in about["changed"]), "it", text)


def placeholders(text, _):
    return re.sub(r"(?s)(## (?:Blockers|Key decisions and why)\n\n).*?(?=\n## )", r"\1TODO\n", text)


# Name, what is done to a good document, the checks that must find it, more fields of the request.
DEFECTS = (
    ("empty headings", headings, ("sections",), {}),
    ("false HEAD, clean, pushed", claims, ("repository",), {}),
    ("a missing file", lambda text, _: text + "\nI changed `src/no_such_file.rs` and its tests.\n", ("paths",), {}),
    ("an open fence", lambda text, _: text + "\n```rust\nlet answer = 42;\n", ("whole",), {}),
    ("credentials", secrets, ("secrets",), {}),
    ("a copy of the predecessor's", lambda _, about: about["predecessor"], ("copy",), {}),
    ("no checkpoint, with urgency", lambda text, _: FRONT.sub("", text), ("checkpoint", "verified"), {"urgency": "prepare"}),
    ("200 KiB", lambda text, _: text + "\nI looked at this as well, and wrote down every word of it.\n" * 3500, ("size",), {}),
    ("placeholders", placeholders, ("sections",), {}),
    ("an end in the middle", lambda text, _: text + "\nAnd then I changed [truncated]", ("whole",), {}),
    ("changed files left out", without_files, ("dirty_files",), {}),
    ("no command next", without_steps, ("next_step",), {}),
    ("the user's own key", lambda text, about: text + "\nThe service takes %s here.\n" % about["key"], ("secrets",), {}),
)


def faults(stage, own, agent, text, **more):
    """The faults of a document as its author writes it; the handoff waits for a person, who then lets it be."""
    (own / "next.md").write_bytes(text.encode())
    handoff = stage.hand_off(agent, check="warn", review=True, **more)
    view = stage.until("handoff %s is checked" % handoff, lambda: held(stage, handoff))
    stage.granted(kind="handoff_cancel", handoff_id=handoff)
    stage.idle(agent)
    return view["faults"]


def held(stage, handoff):
    view = stage.view("handoffs", handoff)
    if view.get("step") in ("failed", "cancelled", "done"):
        raise RuntimeError("%s, though it should wait for a person: %s" % (view["step"], (view.get("error") or {}).get("message")))
    return view.get("step") == "checking" and view.get("held_since") and view


def said(fault):
    return "%s (%s) line %s: %s; %s" % (fault["check"], fault["grade"], fault["line"], fault["said"], fault["is"])


def good(folder=GOOD):
    """The good documents of a folder, and what its repository is: repository.json, where there is one."""
    about = folder / "repository.json"
    return sorted(folder.glob("*.md")), json.loads(about.read_text(encoding="utf-8")) if about.exists() else None
