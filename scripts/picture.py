"""Draws a terminal's screen, as `tmux capture-pane -e -p` prints it, as an SVG on a dark ground: text stays text.

usage: picture.py COLUMNS ROWS TITLE <screen >picture.svg
"""

import re
import sys
import unicodedata
from xml.sax.saxutils import escape

CELL, LINE, EDGE = 8.4, 18, 12
GROUND, INK = "#16181d", "#d5d8de"
COLOURS = ["#3b4048", "#ef6b73", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#d5d8de"]
BRIGHT = ["#7f848e", "#ff8b92", "#b5e08f", "#ffd98f", "#8cc8ff", "#dd9cf0", "#7fd8e2", "#ffffff"]
SEQUENCE = re.compile(r"\x1b\[([0-9;:]*)([A-Za-z])|\x1b[()][A-Z0-9]|[\x0e\x0f]")


class Style:
    """What the escape sequences have set."""

    def __init__(self):
        self.reset()

    def reset(self):
        self.ink = self.ground = None
        self.bold = self.faint = self.reverse = False

    def take(self, codes):
        all_codes = [int(code or 0) for code in re.split("[;:]", codes)]
        while all_codes:
            code = all_codes.pop(0)
            if code in (38, 48) and all_codes[:1] == [5] and len(all_codes) > 1 and all_codes[1] < 16:
                # One of the terminal's sixteen, by its number.
                colour = (COLOURS + BRIGHT)[all_codes[1]]
                self.ink, self.ground = (colour, self.ground) if code == 38 else (self.ink, colour)
                del all_codes[:2]
            elif code == 0:
                self.reset()
            elif code == 1:
                self.bold = True
            elif code == 2:
                self.faint = True
            elif code == 22:
                self.bold = self.faint = False
            elif code in (7, 27):
                self.reverse = code == 7
            elif 30 <= code <= 37:
                self.ink = COLOURS[code - 30]
            elif 90 <= code <= 97:
                self.ink = BRIGHT[code - 90]
            elif 40 <= code <= 47:
                self.ground = COLOURS[code - 40]
            elif 100 <= code <= 107:
                self.ground = BRIGHT[code - 100]
            elif code == 39:
                self.ink = None
            elif code == 49:
                self.ground = None

    def key(self):
        ink, ground = self.ink or INK, self.ground
        if self.reverse:
            ink, ground = ground or GROUND, ink
        return ink, ground, self.bold, self.faint


def width(text):
    wide = {"W": 2, "F": 2}
    return sum(0 if unicodedata.combining(c) else wide.get(unicodedata.east_asian_width(c), 1) for c in text)


def runs(line, style):
    """The pieces of one line that look alike: first column, text, look."""
    column, at = 0, 0
    for found in [*SEQUENCE.finditer(line), None]:
        text = line[at : found.start() if found else len(line)]
        if text:
            yield column, text, style.key()
            column += width(text)
        if found:
            at = found.end()
            if found.group(2) == "m":
                style.take(found.group(1))


def rows_of(screen, rows):
    """Each row of a screen as SVG."""
    style = Style()
    return ["\n".join(row_of(row, line, style)) for row, line in enumerate(screen.split("\n")[:rows])]


def row_of(row, line, style):
    top = EDGE + row * LINE
    for column, text, (ink, ground, bold, faint) in runs(line, style):
        x, length = EDGE + column * CELL, width(text) * CELL
        if ground:
            yield f'<rect x="{x:.1f}" y="{top}" width="{length:.1f}" height="{LINE}" fill="{ground}"/>'
        # Viewers fold blanks together, so each part behind two blanks gets a place of its own.
        for part in re.finditer(r"\S+(?: \S+)*", text):
            x = EDGE + (column + width(text[: part.start()])) * CELL
            length = width(part.group()) * CELL
            look = (' font-weight="bold"' if bold else "") + (' opacity="0.6"' if faint else "")
            place = f'x="{x:.1f}" y="{top + 13}" textLength="{length:.1f}" fill="{ink}"'
            yield f"<text {place}{look}>{escape(part.group())}</text>"


def svg(columns, rows, title, body, style=""):
    """The whole picture."""
    wide, high = columns * CELL + 2 * EDGE, rows * LINE + 2 * EDGE
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:.0f} {high:.0f}" width="{wide:.0f}" role="img">',
        f"<title>{escape(title)}</title>",
        *([f"<style>{style}</style>"] if style else []),
        f'<rect width="100%" height="100%" rx="8" fill="{GROUND}"/>',
        '<g font-family="ui-monospace, \'DejaVu Sans Mono\', Menlo, Consolas, monospace" font-size="14">',
        *body,
        "</g>\n</svg>",
    ])


def main():
    columns, rows, title = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    print(svg(columns, rows, title, filter(None, rows_of(sys.stdin.read(), rows))))


if __name__ == "__main__":
    main()
