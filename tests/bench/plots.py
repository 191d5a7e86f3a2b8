"""Small SVG plots by gnuplot; none where it is not installed."""

import shutil
import subprocess

from lab import ROOT

DIRECTORY = ROOT / "docs/plots"
POINTS = 200


def _thin(points):
    step = max(1, len(points) // POINTS)
    return points[::step] + points[-1:]


COLOURS = ("#1f5fa8", "#c0561f", "#2a8c4a", "#7a4fa0")


def _draw(name, title, y_label, lines, style):
    """`lines`: a list of (title or None, points)."""
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    data = "".join(f"$data{index} << EOD\n" + "\n".join(f"{x:.3f} {y:.6g}" for x, y in points) + "\nEOD\n"
                   for index, (_, points) in enumerate(lines))
    plot = ", ".join(f"$data{index} using 1:2 with {style} lc rgb '{COLOURS[index]}'" + (f" title '{word}'" if word else " notitle")
                     for index, (word, _) in enumerate(lines))
    script = f"""set terminal svg size 640,320 font 'sans-serif,12' background '#ffffff'
set output '{DIRECTORY / (name + ".svg")}'
set title '{title}'
set xlabel 'seconds'
set ylabel '{y_label}'
set yrange [0:*]
set grid
{data}plot {plot}
"""
    subprocess.run(["gnuplot"], input=script, text=True, check=True)
    return f"{name}.svg"


def _throughput(answers, width=0.25):
    """Committed events a second, in windows."""
    windows = {}
    for at, _, events in answers:
        windows[int(at / width)] = windows.get(int(at / width), 0) + events
    last = max(windows, default=0)
    return [((index + 0.5) * width, windows.get(index, 0) / width) for index in range(last + 1)]


def load_test(run):
    """The three plots of such a report, of one run: queued events, response time, throughput."""
    if not shutil.which("gnuplot") or not run.get("answers"):
        return []
    events = run["events"]
    queued = [(at, (1 - share) * events) for at, share in _thin(run["timeline"])]
    responses = [(at, milliseconds) for at, milliseconds, _ in _thin(run["answers"])]
    return [
        (_draw("queued", "events not yet committed", "events", [(None, queued)], "lines lw 2"), "queued events over time"),
        (_draw("response", "response time of each transaction", "ms", [(None, responses)], "points pt 7 ps 0.4"), "response time"),
        (_draw("throughput", "committed events per second", "events/s", [(None, _throughput(run["answers"]))], "lines lw 2"), "throughput"),
    ]


def fairness(lines):
    """Calls begun per second by organisation."""
    if not shutil.which("gnuplot"):
        return []
    return [(_draw("fairness", "calls begun per second", "calls/s", list(lines.items()), "lines lw 2"), "calls begun by organisation")]
