#!/usr/bin/env python3
"""Runs the fuzz targets for a time, keeps what they learned, and adds the executions to docs/proof.md.

usage: scripts/fuzz --seconds N [--jobs N] [--max-len BYTES] [--record] [--keep-corpus N] [TARGET...]
"""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PROGRAMS = ROOT / "build/fuzz/tests/fuzz"
WORK = ROOT / "build/fuzz/work"
sys.path.insert(0, str(ROOT / "tests"))

from support.record import commit_of, read_section, write_section  # noqa: E402

Run = collections.namedtuple("Run", "target executions per_second seconds inputs failure")
ROW = re.compile(r"^\| (\w+) \| ([\d ]+) \| ([\d ]+) \| ([\d ]+) \| ([\w+]*) \|$", re.MULTILINE)


def options(target, arguments, folder):
    words = [f"-max_len={arguments.max_len}", "-rss_limit_mb=2048", "-timeout=20", "-print_final_stats=1",
             f"-artifact_prefix={folder}/"]
    words += [f"-dict={path}" for path in [HERE / f"{target.removeprefix('fuzz_')}.dict"] if path.exists()]
    return words


def run(target, arguments):
    folder = WORK / target
    learned = folder / "learned"
    learned.mkdir(parents=True, exist_ok=True)
    corpus = HERE / "corpus" / target
    log = folder / "log"
    with open(log, "w") as out:
        status = subprocess.run(
            [PROGRAMS / target, f"-max_total_time={arguments.seconds}", *options(target, arguments, folder), learned,
             *([corpus] if corpus.exists() else [])], cwd=folder, stdout=out, stderr=out).returncode
    text = log.read_text(errors="replace")

    def stat(name):
        found = re.search(rf"^stat::{name}:\s+(\d+)", text, re.MULTILINE)
        return int(found[1]) if found else 0

    failure = ""
    if status != 0:
        what = re.search(r"condition=.*|ERROR: \w+: [^\n]*|SUMMARY: [^\n]*", text)
        unit = re.search(r"Test unit written to (\S+)", text)
        failure = f"{what[0] if what else f'status {status}'}; input: {unit[1] if unit else '-'}; log: {log}"
    return Run(target, stat("number_of_executed_units"), stat("average_exec_per_sec"), arguments.seconds,
               len(list(learned.iterdir())), failure)


def keep_corpus(target, most):
    """Of what was learned, the smallest inputs that reach all of the code together go into the repository."""
    corpus, merged = HERE / "corpus" / target, WORK / target / "merged"
    shutil.rmtree(merged, ignore_errors=True)
    merged.mkdir(parents=True)
    named = [path for path in corpus.glob("*") if not re.fullmatch(r"[0-9a-f]{40}", path.name)] if corpus.exists() else []
    subprocess.run([PROGRAMS / target, "-merge=1", "-max_len=600", merged, *([corpus] if corpus.exists() else []),
                    WORK / target / "learned"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    corpus.mkdir(parents=True, exist_ok=True)
    for path in corpus.glob("*"):
        if path not in named:
            path.unlink()
    for path in sorted(merged.iterdir(), key=lambda path: path.stat().st_size)[:most]:
        shutil.copy(path, corpus / path.name)


def number(value):
    return f"{value:,}".replace(",", " ")


def record(runs):
    """Sums are kept over all campaigns: the table in the page is read, added to and written again."""
    rows = {match[1]: [int(match[i].replace(" ", "")) for i in (2, 3, 4)] + [match[5]]
            for match in ROW.finditer(read_section(ROOT, "Fuzzing")) if match[1] != "sum"}
    for done in runs:
        before = rows.get(done.target, [0, 0, 0, ""])
        rows[done.target] = [before[0] + done.executions, before[1] + done.seconds, done.inputs, commit_of(ROOT)]
    lines = ["Executions of all campaigns so far, under AddressSanitizer and UndefinedBehaviorSanitizer; a crash, a leak or a",
             "difference ends a campaign and is not recorded as passed. `scripts/fuzz --seconds N --record` adds to the table.", "",
             "| target | executions | seconds | inputs learned | last commit |", "|---|---|---|---|---|"]
    lines += [f"| {target} | {number(row[0])} | {number(row[1])} | {number(row[2])} | {row[3]} |"
              for target, row in sorted(rows.items())]
    sums = [sum(row[i] for row in rows.values()) for i in range(3)]
    lines += [f"| sum | {number(sums[0])} | {number(sums[1])} | {number(sums[2])} |  |"]
    write_section(ROOT, "Fuzzing", "\n".join(lines))


def main():
    targets = sorted(path.stem for path in HERE.glob("fuzz_*.c"))
    parser = argparse.ArgumentParser(prog="scripts/fuzz")
    parser.add_argument("--seconds", type=int, required=True, help="for each target")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="targets at once")
    parser.add_argument("--max-len", type=int, default=1024, help="bytes of an input")
    parser.add_argument("--record", action="store_true", help="add the executions to docs/proof.md")
    parser.add_argument("--keep-corpus", type=int, default=0, metavar="N",
                        help="then put at most N of the smallest inputs a target into tests/fuzz/corpus")
    parser.add_argument("target", nargs="*", choices=[[], *targets], help=", ".join(targets))
    arguments = parser.parse_args()
    runs = []
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for done in pool.map(lambda target: run(target, arguments), arguments.target or targets):
            runs.append(done)
            print(f"{done.target:18} {number(done.executions):>15} executions {number(done.per_second):>9}/s "
                  f"{done.inputs:6} inputs  {done.failure}", flush=True)
    good = [done for done in runs if not done.failure]
    if arguments.keep_corpus:
        for done in good:
            keep_corpus(done.target, arguments.keep_corpus)
    if arguments.record:
        record(good)
    print(f"{number(sum(done.executions for done in runs))} executions, {len(runs) - len(good)} failures")
    return 1 if len(good) < len(runs) else 0


if __name__ == "__main__":
    sys.exit(main())
