"""Each action of the page by the keyboard alone: no pointer, and no focus that a test has set."""

import json
import pathlib

from by_keys import act, at_card, begun, can, choose, known_handoffs, left, newest, opened, press, step, surely, tab_to, view
from chrome import BACKSPACE, CONTROL, DELETE, DOWN, ENTER, ESCAPE, SPACE, TAB, UP
from publishing import publishing
from scenes import accessible
from stage import check, until


def agents(stage, browser):
    """Starts an agent, sends it a text, hands it off with more options, and ends the successor."""
    stage.run("persona", "new", "ada", "--profile", "demo")
    known = {path.stem for path in (stage.home / "view/agents").glob("*.json")}
    browser.keys("1")
    browser.keys("n")
    browser.keys("ada" + TAB + str(stage.folder / "work") + ENTER)
    made = until("the agent is there", lambda: {path.stem for path in (stage.home / "view/agents").glob("*.json")} - known).pop()
    until("it is idle", lambda: view(stage, "agents", made)["state"] == "idle")
    until("its card is there", lambda: browser.has(f'#agents > li[data-id="{made}"]'))
    press(browser, "agents", made, "s")
    browser.keys("say what you see")
    browser.keys(ENTER, CONTROL)
    until("the text is sent", lambda: f"The text for ada {made[:8]}: delivered." in browser.text("#notices"))
    until("its turn is over", lambda: view(stage, "agents", made)["state"] == "idle" and not view(stage, "agents", made)["waiting_texts"])
    known = known_handoffs(stage)
    press(browser, "agents", made, "h")
    browser.keys("a fresh look" + TAB + "the tests" + TAB + ENTER + TAB + "first" + ENTER + "second")
    browser.keys(ENTER, CONTROL)
    handoff = newest(stage, known)
    until("it is done", lambda: view(stage, "handoffs", handoff)["step"] == "done")
    seen = view(stage, "handoffs", handoff)
    check((seen["reason"], seen["focus"], seen["tasks"]) == ("a fresh look", "the tests", ["first", "second"]), f"asked for otherwise: {seen}")
    successor = seen["successor_id"]
    until("the successor is shown", lambda: browser.has(f'#agents > li[data-id="{successor}"] [data-part=open]:not(:disabled)'))
    at_card(browser, "agents", "1", successor)
    browser.keys(ENTER)
    check(browser.has(f'#agents > li[data-id="{successor}"][data-open]'), "Enter opens no card")
    browser.keys("e")
    surely(browser, yes=False)
    until("nothing happens", lambda: browser.has("#sure:not([open])"))
    browser.keys("e")
    surely(browser)
    until("the agent has ended", lambda: view(stage, "agents", successor)["ended_at"])
    killed_and_forgotten(stage, browser)
    return handoff


def killed_and_forgotten(stage, browser):
    """Kills the pane of an agent, after it was tried in vain to have it no longer listed: it runs."""
    agent = stage.agent("kim")
    card = f'#agents > li[data-id="{agent}"]'
    until("its card is there", lambda: browser.has(card))
    pane = view(stage, "agents", agent)["pane"]
    opened(browser, "agents", "1", agent)
    tab_to(browser, "agents", agent, "forget")
    browser.keys(ENTER)
    surely(browser)
    until("it is refused", lambda: "process" in browser.text(f"{card} [role=alert]:not(:empty)") and "is running" in browser.text(card))
    tab_to(browser, "agents", agent, "kill")
    browser.keys(ENTER)
    surely(browser)
    until("the agent is gone", lambda: view(stage, "agents", agent)["ended_at"])
    check(not stage.has_pane(pane), "its pane is still there")


