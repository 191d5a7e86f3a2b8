#!/usr/bin/env python3
"""Runs the fuzz targets for a time, keeps what they learned, and adds the executions to tests/records.

usage: scripts/campaign fuzz --seconds N [--fast] [--jobs N] [--max-len BYTES] [--record] [--keep-corpus N] [TARGET...]

--fast takes programs without AddressSanitizer, which make many times as many executions in the same time: crashes, failed
assertions and undefined behaviour end them. Afterwards every input that they learned goes through the program with
AddressSanitizer, and what that says counts as well.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CHECKED = ROOT / "build/fuzz/tests/fuzz"
FAST = ROOT / "build/fuzz-fast/tests/fuzz"
WORK = ROOT / "build/fuzz/work"
sys.path.insert(0, str(ROOT / "tests"))

from support import records  # noqa: E402

# Executions by mode: under the sanitizers, and of the fast programs.
Run = collections.namedtuple("Run", "target checked fast seconds inputs failure")
Pass = collections.namedtuple("Pass", "executions failure")


# ---- where to begin


def payload_inputs():
    """Each sample of a gateway's request in the form that fuzz_intake reads: gateway, kind, query, NUL, body."""
    names = re.findall(r"X\((\w+)\)", (ROOT / "src/gateways/gateways.h").read_text())
    kinds = {"application/json": 0, "application/x-www-form-urlencoded": 1, "multipart/form-data": 2}
    for path in sorted((ROOT / "tests/payloads").glob("*.json")):
        for case in json.loads(path.read_text())["cases"]:
            request = case["request"]
            headers = {name.lower(): value for name, value in request["headers"].items()}
            kind = kinds.get(headers.get("content-type", "").split(";")[0], 3) | (8 if request["method"] == "GET" else 0)
            query = request["path"].partition("?")[2]
            yield bytes([names.index(path.stem), kind]) + query.encode() + b"\0" + request["body"].encode()


def starts(target):
    """Folders with inputs to begin with, beside what earlier campaigns learned."""
    folders = [HERE / "corpus" / target]
    if target == "fuzz_intake":
        samples = WORK / target / "samples"
        shutil.rmtree(samples, ignore_errors=True)
        samples.mkdir(parents=True)
        for number, data in enumerate(payload_inputs()):
            (samples / str(number)).write_bytes(data)
        folders.append(samples)
    return [folder for folder in folders if folder.exists()]


# ---- running


def execute(program, target, name, arguments):
    """One run of a program; its words go to build/fuzz/work/TARGET/NAME.log."""
    folder = WORK / target
    log = folder / f"{name}.log"
    with open(log, "w") as out:
        status = subprocess.run([program, "-rss_limit_mb=2048", "-timeout=20", "-print_final_stats=1",
                                 f"-artifact_prefix={folder}/", *arguments], cwd=folder, stdout=out, stderr=out).returncode
    text = log.read_text(errors="replace")
    found = re.search(r"^stat::number_of_executed_units:\s+(\d+)", text, re.MULTILINE)
    failure = ""
    if status != 0:
        what = re.search(r"condition=.*|ERROR: \w+: [^\n]*|SUMMARY: [^\n]*", text)
        unit = re.search(r"Test unit written to (\S+)", text)
        failure = f"{what[0] if what else f'status {status}'}; input: {unit[1] if unit else '-'}; log: {log}"
    return Pass(int(found[1]) if found else 0, failure)


def run(target, arguments):
    learned = WORK / target / "learned"
    learned.mkdir(parents=True, exist_ok=True)
    folders = [learned, *starts(target)]
    length = f"-max_len={arguments.max_len}"
    search = [f"-max_total_time={arguments.seconds}", length]
    search += [f"-dict={path}" for path in [HERE / f"{target.removeprefix('fuzz_')}.dict"] if path.exists()]
    begun = time.monotonic()
    if arguments.fast:
        fast = execute(FAST / target, target, "fast", [*search, "-entropic=0", *folders])
        checked = execute(CHECKED / target, target, "replay", ["-runs=0", length, *folders])
    else:
        fast = Pass(0, "")
        checked = execute(CHECKED / target, target, "search", [*search, *folders])
    return Run(target, checked.executions, fast.executions, int(time.monotonic() - begun), len(list(learned.iterdir())),
               fast.failure or checked.failure)


def keep_corpus(target, most):
    """Of what was learned, the smallest inputs that reach all of the code together go into the repository."""
    corpus, merged = HERE / "corpus" / target, WORK / target / "merged"
    shutil.rmtree(merged, ignore_errors=True)
    merged.mkdir(parents=True)
    named = [path for path in corpus.glob("*") if not re.fullmatch(r"[0-9a-f]{40}", path.name)] if corpus.exists() else []
    subprocess.run([CHECKED / target, "-merge=1", "-max_len=600", merged, *([corpus] if corpus.exists() else []),
                    WORK / target / "learned"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    corpus.mkdir(parents=True, exist_ok=True)
    for path in corpus.glob("*"):
        if path not in named:
            path.unlink()
    for path in sorted(merged.iterdir(), key=lambda path: path.stat().st_size)[:most]:
        shutil.copy(path, corpus / path.name)


# ---- telling


def number(value):
    return f"{value:,}".replace(",", " ")


def record(runs, seconds, arguments):
    """A crash, a leak or a difference ends a target's search, and is not recorded as passed."""
    rows = [{"case": done.target, "executions under the sanitizers": done.checked, "fast executions": done.fast, "seconds": done.seconds,
             "inputs learned": done.inputs} for done in runs]
    sums = {name: sum(row[name] for row in rows) for name in ("executions under the sanitizers", "fast executions")}
    records.add_campaign("fuzz", f"--seconds {arguments.seconds}{' --fast' if arguments.fast else ''}", records.commit(), seconds,
                         figures=sums, rows=rows)


def main():
    targets = sorted(path.stem for path in HERE.glob("fuzz_*.c"))
    parser = argparse.ArgumentParser(prog="scripts/campaign fuzz")
    parser.add_argument("--seconds", type=int, required=True, help="for each target")
    parser.add_argument("--fast", action="store_true", help="many more executions; AddressSanitizer only for what they learn")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="targets at once")
    parser.add_argument("--max-len", type=int, default=1024, help="bytes of an input")
    parser.add_argument("--record", action="store_true", help="add the executions to tests/records, and to the pages that show them")
    parser.add_argument("--keep-corpus", type=int, default=0, metavar="N",
                        help="then put at most N of the smallest inputs a target into tests/fuzz/corpus")
    parser.add_argument("target", nargs="*", choices=[[], *targets], help=", ".join(targets))
    arguments, begun = parser.parse_args(), time.monotonic()
    runs = []
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for done in pool.map(lambda target: run(target, arguments), arguments.target or targets):
            runs.append(done)
            print(f"{done.target:18} {number(done.checked + done.fast):>15} executions "
                  f"{number((done.checked + done.fast) // max(1, done.seconds)):>9}/s {done.inputs:6} inputs  {done.failure}",
                  flush=True)
    good = [done for done in runs if not done.failure]
    if arguments.keep_corpus:
        for done in good:
            keep_corpus(done.target, arguments.keep_corpus)
    if arguments.record:
        record(good, time.monotonic() - begun, arguments)
    print(f"{number(sum(done.checked + done.fast for done in runs))} executions, {len(runs) - len(good)} failures")
    return 1 if len(good) < len(runs) else 0


if __name__ == "__main__":
    sys.exit(main())
