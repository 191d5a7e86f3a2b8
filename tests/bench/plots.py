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


def _panel(index, title, y_label, lines):
    data = "".join(f"$data{index}_{line} << EOD\n" + "\n".join(f"{x:.3f} {y:.6g}" for x, y in points) + "\nEOD\n"
                   for line, (_, points) in enumerate(lines))
    plot = ", ".join(f"$data{index}_{line} using 1:2 with lines lw 2 lc rgb '{COLOURS[line]}'" + (f" title '{word}'" if word else " notitle")
                     for line, (word, _) in enumerate(lines))
    return data, f"set title '{title}'\nset ylabel '{y_label}'\nplot {plot}\n"


def _draw_panels(name, panels):
    """One picture of panels in two columns, minutes below each. `panels`: (title, label, lines as in _draw)."""
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    rows = (len(panels) + 1) // 2
    made = [_panel(index, *panel) for index, panel in enumerate(panels)]
    script = f"""set terminal svg size 900,{260 * rows} font 'sans-serif,11' background '#ffffff'
set output '{DIRECTORY / (name + ".svg")}'
set xlabel 'minutes'
set yrange [0:*]
set grid
set key bottom right
{''.join(data for data, _ in made)}set multiplot layout {rows},2
{''.join(plot for _, plot in made)}unset multiplot
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


def soak(samples):
    """Figures that may grow in an hour."""
    if not shutil.which("gnuplot"):
        return []

    def line(value):
        return [(sample["at"] / 60, value(sample)) for sample in samples]

    def inbox(key, scale=1.0):
        return line(lambda sample: sample["tables"].get("message_inbox", {}).get(key, 0) / scale)

    def others(key, scale=1.0):
        return line(lambda sample: sum(table[key] for name, table in sample["tables"].items() if name != "message_inbox") / scale)

    others_size = [(x, table + index) for (x, table), (_, index) in zip(others("table", 1 << 20), others("index", 1 << 20))]
    wal = [(b["at"] / 60, (b["wal"] - a["wal"]) / (b["at"] - a["at"]) / 1e6) for a, b in zip(samples, samples[1:])]
    panels = [("memory of receiptd", "MiB", [("VmRSS", line(lambda s: s["rss_mib"])), ("peak", line(lambda s: s["peak_rss_mib"]))]),
              ("file descriptors and threads of receiptd", "number", [("descriptors", line(lambda s: s["fds"])),
                                                                       ("threads", line(lambda s: s["threads"]))]),
              ("size of the inbox and of all other tables", "MiB", [("inbox", inbox("table", 1 << 20)), ("its indexes", inbox("index", 1 << 20)),
                                                                ("other tables with indexes", others_size)]),
              ("dead rows (n_dead_tup)", "thousands", [("inbox", inbox("dead", 1e3)), ("other tables", others("dead", 1e3))]),
              ("WAL", "MB/s", [(None, wal)]),
              ("receipts sent, not yet committed", "receipts", [(None, line(lambda s: s["lag"]))])]
    return [(_draw_panels("soak", panels), "memory, descriptors, tables, dead rows, WAL and lag over the hour")]