def handoffs(stage, browser):
    """Cancels, reads a document, lets it be changed, accepts it, retries, abandons, says that a text arrived, answers."""
    agent = stage.agent("otto")
    handoff = begun(stage, browser, agent, "write_never")
    step(stage, handoff, "writing")
    press(browser, "handoffs", handoff, "c")
    surely(browser)
    step(stage, handoff, "cancelled")
    until("the agent is idle", lambda: view(stage, "agents", agent)["state"] == "idle")
    handoff = begun(stage, browser, agent, "flaw=headings", "--check", "hold")
    held = f'#handoffs > li[data-id="{handoff}"] [data-part=held]:not([hidden])'
    until("it waits", lambda: browser.has(held))
    press(browser, "handoffs", handoff, "w")
    browser.keys("fill the sections" + ENTER)
    until("the agent is asked", lambda: view(stage, "handoffs", handoff)["reworks"] == 1)
    step(stage, handoff, "done")
    opened(browser, "handoffs", "2", handoff)
    reading = f'#handoffs > li[data-id="{handoff}"] [data-part=reading]'
    was = browser.has(f"{reading}[open]")
    press(browser, "handoffs", handoff, "v")
    until("the document opens or closes", lambda: browser.has(f"{reading}[open]") != was)
    press(browser, "handoffs", handoff, "f")
    until("the facts open", lambda: browser.has(f'#handoffs > li[data-id="{handoff}"] [data-part=facts][open]'))
    agent = view(stage, "handoffs", handoff)["successor_id"]
    handoff = begun(stage, browser, agent, "flaw=headings", "--check", "hold")
    until("it waits too", lambda: browser.has(f'#handoffs > li[data-id="{handoff}"] [data-part=held]:not([hidden])'))
    press(browser, "handoffs", handoff, "a")
    surely(browser)
    step(stage, handoff, "done")
    return view(stage, "handoffs", handoff)["successor_id"]


def failures(stage, browser, agent):
    """Retries, dismisses the error, abandons, and says that a text arrived."""
    handoff = begun(stage, browser, agent, "write_never")
    step(stage, handoff, "failed")
    stage.faults("")
    error = view(stage, "handoffs", handoff)["error"]["error_id"]
    until("the error is there", lambda: browser.has(f'#error-list > li[data-id="{error}"]'))
    without_a_card(browser, "4", "d")
    press(browser, "errors", error, "d")
    until("the question names it", lambda: f"document_missing ({error[:8]})" in browser.text("#sure[open] p"))
    surely(browser, yes=False)
    press(browser, "errors", error, "d")
    surely(browser)
    until("it is dismissed", lambda: not browser.has(f'#error-list > li[data-id="{error}"]'))
    at = browser.focus()
    check(at == ("error-list" if browser.has("#errors:not([hidden])") else "needs"), f"the card is dismissed, and the focus is at {at!r}")
    press(browser, "handoffs", handoff, "r")
    step(stage, handoff, "done")
    agent = view(stage, "handoffs", handoff)["successor_id"]
    agent = by_another(stage, browser, agent)
    handoff = begun(stage, browser, agent, "swallow_enter=1000")
    step(stage, handoff, "failed")
    stage.faults("")
    until("it is in doubt", lambda: browser.has(f'#handoffs > li[data-id="{handoff}"] [data-part=arrived]:not([hidden])'))
    for key in "yt":
        press(browser, "handoffs", handoff, key)
        until("the question names it", lambda: f"handoff {handoff[:8]} ({view(stage, 'agents', agent)['persona_slug']})" in browser.text("#sure[open] p"))
        surely(browser, yes=False)
    check(view(stage, "handoffs", handoff)["step"] == "failed", "a question that is answered with no does something")
    press(browser, "handoffs", handoff, "x")
    surely(browser)
    step(stage, handoff, "cancelled")


def without_a_card(browser, number, key):
    """A letter in a list where no card was chosen does nothing, and the page says why."""
    left(browser)
    browser.keys(number + key)
    check(not browser.has("#sure[open]"), f"{number} and {key} act on a card that nobody has chosen")
    until("it is said why", lambda: f"“{key}” is for a card of this list" in browser.text("#notices"))


def by_another(stage, browser, agent):
    """A failed handoff is retried with an agent that runs already; gives that one."""
    persona = view(stage, "agents", agent)["persona_slug"]
    other = stage.run("agent", "create", persona, "--cwd", str(stage.folder / "work"))["agent_id"]
    handoff = begun(stage, browser, agent, "die_at=start")
    step(stage, handoff, "failed")
    stage.faults("")
    can(browser, handoff, "retry")
    opened(browser, "handoffs", "2", handoff)
    tab_to(browser, "handoffs", handoff, "successor")
    choose(browser, other)
    browser.keys(TAB)
    press(browser, "handoffs", handoff, "r")
    step(stage, handoff, "done")
    check(view(stage, "handoffs", handoff)["successor_id"] == other, "another one has taken over")
    return other


