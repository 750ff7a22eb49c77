"""`compare`: two results of runs, or two folders of results or prompts, side by side."""
import difflib
import json

import statistic
from stage import Trouble


def results(path):
    """The results in a file or folder, by the name of the file."""
    files = [path] if path.is_file() else sorted(path.glob("*.json")) if path.is_dir() else []
    found = {}
    for file in files:
        try:
            one = json.loads(file.read_text(encoding="utf-8"))
        except ValueError:
            continue
        if isinstance(one, dict) and one.get("mode") in ("offline", "real"):
            found[file.name] = one
    return found


def compare(one, two, out):
    first, second = results(one), results(two)
    if first and second:
        if len(first) == len(second) == 1:
            name = next(iter(second))
            first = {name: next(iter(first.values()))}
        shared = [name for name in first if name in second]
        if not shared:
            raise Trouble("%s and %s have no results of the same name" % (one, two))
        for name in shared:
            numbers(name, first[name], second[name], out)
        return 0
    if one.is_dir() and two.is_dir():
        return prompts(one, two, out)
    raise Trouble("%s and %s are neither results of runs nor folders" % (one, two))


def numbers(name, one, two, out):
    if one["mode"] != two["mode"]:
        raise Trouble("%s: one is of a run with the scripted agent, the other is not" % name)
    out.line(name)
    if one["mode"] == "offline":
        for count in sorted(set(one["counts"]) | set(two["counts"])):
            before, after = (run["counts"].get(count, {"right": 0, "of": 0}) for run in (one, two))
            out.row(count, "%d of %d → %d of %d" % (before["right"], before["of"], after["right"], after["of"]),
                    after["of"] - after["right"] <= before["of"] - before["right"])
        return
    arms = {arm["name"]: arm for arm in one["arms"]}
    for arm in two["arms"]:
        if arm["name"] not in arms:
            continue
        former = arms[arm["name"]]
        some, other = ([play for play in run["plays"] if play["arm"] == arm["name"]] for run in (one, two))
        found = {(play["case"], play["run"], fact): right for play in some for fact, right in play["facts"].items()}
        pairs = [(found[key], right) for play in other for fact, right in play["facts"].items()
                 for key in [(play["case"], play["run"], fact)] if key in found]
        p = statistic.mcnemar(pairs)
        percent = lambda share: "-" if share is None else "%.0f %%" % (100 * share)
        out.row(arm["name"], "right %s → %s, %d → %d tokens, p %s" % (
            percent(former["right"]), percent(arm["right"]), former["tokens"], arm["tokens"], "-" if p is None else "%.3f" % p),
            (arm["right"] or 0) >= (former["right"] or 0))


def prompts(one, two, out):
    """What differs between two folders of prompts."""
    names = sorted({file.name for folder in (one, two) for file in folder.glob("*.md")})
    if not names:
        raise Trouble("there are neither results nor prompts in %s and %s" % (one, two))
    for name in names:
        text = [(folder / name).read_text(encoding="utf-8") if (folder / name).exists() else "" for folder in (one, two)]
        out.row(name, "%d → %d characters%s" % (len(text[0]), len(text[1]), "" if text[0] != text[1] else ", the same"))
        for line in difflib.unified_diff(text[0].splitlines(), text[1].splitlines(), str(one / name), str(two / name), "", "", 1, ""):
            out.line("    " + line)
    return 0
