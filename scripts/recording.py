"""Records what a tmux pane shows until a file appears, and draws the recording as an animated SVG: text stays text.

usage: recording.py SOCKET PANE COLUMNS ROWS TITLE STOP_FILE >recording.svg
"""

import os
import subprocess
import sys
import time

from picture import rows_of, svg

# Seconds: how often the pane is captured, the longest time for which nothing moves, the rest before it begins again.
EVERY, LONGEST, REST = 0.1, 1.5, 4.0


def record(socket, pane, stop):
    """The screens that the pane has shown, each with the time for which it was shown."""
    frames, began = [], time.monotonic()
    capture = ["tmux", "-u", "-S", socket, "capture-pane", "-e", "-p", "-t", pane]
    while True:
        ends = os.path.exists(stop) or time.monotonic() - began > 300
        screen = subprocess.run(capture, capture_output=True, text=True, check=True, timeout=30).stdout
        if not frames or frames[-1][1] != screen:
            frames.append((time.monotonic(), screen))
        if ends:
            break
        time.sleep(EVERY)
    times = [at for at, _ in frames] + [frames[-1][0] + REST]
    shown = [min(later - at, LONGEST) for at, later in zip(times, times[1:])]
    return list(zip([*shown[:-1], REST], [screen for _, screen in frames]))


def draw(frames, columns, rows, title):
    """Each row is drawn once for each time span in which it looks the same, and is visible in that span alone."""
    whole = sum(length for length, _ in frames)
    spans, now = [], 0.0
    last = [None] * rows
    for length, screen in frames:
        for row, drawn in enumerate(rows_of(screen, rows)):
            if last[row] and last[row][2] == drawn:
                last[row][1] = now + length
            else:
                last[row] = [now, now + length, drawn]
                spans.append(last[row])
        now += length
    body, style, names = [], [], {}
    for begin, end, drawn in spans:
        if not drawn:
            continue
        first, last_part = 100 * begin / whole, 100 * end / whole
        if (first, last_part) == (0, 100):
            body.append(drawn)
            continue
        key = f"{first:.2f} {last_part:.2f}"
        if key not in names:
            names[key] = f"s{len(names)}"
            steps = [f"0%,{first:.2f}%{{visibility:hidden}}"] if first else []
            steps.append(f"{first + 0.01 if first else 0:.2f}%,{last_part:.2f}%{{visibility:visible}}")
            if last_part < 100:
                steps.append(f"{last_part + 0.01:.2f}%,100%{{visibility:hidden}}")
            name = names[key]
            style.append(f"@keyframes {name}{{{''.join(steps)}}}.{name}{{animation:{name} {whole:.1f}s step-end infinite}}")
        body.append(f'<g class="{names[key]}">{drawn}</g>')
    return svg(columns, rows, title, body, "\n".join(style))


def main():
    socket, pane, columns, rows, title, stop = sys.argv[1:7]
    print(draw(record(socket, pane, stop), int(columns), int(rows), title))


if __name__ == "__main__":
    main()
