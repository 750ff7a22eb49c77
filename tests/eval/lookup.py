"""Finds an answer in texts, as an agent does that reads and does not think: by an expression, and with what stands beside it."""
import re

UNVERIFIED = re.compile(r"\bUNVERIFIED\b")
NOT_KNOWN = {"answer": "not known", "status": "not known"}


def answer(lookup, read):
    """The answer to one question, out of `read`: pairs of a source and its text.

    `find` is an expression; its first group, or else all of it, is the answer. `in` names the sources, in the order in which they
    are asked. `against` is another expression, for tasuki's own facts: if they have another value, the document's is stale.
    `denied_by` is one that is in facts or briefing only if the document is no longer right.
    """
    if "find" not in lookup:
        return dict(NOT_KNOWN)
    found = first(lookup["find"], read, lookup.get("in", ["document", "facts", "briefing"]))
    if not found:
        return dict(NOT_KNOWN)
    value, source, context = found
    result = {"answer": value, "status": "unverified" if UNVERIFIED.search(context) else "stated", "source": source}
    seen = [(source, text) for source, text in read if source in ("facts", "briefing")]
    if lookup.get("against"):
        now = first(lookup["against"], seen, ["facts", "briefing"])
        if now and not now[0].startswith(value):
            result.update(status="stale", now=now[0])
    if lookup.get("denied_by"):
        denied = first(lookup["denied_by"], seen, ["briefing", "facts"])
        if denied:
            result.update(status="stale", now=denied[0])
    return result


def first(expression, read, sources):
    """The first place where an expression fits, by source: the value, the source, and the item of a list that it stands in."""
    pattern = re.compile(expression, re.M)
    for wanted in sources:
        for source, text in read:
            match = pattern.search(text) if source == wanted else None
            if match:
                value = match.group(1) if pattern.groups else match.group(0)
                return (value or "").strip(), source, item(text, match.start(), match.end())
    return None


def item(text, start, end):
    """The paragraph or list item around a place."""
    begin = max(text.rfind("\n\n", 0, start), text.rfind("\n- ", 0, start + 1), text.rfind("\n* ", 0, start + 1))
    stops = [at for at in (text.find("\n\n", end), text.find("\n- ", end), text.find("\n* ", end)) if at >= 0]
    return text[max(begin, 0):min(stops) if stops else len(text)]
