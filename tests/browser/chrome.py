"""One window of headless Chromium, by chromedriver's own WebDriver protocol."""

import base64
import json
import os
import re
import subprocess
import urllib.error
import urllib.request

from stage import PATIENCE, until

ENTER, TAB, ESCAPE, CONTROL, HOME, DOWN, UP, SPACE = "\ue007", "\ue004", "\ue00c", "\ue009", "\ue011", "\ue015", "\ue013", " "
BACKSPACE, DELETE = "\ue003", "\ue017"


class Browser:
    """One window of headless Chromium."""

    def __init__(self, chromedriver, chromium, folder):
        self.driver = subprocess.Popen(
            [chromedriver, "--port=0"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env=os.environ | {"TMPDIR": str(folder)},
        )
        for line in self.driver.stdout:
            if port := re.search(rb"started successfully on port (\d+)", line):
                break
        self.base = f"http://127.0.0.1:{int(port[1])}"
        self.session = ""
        options = [
            "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
            "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
            "--window-size=1100,900", f"--user-data-dir={folder / 'chromium'}",
        ]
        chrome = {"binary": chromium, "args": options}
        wanted = {"goog:chromeOptions": chrome, "goog:loggingPrefs": {"browser": "ALL"}}
        made = self.ask("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self.session = f"/session/{made['sessionId']}"

    def ask(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        url = self.base + self.session + path if self.session else self.base + path
        request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(json.load(error)["value"]) from error

    def open(self, url):
        self.ask("POST", "/url", {"url": url})

    def js(self, script, *args):
        return self.ask("POST", "/execute/sync", {"script": script, "args": list(args)})

    def cdp(self, command, **params):
        return self.ask("POST", "/goog/cdp/execute", {"cmd": command, "params": params})

    def find(self, css):
        (key, value), *_ = self.ask("POST", "/element", {"using": "css selector", "value": css}).items()
        return f"/element/{value}"

    def click(self, css):
        self.ask("POST", f"{self.find(css)}/click", {})

    def type(self, css, text):
        self.ask("POST", f"{self.find(css)}/value", {"text": text})

    def keys(self, text, held=None):
        """Presses these keys one after the other, wherever the focus is; `held` stays down meanwhile."""
        around = lambda kind: [{"type": kind, "value": held}] if held else []
        strokes = [{"type": kind, "value": letter} for letter in text for kind in ("keyDown", "keyUp")]
        keyboard = {"type": "key", "id": "keyboard", "actions": around("keyDown") + strokes + around("keyUp")}
        self.ask("POST", "/actions", {"actions": [keyboard]})

    def focus(self):
        """What has the focus, in a few words."""
        return self.js(
            "const e = document.activeElement; const card = e.closest('li.card');"
            "return [card ? `${card.dataset.kind} ${card.dataset.id}` : '', e.id || e.name || e.dataset.part || e.tagName].join(' ').trim()"
        )

    def wide(self, width, height=900):
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def scheme(self, name):
        features = [{"name": "prefers-color-scheme", "value": name}] if name else []
        self.cdp("Emulation.setEmulatedMedia", features=features)

    def enter(self, url, token, path=""):
        """Opens the page and gives it the token."""
        self.open("about:blank")
        self.open(f"{url}{path}")
        until("the login or the page", lambda: self.has("#login:not([hidden]), #main:not([hidden])"))
        if self.has("#login:not([hidden])"):
            self.type("#token", token)
            self.click("#login button")
        until("the page is live", lambda: self.has("#main:not([hidden])"))

    def has(self, css):
        return self.js("return document.querySelector(arguments[0]) !== null", css)

    def text(self, css):
        """The text that an element shows; also if it is outside of the window, where the browser lays out nothing."""
        look = "const e = document.querySelector(arguments[0]); return e && (e.innerText || (e.checkVisibility() ? e.textContent : ''))"
        return self.js(look, css) or ""

    def picture(self, path):
        path.write_bytes(base64.b64decode(self.ask("GET", "/screenshot")))

    def close(self):
        try:
            if self.session:
                self.ask("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait(20)
