"""`case new`: the skeleton of a case, made of a handoff that was recorded. It asks nothing, and takes out what looks like a credential."""
import json
import os
import pathlib
import re

import cases
from stage import ROOT, Trouble, read_json

REDACTED = "[REDACTED:%s]"
MOST_FILES, MOST_BYTES = 40, 64 * 1024


def rules():
    """tasuki's own rules for credentials, as far as Python's expressions can say them: (kind, expression, group)."""
    text = (ROOT / "data/secrets.toml").read_text(encoding="utf-8")
    for block in text.split("[[rules]]")[1:]:
        id_ = re.search(r'^id = "([^"]+)"', block, re.M)
        regex = re.search(r"^regex = '''(.*?)'''", block, re.M | re.S)
        group = re.search(r"^group = (\d+)", block, re.M)
        if not id_ or not regex:
            continue
        try:
            expression = re.compile(flags_first(regex.group(1)))
        except re.error:
            continue
        yield id_.group(1), expression, int(group.group(1)) if group else 1


def flags_first(text):
    """Flags that stand in the middle, which Python refuses, hold for the whole of it here: that finds more, not less."""
    flags = set("".join(re.findall(r"\(\?([ims]+)\)", text)))
    text = re.sub(r"\(\?[ims]+\)", "", text).replace("\\z", "\\Z")
    text = text.replace("[[:alnum:]]", "[0-9A-Za-z]")
    return "(?%s)%s" % ("".join(sorted(flags)), text) if flags else text


def redacted(text):
    """A text without credentials: rather one word too many than one too few, for a case is shown to others."""
    for kind, expression, group in rules():
        def without(match):
            at = group if group <= (expression.groups or 0) and match.group(group) else 0
            if "REDACTED:" in match.group(at):
                return match.group(0)
            start, end = match.span(at)
            return match.group(0)[:start - match.start()] + REDACTED % kind + match.group(0)[end - match.start():]
        text = expression.sub(without, text)
    return text


def make(handoff, home, to, out):
    view = find(handoff, home)
    document = pathlib.Path(view["file_path"])
    if not document.is_file():
        raise Trouble("the document is not there: %s" % document)
    facts = view.get("facts") or {}
    name = "case-" + view["handoff_id"][:8]
    folder = (to or pathlib.Path.cwd()) / name
    folder.mkdir(parents=True)
    text = redacted(document.read_text(encoding="utf-8", errors="replace"))
    (folder / "document.md").write_text(text, encoding="utf-8")
    (folder / "facts.json").write_text(redacted(json.dumps(facts, indent=2, ensure_ascii=False)) + "\n", encoding="utf-8")
    user, actions, repository = (facts.get(part) or {} for part in ("user", "actions", "repository"))
    taken = copy_files(repository, actions, folder / "repo")
    (folder / "case.json").write_text(json.dumps(skeleton(view, user, actions, repository), indent=2, ensure_ascii=False) + "\n",
                                      encoding="utf-8")
    cases.Case(folder)
    out.line("%s: the document, the facts, %d files of the repository" % (folder, taken))
    out.line("Fill in case.json what the successor must know: for each question the words that an answer must hold. Read every file before")
    out.line("you show the case to others. Then: scripts/handoff-eval run --offline --cases %s --case %s" % (folder.parent, name))
    return 0


def find(wanted, home):
    found = [path for path in sorted((home / "view/handoffs").glob("*.json")) if path.name.startswith(wanted)]
    if len(found) != 1:
        raise Trouble("%d handoffs in %s begin with %s" % (len(found), home, wanted))
    view = read_json(found[0])
    if not view.get("sha256"):
        raise Trouble("handoff %s has no recorded document" % view["handoff_id"])
    return view


def copy_files(repository, actions, into):
    """The files that the agent has changed, as they are now; not the whole repository, which nobody wants to show."""
    root = repository.get("root")
    if not root:
        into.mkdir()
        (into / "README.md").write_text("# The repository of this case\n", encoding="utf-8")
        return 1
    paths = [entry["path"] for entry in repository.get("status", [])] + [entry["path"] for entry in actions.get("files", [])]
    count = 0
    for path in dict.fromkeys(paths):
        file = pathlib.Path(os.path.realpath(os.path.join(root, path)))
        inside = os.path.relpath(file, os.path.realpath(root))
        if inside.startswith("..") or not file.is_file() or file.stat().st_size > MOST_BYTES or count == MOST_FILES:
            continue
        try:
            text = file.read_text(encoding="utf-8")
        except ValueError:
            continue
        target = into / inside
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(redacted(text), encoding="utf-8")
        count += 1
    if not count:
        into.mkdir(parents=True, exist_ok=True)
        (into / "README.md").write_text("# The repository of this case\n", encoding="utf-8")
    return count


def skeleton(view, user, actions, repository):
    said = [text for text in [user.get("first")] + user.get("last", []) if text]
    conversation = [{"user": redacted(text)} for text in dict.fromkeys(said)] or [{"user": "TODO: what the user said first"}]
    for ran in actions.get("commands", [])[-10:]:
        conversation.append({"ran": redacted(ran["command"]), "exit": ran.get("exit") or int(bool(ran.get("failed")))})
    expect = {kind: {"tokens": ["TODO: words that the answer must hold"], "find": "TODO: (.+)"} for kind in cases.KINDS
              if kind not in cases.TRAPS}
    expect["unverified"] = {"tokens": ["TODO: what was believed and not seen"]}
    expect["stale"] = {"asks": "TODO: what was so and is not now?", "find": "TODO: (.+)", "against": "TODO: (.+)"}
    expect["never"] = {"asks": "TODO: what nobody ever said?", "find": "TODO: (.+)"}
    return {"title": "TODO, from a handoff of %s" % view["persona_slug"], "language": "TODO", "canary": "github",
            "branch": repository.get("branch") if repository.get("branch") not in (None, "main") else "work",
            "expect": expect, "conversation": conversation}
