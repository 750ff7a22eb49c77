"""Scenes of transport: the ways in which a document can come to a successor, with the same case in each of them."""
import os
import random
import signal
import time

import grade
from play import Play, sha256
from stage import ENDS, Trouble

STEPS = ("waiting", "instructing", "writing", "checking", "recording", "ending", "starting", "priming", "briefing", "reading")
MIB = 1024 * 1024


def padded(text, size):
    """A document of exactly that many bytes, with its own text at both ends."""
    end = "\n\n## Notes at the end\n\nThe last line of all is whole.\n"
    line = "I looked at entry %07d as well, and wrote down what I saw there.\n"
    count = 0
    parts = [text, "\n## Notes\n\n"]
    left = size - len((text + parts[1] + end).encode())
    while left > 0:
        parts.append((line % count)[:left])
        left -= len(line % count)
        count += 1
    return "".join(parts) + end


def new(play, agent):
    view = play.ends_well(play.stage.hand_off(agent, check="warn"))
    play.graded(view, play.text, "new")


def same_pane(play, agent):
    view = play.ends_well(play.stage.hand_off(agent, check="warn", successor="same_pane"))
    log = play.log_of(view["successor_id"], same_pane_as=agent)
    play.tally.count("texts", " ".join(play.text.split()) in " ".join(grade.texts(log).split()), "same pane: the document is not whole")
    play.graded(view, play.text, "same pane", same_pane_as=agent)


def running(play, agent):
    other = play.stage.create(play.slug)
    view = play.ends_well(play.stage.hand_off(agent, check="warn", successor={"agent_id": other}))
    play.tally.count("texts", view["successor_id"] == other, "running successor: another one took over")
    play.graded(view, play.text, "running successor")


def other_profile(play, agent):
    """A successor of another CLI, which runs already; and, where tasuki can, one that it starts itself."""
    other = play.stage.create(play.slug, profile="eval-other")
    view = play.ends_well(play.stage.hand_off(agent, check="warn", successor={"agent_id": other}))
    play.tally.count("texts", play.stage.view("agents", other)["profile"] == "eval-other", "other profile: it has the same")
    play.graded(view, play.text, "other profile")
    play.lay_out(play.text)
    answer = play.stage.ask(kind="handoff", agent_id=other, reason="context_limit", check="warn", profile="eval")
    if not answer["ok"]:
        if "unknown field" not in answer["error"]["message"]:
            raise Trouble("other profile: %s" % answer["error"]["message"])
        return
    view = play.ends_well(answer["result"]["handoff_id"])
    back = play.stage.view("agents", view["successor_id"])["profile"]
    play.tally.count("texts", back == "eval", "other profile: the new successor has %s" % back)
    play.graded(view, play.text, "other profile, new")


def long_texts(play, agent):
    """A skill over 64 KiB, and a document over 64 KiB that goes into a new session in the same pane."""
    play.lay_out(padded(play.text, 70 * 1024))
    view = play.ends_well(play.stage.hand_off(agent, check="warn"))
    play.graded(view, play.text, "long skill and document")
    second = view["successor_id"]
    play.lay_out(padded(play.text, 90 * 1024))
    view = play.ends_well(play.stage.hand_off(second, check="warn", successor="same_pane"))
    log = play.log_of(view["successor_id"], same_pane_as=second)
    play.tally.count("texts", "The last line of all is whole." in grade.texts(log), "long texts in the same pane: the end is missing")
    play.graded(view, play.text, "long texts in the same pane", same_pane_as=second)


def mebibyte(play, agent):
    text = padded(play.text, MIB)
    path = play.stage.home / "data" / (play.slug + ".md")
    path.write_text(text, encoding="utf-8")
    view = play.ends_well(play.stage.hand_off(agent, check="warn", author="provided", document={"path": str(path)}))
    play.tally.count("texts", (view["bytes"], view["sha256"]) == (MIB, sha256(text)), "1 MiB: recorded with %s bytes" % view["bytes"])
    play.graded(view, text, "1 MiB")


def salvage(play, agent):
    """The agent has died; what its user and it have said is all that there is."""
    began = [line for line in play.stage.agent_log(agent) if line["kind"] == "began"]
    os.kill(began[-1]["pid"], signal.SIGKILL)
    play.stage.until("the agent has ended", lambda: play.stage.view("agents", agent).get("state") in ("ended", "lost"))
    view = play.ends_well(play.stage.hand_off(agent, author="salvage", check="warn"))
    log = play.arrived(view, "salvage")
    got = grade.texts(log)
    for name in ("goal", "rule", "number"):
        play.tally.count("transport", play.case.questions[name].holds(got), "salvage/%s did not reach the successor" % name)
    play.tally.count("texts", play.case.conversation()[-1]["assistant"] in got, "salvage: the last answer is missing")