def answers(stage, browser):
    """Answers a successor's question, and continues without an acknowledgement."""
    agent = stage.agent("ines")
    handoff = begun(stage, browser, agent, "ack_questions", "--urgency", "immediate")
    until("it asks", lambda: browser.has(f'#handoffs > li[data-id="{handoff}"] [data-part=answers]:not([hidden]) input'))
    press(browser, "handoffs", handoff, "q")
    browser.keys("Yes, on the branch main" + ENTER)
    step(stage, handoff, "done")
    check("on the branch main" in json.dumps(view(stage, "handoffs", handoff)["ack"]["answers"]), "answered otherwise")
    agent = view(stage, "handoffs", handoff)["successor_id"]
    stage.faults("")
    handoff = written_by_hand(stage, browser, agent)
    agent = view(stage, "handoffs", handoff)["successor_id"]
    handoff = begun(stage, browser, agent, "ack_never", "--urgency", "immediate")
    until("it is waited for", lambda: browser.has(f'#handoffs > li[data-id="{handoff}"] [data-part=override]:not([hidden])'))
    at_card(browser, "handoffs", "2", handoff)
    for _ in range(20):
        browser.keys(TAB)
        if browser.focus() == f"handoffs {handoff} override":
            break
    check(browser.focus() == f"handoffs {handoff} override", f"Tab does not reach the field: {browser.focus()}")
    browser.keys("I have seen that it works" + ENTER)
    step(stage, handoff, "done")
    stage.faults("")


def written_by_hand(stage, browser, agent):
    """A handoff whose document the person at the keyboard writes."""
    until("it can be handed off", lambda: browser.has(f'#agents > li[data-id="{agent}"] [data-part=open]:not(:disabled)'))
    known = known_handoffs(stage)
    press(browser, "agents", agent, "h")
    browser.keys("I know it better" + TAB * 2 + ENTER + TAB * 3 + "Sew the red sash; the pattern is in sash.md.")
    browser.keys(ENTER, CONTROL)
    handoff = newest(stage, known)
    step(stage, handoff, "done")
    seen = view(stage, "handoffs", handoff)
    check(seen["author"] == "provided" and "red sash" in pathlib.Path(seen["file_path"]).read_text(), f"written otherwise: {seen}")
    return handoff


def work(stage, browser):
    """Creates an item, claims it, comments, completes it, undoes that, gives it back, claims and escalates it."""
    # An agent that is told of the item would claim it before the person does.
    stage.faults("work=ignore")
    items = lambda: {path.stem for path in (stage.home / "view/work").glob("*.json")}
    known = items()
    left(browser)
    browser.keys("3")
    browser.keys("n")
    browser.keys("Sew a red sash" + TAB + "task" + TAB + "In full.")
    browser.keys(ENTER, CONTROL)
    item = until("the item is made", lambda: items() - known).pop()
    until("its card is there", lambda: browser.has(f'#work-ready > li[data-id="{item}"]'))
    status = lambda name: until(f"it is {name}", lambda: view(stage, "work", item)["status"] == name and browser.has(f'#work-{name} > li[data-id="{item}"]'))
    act(browser, item, "l", ENTER)
    status("claimed")
    check(view(stage, "work", item)["claimed_by"] == "human", "claimed for another one")
    act(browser, item, "m", "See the notes of Monday.")
    until("the comment is there", lambda: view(stage, "work", item)["comments"])
    act(browser, item, "o", None)
    browser.keys(ENTER, CONTROL)
    until("it is done", lambda: view(stage, "work", item)["status"] == "done")
    left(browser)
    # Done items are shown on demand.
    browser.keys("3")
    browser.keys(TAB + TAB + SPACE)
    status("done")
    act(browser, item, "b", "the wrong colour")
    status("claimed")
    act(browser, item, "u", "not for me")
    status("ready")
    act(browser, item, "l", ENTER)
    status("claimed")
    act(browser, item, "e", "no access")
    status("escalated")
    until("the card says why", lambda: "no access" in browser.text(f'#work-escalated > li[data-id="{item}"] [data-part=fields]'))
    children(stage, browser)
    return item


def made(stage, browser, title, kind):
    """A new item, by the command line."""
    item = stage.run("work", "create", kind, title)["item_id"]
    until("its card is there", lambda: browser.has(f'#work-ready > li[data-id="{item}"]'))
    return item


