"""Records of campaigns and of the bench, and the tables that pages make of them.

tests/records/NAME.jsonl has a line for each run: a campaign under its own name, a part of the bench as bench-PART. What is not known is left out.
  date, commit, command, host, minutes, runs, load, setting, note   of the run
  anomalies   their number
  figures     {"cycles": 1000, …}: sums, so those of several runs can be added
  rows        [{"case": …, COLUMN: VALUE, …}, …]; a value is a number, a text, or [median, least, most]

A table stands in a page between a marker and <!-- end -->; refresh() writes it again:
  <!-- newest NAME NAME … -->                a row for each file: its newest run, and the sums over all of its runs
  <!-- rows NAME NAME[TEXT|TEXT] … | COLUMN | … -->   the rows of the newest run of each file; with texts, rows whose name has one of them.
                                             A column whose name ends with " …" shows least and most, too.
"""

import datetime
import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tests/records"
TABLE = re.compile(r"(<!-- (newest|rows) (.*?) -->\n).*?<!-- end -->", re.DOTALL)
WIDE = " …"


# ---- the records


def commit():
    """The working tree's commit, with a + if files have changed."""
    def git(*arguments):
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True).stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "--", "src", "include", "sql")
    return git("rev-parse", "--short=12", "HEAD") + ("+" if changed else "")


def processor():
    found = re.search(r"^model name\s*: (.*)", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return found[1] if found else "unknown"


def host():
    return f"{len(os.sched_getaffinity(0))} × {processor()}"


def read(name):
    path = FOLDER / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def write(name, runs):
    """Replaces all runs of a file."""
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name}.jsonl").write_text("".join(json.dumps(run, ensure_ascii=False) + "\n" for run in runs))
    refresh()


def add(name, run):
    """Appends a run to its file; the pages show it."""
    write(name, [*read(name), run])


def add_campaign(name, options, commit, seconds, **fields):
    """A campaign that ended now without an anomaly. `options`: those of its command."""
    now = datetime.datetime.now(datetime.timezone.utc)
    add(name, {"date": f"{now:%Y-%m-%d}", "commit": commit, "command": f"scripts/campaign {name} {options}", "host": host(),
               "minutes": round(seconds / 60, 1), "anomalies": 0, **fields})


# ---- the tables


def numbers(value):
    return [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, (int, float))]


def decimals_of(*values):
    """As many as the one with the most has."""
    found = [one for value in values for one in numbers(value) if isinstance(one, float)]
    return max((len(repr(one).partition(".")[2]) for one in found), default=0)


def number(value, digits=0):
    return f"{value:,.{digits}f}".replace(",", "\u202f")


def cell(value, digits, wide):
    if value is None:
        return "–"
    if not isinstance(value, list):
        return number(value, digits if isinstance(value, float) else 0) if numbers(value) else str(value)
    median, least, most = (number(one, digits) for one in value)
    return f"{median} ({least} … {most})" if wide else median


def table(head, rows):
    return ["| " + " | ".join(head) + " |", "|---" * len(head) + "|", *("| " + " | ".join(row) + " |" for row in rows)]


def when(run):
    """Date, commit and host of a run, as far as they are known."""
    many = f"{run['runs']} run{'s' if run['runs'] > 1 else ''}" if "runs" in run else ""
    return ", ".join(filter(None, (run.get("date", "no date")[:10], run.get("commit", ""), many, run.get("host", "host not noted"))))


def chosen(run, texts, titles):
    """Rows that have one of the texts in their name, if there are any, and one of the columns; each cell's value with the column's decimals in this run."""
    rows = [row for row in run["rows"] if any(text in row["case"] for text in texts.split("|")) and any(title in row for title in titles[1:])]
    digits = {title: decimals_of(*(row.get(title) for row in rows)) for title in titles}
    return [[(row.get(title), digits[title]) for title in titles] for row in rows]


def captions(newest):
    """A line for each date, commit and host: of which files they are."""
    files = {}
    for name, run in newest.items():
        files.setdefault(when(run), []).append(f"`{name.removeprefix('bench-')}`")
    return [f"{', '.join(names)}: {text}." for text, names in files.items()]


def rows_table(text):
    files, *columns = text.split(" | ")
    newest = {name: (read(name)[-1], texts) for name, texts in re.findall(r"([\w-]+)(?:\[(.*?)\])?", files)}
    titles = [column.removesuffix(WIDE) for column in columns]
    rows = [row for run, texts in newest.values() for row in chosen(run, texts, titles)]
    cells = [[cell(value, digits, column != title) for (value, digits), column, title in zip(row, columns, titles)] for row in rows]
    return [*table(["" if title == "case" else title for title in titles], cells), "",
            *captions({name: run for name, (run, _) in newest.items()})]


def summed(figures):
    return ", ".join(f"{number(value)} {name}" for name, value in figures.items())


def newest_row(name):
    runs = read(name)
    sums = {}
    for run in runs:
        for figure, value in {**run["figures"], **{name: run[name] for name in ("anomalies",) if name in run}}.items():
            sums[figure] = sums.get(figure, 0) + value
    last = runs[-1]
    return [name, last.get("date", "–")[:10], last.get("commit", "–"), summed(last["figures"]), cell(last.get("anomalies"), 0, False),
            f"{len(runs)}: {summed(sums)}" if len(runs) > 1 else "1"]


def newest_table(text):
    return table(["campaign", "date", "commit", "what the newest run played", "anomalies", "all runs"], [newest_row(name) for name in text.split()])


def filled(page):
    """A page's text with its tables as the records give them."""
    makers = {"newest": newest_table, "rows": rows_table}
    return TABLE.sub(lambda found: found[1] + "\n".join([*makers[found[2]](" ".join(found[3].split())), "<!-- end -->"]), page)


def refresh():
    """Writes the tables of all pages again; returns the pages that changed."""
    changed = []
    for path in sorted((ROOT / "docs").glob("*.md")):
        text = path.read_text()
        if filled(text) != text:
            path.write_text(filled(text))
            changed.append(path.name)
    return changed


def show(run):
    """Prints each row in a line, with all of its columns."""
    for row in run["rows"]:
        columns = [f"{column} {cell(value, decimals_of(value), True)}" for column, value in row.items() if column != "case"]
        print(f"  {row['case']}: {'; '.join(columns)}", flush=True)


def main(names):
    """Shows the newest runs of these files; without names writes the pages again."""
    for name in names:
        run = read(name)[-1]
        print(f"{run['command']}, {when(run)}, {run.get('setting', {})}")
        show(run)
    for page in [] if names else refresh():
        print(f"{page}: tables written")


if __name__ == "__main__":
    main(sys.argv[1:])
