#!/usr/bin/env python3
"""Sums up gcov's counts: lines and functions per folder, error branches that no test has reached.

usage: coverage.py BUILD (scripts/coverage calls it)

An unreached line counts as unreached whatever the reason; one without a reason in tests/coverage/unreached.txt is listed by itself.
"""
import collections
import gzip
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
REASONS = ROOT / "tests/coverage/unreached.txt"
CORE_FUNCTIONS, CORE_LINES, ALL_LINES = 100.0, 95.0, 90.0

File = collections.namedtuple("File", "lines functions")  # {line: (count, function)}, {name: count}


def gcov(build):
    """{source: File} over all objects of src/."""
    work = build / "gcov"
    work.mkdir(exist_ok=True)
    for old in work.glob("*.gz"):
        old.unlink()
    data = [str(path.resolve()) for path in (build / "obj").rglob("*.gcda") if "/obj/tests/" not in str(path)]
    subprocess.run(["gcov", "--json-format", "--hash-filenames", "--preserve-paths", *data], cwd=work, check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    files = {}
    for path in work.glob("*.gcov.json.gz"):
        with gzip.open(path) as text:
            report = json.load(text)
        for part in report["files"]:
            name = part["file"]
            if not name.startswith("src/") or not name.endswith(".c"):
                continue
            file = files.setdefault(name, File({}, {}))
            for line in part["lines"]:
                count, function = file.lines.get(line["line_number"], (0, ""))
                file.lines[line["line_number"]] = (count + line["count"], line.get("function_name", function))
            for function in part["functions"]:
                name_of = function["name"]
                file.functions[name_of] = file.functions.get(name_of, 0) + function["execution_count"]
    for source in ROOT.glob("src/**/*.c"):  # functions that no program was linked with
        if str(source.relative_to(ROOT)) not in files:
            print(f"coverage: nothing was counted for {source.relative_to(ROOT)}", file=sys.stderr)
    return files


def share(part, whole):
    return 100.0 * part / whole if whole else 100.0


def sums(files, prefix):
    chosen = [file for name, file in files.items() if name.startswith(prefix)]
    lines = [count for file in chosen for count, _ in file.lines.values()]
    functions = [count for file in chosen for count in file.functions.values()]
    return sum(count > 0 for count in lines), len(lines), sum(count > 0 for count in functions), len(functions)


def read_reasons():
    """{place: reason}: a reason on a line of its own, its places below it, indented."""
    reasons, reason = {}, ""
    for line in REASONS.read_text().splitlines() if REASONS.exists() else []:
        if line.startswith(" "):
            reasons[line.strip()] = reason
        elif line and not line.startswith("#"):
            reason = line.rstrip(":")
    return reasons


def runs(numbers):
    """[(first, last)] of numbers that follow each other."""
    result = []
    for number in numbers:
        if result and number == result[-1][1] + 1:
            result[-1][1] = number
        else:
            result.append([number, number])
    return result


def unreached(files):
    """{file:function: [(first line, last line, text of the first)]}"""
    places = collections.OrderedDict()
    for name in sorted(files):
        text = (ROOT / name).read_text().splitlines()
        by_function = collections.defaultdict(list)
        for number, (count, function) in sorted(files[name].lines.items()):
            if count == 0:
                by_function[function].append(number)
        for function, numbers in by_function.items():
            places[f"{name}:{function}"] = [(first, last, text[first - 1].strip() if first <= len(text) else "")
                                            for first, last in runs(numbers)]
    return places


def main():
    build = ROOT / sys.argv[1]
    files = gcov(build)
    good = True
    print(f"{'room':16} {'lines':>16} {'functions':>18}")
    for room in ("base", "core", "kafka", "postgres", "app", ""):
        prefix = f"src/{room}/" if room else "src/"
        lines, all_lines, functions, all_functions = sums(files, prefix)
        if not all_lines:
            continue
        print(f"{prefix:16} {lines:5} of {all_lines:5} {share(lines, all_lines):5.1f} %"
              f" {functions:4} of {all_functions:4} {share(functions, all_functions):5.1f} %")
        if room == "core":
            good &= share(functions, all_functions) >= CORE_FUNCTIONS and share(lines, all_lines) >= CORE_LINES
        if room == "":
            good &= share(lines, all_lines) >= ALL_LINES
    reasons, places = read_reasons(), unreached(files)
    unexplained = [place for place in places if place not in reasons]
    print(f"\nunreached, with a reason in {REASONS.relative_to(ROOT)}:")
    for place in places:
        if place in reasons:
            print(f"  {place}: {reasons[place]}")
    print("\nunreached, without a reason:")
    for place in unexplained:
        for first, last, text in places[place]:
            print(f"  {place} {first}{f'-{last}' if last > first else ''}: {text}")
    for place in reasons:
        if place not in places:
            print(f"  {place}: has a reason, but is reached: take the reason out")
    print(f"\nbars: functions of src/core {CORE_FUNCTIONS:.0f} %, lines of src/core {CORE_LINES:.0f} %, lines of src {ALL_LINES:.0f} %")
    print(f"{'met' if good else 'NOT met'}, {len(unexplained)} unreached places without a reason")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
