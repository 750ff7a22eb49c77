"""What a transcript says: texts, tokens and the model, in the form of each CLI. A transcript holds one JSON object a line."""
import json
import pathlib


def lines(path):
    try:
        text = pathlib.Path(path).read_text(encoding="utf-8", errors="replace") if path else ""
    except OSError:
        return
    for line in text.splitlines():
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict):
            yield found


def texts(path):
    """The texts of answers, oldest first."""
    for line in lines(path):
        message = line.get("payload") if isinstance(line.get("payload"), dict) else line.get("message")
        if not isinstance(message, dict) or message.get("role") != "assistant":
            continue
        content = message.get("content")
        if isinstance(content, str):
            yield content
        for block in content if isinstance(content, list) else []:
            if isinstance(block, dict) and isinstance(block.get("text"), str):
                yield block["text"]


def tokens(path):
    """Tokens by how they are paid: input, output, cached (read from a cache) and written (to one)."""
    by_message, total = {}, {}
    for number, line in enumerate(lines(path)):
        payload = line.get("payload") if isinstance(line.get("payload"), dict) else {}
        if payload.get("type") == "token_count" and isinstance(payload.get("info"), dict):
            # Codex tells the sum so far; what was cached is part of the input.
            told = payload["info"].get("total_token_usage") or {}
            cached = told.get("cached_input_tokens", 0)
            total = {"input": told.get("input_tokens", 0) - cached, "cached": cached, "output": told.get("output_tokens", 0)}
        message = line.get("message")
        if isinstance(message, dict) and isinstance(message.get("usage"), dict):
            # Claude Code writes an answer in several lines with one id, each with the same numbers or higher ones.
            by_message[message.get("id") or line.get("id") or number] = message["usage"]
    if total:
        return total
    names = {"input": ("input_tokens", "input"), "output": ("output_tokens", "output"),
             "cached": ("cache_read_input_tokens", "cacheRead"), "written": ("cache_creation_input_tokens", "cacheWrite")}
    return {name: sum(int(used.get(key) or 0) for used in by_message.values() for key in keys) for name, keys in names.items()}


def model(path):
    """The model that answered last."""
    found = None
    for line in lines(path):
        for place in (line.get("message"), line.get("payload"), line):
            if isinstance(place, dict) and isinstance(place.get("model"), str) and not place["model"].startswith("<"):
                found = place["model"]
    return found