def claimed_for(stage, browser, item, agent):
    """Claims an item for an agent, and not for the person."""
    press(browser, "work", item, "l")
    choose(browser, agent)
    browser.keys(TAB + ENTER)
    until("it is claimed", lambda: view(stage, "work", item)["status"] == "claimed")
    check(view(stage, "work", item)["claimed_by"] == agent, f"claimed otherwise: {view(stage, 'work', item)}")


def children(stage, browser):
    """An agent's item is completed with one good child and a bad one; the bad one is made again, mended."""
    agent = stage.agent("sue", "scrum_master")
    item = made(stage, browser, "Write the plan", "prd")
    claimed_for(stage, browser, item, agent)
    press(browser, "work", item, "o")
    good, bad = {"type": "story", "title": "Good"}, {"type": "nonsense", "title": "Bad"}
    browser.keys((BACKSPACE + DELETE) * 40)
    browser.keys(json.dumps({"completed": True, "stories": [1]}))
    browser.keys(TAB + ENTER + TAB + json.dumps([good, bad]) + TAB + SPACE)
    browser.keys(ENTER, CONTROL)
    until("a child has failed", lambda: view(stage, "work", item)["failed_children"])
    press(browser, "work", item, "r")
    browser.keys(json.dumps([bad | {"type": "story"}]))
    browser.keys(ENTER, CONTROL)
    until("both children are there", lambda: len(view(stage, "work", item)["children"]) == 2 and not view(stage, "work", item)["failed_children"])


def around(stage, browser, url, handoff, item, axe):
    """Help, search, filters and links."""
    # The dialog of the scene before closes when its answer comes, and takes every key until then.
    until("no dialog is open", lambda: not browser.has("dialog[open]"))
    browser.keys("1?")
    until("the help is shown", lambda: browser.has("#keys[open]"))
    accessible(browser, axe, "the help")
    browser.keys(ESCAPE)
    until("the help is closed", lambda: browser.has("#keys:not([open])"))
    browser.keys("?" + SPACE + ESCAPE)
    at = browser.focus()
    browser.keys("2")
    check(browser.focus() == at, "keys that are switched off do something")
    browser.click("#keys-open")
    browser.keys(SPACE + ESCAPE)
    browser.keys("1")
    check(browser.focus() == "agents-section", "keys that are on again do nothing")
    browser.keys("/")
    browser.keys("red sash")
    until("others are hidden", lambda: not browser.has("#handoffs > li") and browser.has(f'#work-escalated > li[data-id="{item}"]'))
    check("1 work item" in browser.text("#filter-says"), browser.text("#filter-says"))
    browser.keys(ESCAPE)
    until("all are back", lambda: browser.has(f'#handoffs > li[data-id="{handoff}"]'))
    browser.keys("/" + TAB + "o")
    until("only this persona's", lambda: browser.js("return [...document.querySelectorAll('#agents .name')].every((e) => e.textContent === 'otto')"))
    browser.keys(UP * 12 + TAB * 3)
    until("all are back", lambda: browser.has(f'#handoffs > li[data-id="{handoff}"]'))
    at_card(browser, "handoffs", "2", handoff)
    before = browser.focus()
    browser.keys(UP + DOWN)
    check(browser.focus() == before, f"the arrow keys lead to {browser.focus()}")
    browser.open("about:blank")
    browser.open(f"{url}#/handoffs/{handoff}")
    until("the link opens its card", lambda: browser.focus() == f"handoffs {handoff} name" and browser.has(f'#handoffs > li[data-id="{handoff}"][data-open]'))
    browser.open("about:blank")
    browser.open(f"{url}#/work/{item[:8]}")
    until("the beginning of an id is enough", lambda: browser.focus() == f"work {item} name")
    accessible(browser, axe, "the page with open cards")
    for broken in ("%", "%25"):
        browser.open("about:blank")
        browser.open(f"{url}#/agents/{broken}")
        until("an address that is broken leads nowhere", lambda: "There is no agent %." in browser.text("#notices"), 20)
        until("the page is live all the same", lambda: browser.text("#link") == "live")


def by_keyboard(stage, browser, url, axe):
    stage.faults("")
    handoff = agents(stage, browser)
    agent = handoffs(stage, browser)
    failures(stage, browser, agent)
    answers(stage, browser)
    publishing(stage, browser)
    item = work(stage, browser)
    around(stage, browser, url, handoff, item, axe)
    print("browser: each action by the keyboard alone", flush=True)