def credential(play, agent):
    """A credential that stays in the document: the file has it, and nothing else shows it, also not the text in the same pane."""
    text = play.text.replace("## Blockers", "The archive takes %s here.\n\n## Blockers" % play.case.canary)
    play.lay_out(text)
    view = play.ends_well(play.stage.hand_off(agent, check="warn"))
    play.tally.count("texts", "secrets" in [fault["check"] for fault in view["faults"]], "credential: it was not found")
    play.graded(view, text, "credential")
    second = view["successor_id"]
    play.lay_out(text.replace("Ines", "Ines herself"))
    view = play.ends_well(play.stage.hand_off(second, check="warn", successor="same_pane"))
    got = grade.texts(play.log_of(view["successor_id"], same_pane_as=second))
    play.tally.count("texts", "Ines herself" in got, "credential in the same pane: the text did not come")
    if play.case.secret in got:
        play.leaked.append("%s: the text in the same pane" % play.slug)
    play.graded(view, text, "credential in the same pane", same_pane_as=second)


def by_name():
    return {"new": new, "same pane": same_pane, "running successor": running, "long texts": long_texts, "1 MiB document": mebibyte,
            "salvage": salvage, "credential": credential, "another profile": other_profile}


def facts_of(case):
    """All but what is stale only because somebody commits meanwhile, which is for the cases."""
    return [name for name, question in case.questions.items() if question.kind != "stale"]


def play_one(stage, case, name, scene):
    slug = "scene-" + name.lower().replace(" ", "-")
    skill = None
    if name == "long texts":
        skill = padded("# Skill\n\nRead before you write.\n", 70 * 1024)
    play = Play(stage, case, slug, skill=skill)
    play.only = facts_of(case)
    agent = stage.create(slug)
    play.text = case.text("document.md")
    play.lay_out(play.text)
    scene(play, agent)
    return play


def crashes(stage, case):
    """kill -9 of the sidecar in each step that can be seen, in as few handoffs as that takes. Gives the play and the steps."""
    play = Play(stage, case, "scene-kill")
    play.only = facts_of(case)
    play.text = case.text("document.md")
    agent = stage.create(play.slug)
    seen, chance = {}, random.Random(7)
    for _ in range(3):
        missed = [step for step in STEPS if step not in seen]
        if not missed:
            break
        play.lay_out(play.text)
        stage.send(kind="agent_send", agent_id=agent, text="[[slow:0.6]] Look at something for a while.")
        stage.until("the agent is busy", lambda: stage.view("agents", agent).get("state") == "busy")
        handoff = stage.hand_off(agent, check="warn")
        view = killing(stage, handoff, missed, seen, chance)
        if view["step"] != "done":
            view = settled(play, view)
        view = play.ends_well(view["handoff_id"])
        play.graded(view, play.text, "kill -9")
        agent = view["successor_id"]
    return play, seen


def killing(stage, handoff, missed, seen, chance):
    """Kills the sidecar in each of these steps, a random moment after it was entered. Gives the view at the end."""
    path = stage.home / "view/handoffs" / (handoff + ".json")
    deadline = time.monotonic() + stage.patience
    while time.monotonic() < deadline and not stage.stopping.is_set():
        view = stage.view("handoffs", handoff)
        step = view.get("step")
        if step in ENDS:
            return view
        if step in missed and step not in seen:
            seen[step] = chance.choice((0, 0, 0.01, 0.04))
            time.sleep(seen[step])
            stage.crash()
        time.sleep(0.002)
    raise Trouble("kill -9: the handoff does not end: %s" % path.name)


def settled(play, view):
    """Answers as a person does who looks at the pane: whether the text that is in doubt has arrived."""
    error = view["error"] or {}
    name = {"instructing": "instruction", "priming": "priming", "briefing": "briefing"}.get(error.get("step"))
    verdict = (view["verdicts"].get(name) or {}) if name else {}
    if verdict.get("verdict") != "unconfirmed":
        raise Trouble("kill -9: failed in %s: %s" % (error.get("step"), error.get("message")))
    agent = view["agent_id"] if name == "instruction" else view["successor_id"]
    has_come = verdict["delivery_id"] in grade.delivery_ids(play.stage.agent_log(agent))
    play.stage.granted(kind="handoff_retry", handoff_id=view["handoff_id"], assume="delivered" if has_come else "not_delivered")
    return view
