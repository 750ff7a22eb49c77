"""What is printed: a progress line while it runs, and a table at the end. Colour only on a terminal."""
import os

NAMES = (("extraction", "facts that the author wrote"), ("transport", "facts that tasuki brought"),
         ("use", "facts that were used rightly"),
         ("texts", "texts and documents, once and whole"), ("unverified", "beliefs passed on as unverified"),
         ("stale", "stale claims recognised"), ("abstention", "what was never said: \"not known\""), ("repaired", "faults repaired by the author"),
         ("defects", "planted defects caught"))


class Out:
    def __init__(self, stdout, stderr):
        self.stdout, self.stderr = stdout, stderr
        self.is_terminal = stderr.isatty()
        self.has_colour = stdout.isatty() and not os.environ.get("NO_COLOR")

    def progress(self, text):
        """One line that is written over on a terminal, and nothing else elsewhere."""
        if self.is_terminal:
            self.stderr.write("\r\x1b[K" + text[:100])
            self.stderr.flush()

    def ends(self):
        if self.is_terminal:
            self.stderr.write("\r\x1b[K")

    def line(self, text=""):
        self.stdout.write(text + "\n")

    def verdict(self, is_good, text):
        if self.has_colour:
            text = "\x1b[%dm%s\x1b[0m" % (32 if is_good else 31, text)
        return text

    def row(self, name, value, is_good=True):
        self.line("  %-42s %s" % (name, self.verdict(is_good, value)))


def of(counts, name):
    one = counts.get(name)
    return one and "%d of %d" % (one["right"], one["of"])


def offline(result, out):
    out.ends()
    counts, alarms = result["counts"], result["false_alarms"]
    out.line("handoff-eval, scripted agent: %d cases, %d scenes, %.0f s" % (len(result["cases"]), len(result["scenes"]), result["seconds"]))
    for name, about in NAMES:
        if name in counts:
            out.row(about, of(counts, name), counts[name]["right"] == counts[name]["of"])
    if result["killed_in"]:
        out.row("kill -9 of the sidecar in", ", ".join(result["killed_in"]))
    if alarms["documents"]:
        out.row("false alarms on good documents", "%d of %d (%.1f %%), %d warnings" % (
            len(alarms["of"]), alarms["documents"], 100 * alarms["share"], len(alarms["warnings"])), result["targets"]["false alarms"])
    out.row("places with a credential", str(len(result["leaks"])), not result["leaks"])
    out.row("texts that came twice", str(result["twice"]), not result["twice"])
    for title, lines in (("did not end", result["failed"]), ("wrong", result["wrong"]), ("credentials", result["leaks"])):
        for line in lines[:20]:
            out.line("  %s: %s" % (title, line))
    for alarm in alarms["of"][:20]:
        out.line("  false alarm: %s: %s" % (alarm["document"], "; ".join(alarm["faults"])))
    missed = [name for name, is_met in result["targets"].items() if not is_met]
    out.line(out.verdict(result["met"], "all targets are met" if result["met"] else "not met: " + ", ".join(missed)))


def real(result, out):
    out.ends()
    out.line("handoff-eval, %s to %s: %d cases, %.2f USD" % (
        result["profile"], result["successor_profile"], len(result["cases"]), result["cost"]))
    out.line("  %-14s %7s %10s %12s %7s %6s %9s %8s %6s" % (
        "arm", "right", "recovered", "interval", "trust", "leaks", "tokens", "first s", "p"))
    for arm in result["arms"]:
        share = lambda value: "-" if value is None else "%.0f %%" % (100 * value)
        interval = "-" if not arm["interval"] else "%.0f to %.0f" % tuple(100 * end for end in arm["interval"])
        out.line("  %-14s %7s %10s %12s %7s %6d %9d %8s %6s" % (
            arm["name"], share(arm["right"]), share(arm["recovered"]), interval, share(arm["over_trust"]), arm["leaks"], arm["tokens"],
            "-" if arm["first_edit"] is None else "%.0f" % arm["first_edit"], "-" if arm["p"] is None else "%.3f" % arm["p"]))
    for line in result["failed"][:20]:
        out.line("  did not end: %s" % line)
    for line in result["notes"]:
        out.line("  " + line)
