"""Small SVG plots by gnuplot; none where it is not installed."""

import re
import shutil
import subprocess

from support.records import ROOT

DIRECTORY = ROOT / "docs/plots"
POINTS = 150  # of a line, at most
COLOURS = ("#1f5fa8", "#c0561f", "#2a8c4a", "#7a4fa0")


def thin(points):
    """The lowest and the highest point of each stretch, and the ends: peaks stay."""
    stretches = POINTS // 2 - 1
    if len(points) <= POINTS:
        return points
    kept = [points[0]]
    for number in range(stretches):
        stretch = points[len(points) * number // stretches:len(points) * (number + 1) // stretches]
        lowest, highest = min(stretch, key=lambda point: point[1]), max(stretch, key=lambda point: point[1])
        kept += sorted({lowest, highest} - {points[0], points[-1]})
    return [*kept, points[-1]]


def tidy(picture):
    """gnuplot's SVG with each group in a line, without empty groups, defaults, and symbols that nothing uses."""
    picture = re.sub(r"<defs>.*?</defs>\n", "", picture, flags=re.DOTALL)
    picture = picture.replace(' stroke-linecap="butt" stroke-linejoin="miter"', "")
    picture = re.sub(r"\n\t\t(?=[ML]\d)", " ", picture)
    while (smaller := re.sub(r"<g [^>]*>\s*</g>\n", "", picture)) != picture:
        picture = smaller
    return re.sub(r"\s*\n\s*(?=<path|<text|</g>|\n|<g transform)", "", picture)


def _run(name, size, script, ends=""):
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    path = DIRECTORY / f"{name}.svg"
    script = f"set terminal svg size {size} {ends} font 'sans-serif,12' background '#ffffff'\nset output '{path}'\nset yrange [0:*]\nset grid\n{script}"
    subprocess.run(["gnuplot"], input=script, text=True, check=True)
    path.write_text(tidy(path.read_text()))


def _data(name, points):
    return f"${name} << EOD\n" + "\n".join("" if point is None else f"{point[0]:.4f} {point[1]:.6g}" for point in points) + "\nEOD\n"


def _plot(names, lines, style):
    return "plot " + ", ".join(f"${name} using 1:2 with {style} lc rgb '{COLOURS[index]}'" + (f" title '{word}'" if word else " notitle")
                               for index, (name, (word, _)) in enumerate(zip(names, lines))) + "\n"


def _draw(name, title, y_label, lines, style="lines lw 2", ends=""):
    """`lines`: a list of (title or None, points). `ends`: rounded, or as gnuplot has them."""
    names = [f"data{index}" for index in range(len(lines))]
    data = "".join(_data(*pair) for pair in zip(names, (points for _, points in lines)))
    _run(name, "640,320", f"set title '{title}'\nset xlabel 'seconds'\nset ylabel '{y_label}'\n{data}{_plot(names, lines, style)}", ends)


def _draw_panels(name, panels):
    """One picture of panels in two columns, minutes below each. `panels`: (title, label, lines as in _draw)."""
    rows, data, plots = (len(panels) + 1) // 2, "", ""
    for index, (title, y_label, lines) in enumerate(panels):
        names = [f"data{index}_{line}" for line in range(len(lines))]
        data += "".join(_data(*pair) for pair in zip(names, (thin(points) for _, points in lines)))
        plots += f"set title '{title}'\nset ylabel '{y_label}'\n" + _plot(names, lines, "lines lw 2")
    _run(name, f"900,{260 * rows}", f"set xlabel 'minutes'\nset key bottom right\n{data}set multiplot layout {rows},2\n{plots}unset multiplot\n")


def _dots(points):
    """Each point as a line too short to be seen as one: with round ends it is a dot, and all dots are one path."""
    length = max((x for x, _ in points), default=0) / 20_000
    return [place for x, y in points for place in ((x, y), (x + length, y), None)]


def _throughput(answers, width=0.25):
    """Committed events a second, in windows."""
    windows = {}
    for at, _, events in answers:
        windows[int(at / width)] = windows.get(int(at / width), 0) + events
    last = max(windows, default=0)
    return [((index + 0.5) * width, windows.get(index, 0) / width) for index in range(last + 1)]


def load_test(run):
    """The three plots of one run: queued events, response time, throughput."""
    if not shutil.which("gnuplot") or not run.get("answers"):
        return
    queued = thin([(at, (1 - share) * run["events"]) for at, share in run["timeline"]])
    responses = thin([(at, milliseconds) for at, milliseconds, _ in run["answers"]])
    _draw("queued", "events not yet committed", "events", [(None, queued)])
    _draw("response", "response time of each transaction", "ms", [(None, _dots(responses))], "lines lw 4", "rounded")
    _draw("throughput", "committed events per second", "events/s", [(None, thin(_throughput(run["answers"])))])


def fairness(lines):
    """Calls begun per second by organisation."""
    if shutil.which("gnuplot"):
        _draw("fairness", "calls begun per second", "calls/s", [(name, thin(points)) for name, points in lines.items()])


def soak(samples):
    """Figures that may grow in an hour."""
    if not shutil.which("gnuplot"):
        return

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
    _draw_panels("soak", panels)
