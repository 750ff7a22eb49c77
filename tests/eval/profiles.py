"""The profiles of the evaluation's agent, as a user would write them into a home: nothing in tasuki knows this CLI."""
import json
import re
import sys

LOOKS = {"eval": ("plain", "═", "»", "~ thinking"), "eval-other": ("other", "─", r"\$", r"\* busy")}

PROFILE = r"""
title = "the evaluation's agent ({look})"

[launch]
argv = {argv}
env = {{ EVAL_PROFILE = "{name}" }}

[exit]
command = "/quit"

[new_session]
command = "/reset"

[input]
mode = "bracketed"
enter_delay = "20ms"

[ready]
calm = "100ms"
timeout = "60s"

[screen]
busy = ['^{busy}']

[screen.composer]
top = '^{line}{{3,}}$'
bottom = '^{line}{{3,}}$'
first = '^{mark}'
strip = ['^(?:{mark} ?|  )']
cursor_inside = true

[hooks]
name = "/type"
starts_at_launch = true

[[hooks.on]]
name = "prompt"
event = "prompt_submit"
text = "/text"

[[hooks.on]]
name = "stop"
event = "stop"
last_text = "/text"

"""


def write(folder, agent, demo):
    """Writes the profiles. The agent keeps its transcript as the demo agent does, so that profile's rules for it are taken."""
    transcript = re.search(r"^\[transcript\].*", demo.read_text(encoding="utf-8"), re.M | re.S).group(0)
    for name, (look, line, mark, busy) in LOOKS.items():
        argv = json.dumps([sys.executable, "-E", "-s", "-S", "-B", str(agent), look])
        text = PROFILE.format(name=name, look=look, argv=argv, line=line, mark=mark, busy=busy) + transcript
        (folder / (name + ".toml")).write_text(text, encoding="utf-8")
