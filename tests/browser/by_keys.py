"""How the scenes of the keyboard find their way on the page."""

import json

from chrome import CONTROL, DOWN, ENTER, HOME, TAB
from stage import until

MOST_TABS = 60
NUMBERS = {"agents": "1", "handoffs": "2", "work": "3", "errors": "4"}


def view(stage, kind, one):
    return json.loads((stage.home / f"view/{kind}/{one}.json").read_text())


def newest(stage, known):
    """The handoff that is not among the known ones."""
    found = until("the handoff has begun", lambda: [one for one in stage.handoffs() if one["handoff_id"] not in known])
    return found[0]["handoff_id"]


def known_handoffs(stage):
    return {one["handoff_id"] for one in stage.handoffs()}


def left(browser):
    """A form that was sent closes when the answer has come; until then, a key is a letter in it."""
    until("the form is closed", lambda: not browser.js("return document.activeElement.matches('input:not([type=checkbox]), textarea, select')"))


def at_card(browser, kind, number, one):
    """Goes to the list by its number, and to a card of it with j."""
    left(browser)
    browser.keys(number + "j" + HOME)
    for _ in range(60):
        if browser.focus().startswith(f"{kind} {one} "):
            return
        browser.keys("j")
    raise AssertionError(f"j does not reach {kind} {one}; the focus is at {browser.focus()}")


def begun(stage, browser, agent, faults, *more):
    """A handoff whose agent behaves so, begun by the command line."""
    stage.faults(faults)
    known = known_handoffs(stage)
    stage.run("handoff", agent, "--reason", "the night is long", *more)
    handoff = newest(stage, known)
    until("its card is there", lambda: browser.has(f'#handoffs > li[data-id="{handoff}"]'))
    return handoff


def step(stage, handoff, name):
    until(f"it is {name}", lambda: view(stage, "handoffs", handoff)["step"] == name)


def press(browser, kind, one, key):
    """Presses a key of a card, as soon as the page offers what it does: the file of a view changes before the page does."""
    at_card(browser, kind, NUMBERS[kind], one)
    holders = f'[...document.querySelectorAll(`#{kind}-${{CSS.escape(arguments[0])}} [data-key="{key}"]`)]'
    offered = lambda: browser.js(f"return {holders}.some((e) => e.checkVisibility() && !e.disabled)", one)
    if not offered():
        opened(browser, kind, NUMBERS[kind], one)
        until(f"{key} is possible", offered)
    browser.keys(key)


def act(browser, item, key, text):
    """The form of an item that this key opens, filled with this text and sent."""
    press(browser, "work", item, key)
    if text == ENTER:
        # A list to choose from has its first entry chosen already; the next stop is the button.
        browser.keys(TAB + ENTER)
    elif text is not None:
        browser.keys(text)
        browser.keys(ENTER, CONTROL)


def tab_to(browser, kind, one, name):
    """Goes on by Tab from a card to something in it."""
    wanted = f"{kind} {one} {name}"
    for _ in range(2):
        for _ in range(MOST_TABS):
            if browser.focus() == wanted:
                return
            browser.keys(TAB)
        # It may be before what has the focus.
        at_card(browser, kind, NUMBERS[kind], one)
    raise AssertionError(f"Tab does not reach {wanted}; the focus is at {browser.focus()}")


def opened(browser, kind, number, one):
    """Goes to a card and opens it."""
    at_card(browser, kind, number, one)
    if not browser.has(f'#{kind}-{one}[data-open]'):
        browser.keys(ENTER)
    until("the card is open", lambda: browser.has(f'#{kind}-{one}[data-open]'))


def surely(browser, yes=True):
    """Answers the question whether it is to be done."""
    until("it asks first", lambda: browser.has("#sure[open]"))
    browser.keys("y" if yes else "n")


def can(browser, one, name):
    """Waits until the page offers this for a card: the file of a view changes before the page does."""
    until(f"{name} is possible", lambda: browser.has(f'li[data-id="{one}"] [data-part={name}]:not([hidden])'))


def choose(browser, value):
    """Goes down a list of choices to this one."""
    chosen = lambda: browser.js("return document.activeElement.value")
    for _ in range(MOST_TABS):
        if chosen() == value:
            return
        browser.keys(DOWN)
    raise AssertionError(f"the arrow keys do not reach {value}; {chosen()!r} is chosen")
