#!/usr/bin/env python3
"""Runs the fuzz targets for a time, keeps what they learned, and adds the executions to tests/records.

usage: scripts/campaign fuzz --seconds N [--fast] [--jobs N] [--max-len BYTES] [--record] [--keep-corpus] [TARGET...]
       tests/fuzz/campaign.py --list TARGET

--fast takes programs without AddressSanitizer, which make many times as many executions in the same time: crashes, failed
assertions and undefined behaviour end them. Afterwards every input that they learned goes through the program with
AddressSanitizer, and what that says counts as well.

A target begins with its seeds (tests/fuzz/corpus, ten at most) and with what the tree has beside them: the requests of
tests/payloads for fuzz_intake, the files of config for fuzz_config. --list prints their paths, for who replays them.
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
SEEDS = 10  # of a target, at most


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


SAMPLES = {"fuzz_intake": payload_inputs, "fuzz_config": lambda: (path.read_bytes() for path in sorted((ROOT / "config").glob("*.yaml")))}


def starts(target):
    """Folders with inputs to begin with, beside what earlier campaigns learned."""
    samples = WORK / target / "samples"
    shutil.rmtree(samples, ignore_errors=True)
    samples.mkdir(parents=True)
    for number, data in enumerate(SAMPLES.get(target, list)()):
        (samples / str(number)).write_bytes(data)
    return [folder for folder in (HERE / "corpus" / target, samples) if folder.exists() and any(folder.iterdir())]


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


def features_of(target, folders):
    """path → what the input reaches, as the control file of a merge tells it."""
    merged, control = WORK / target / "merged", WORK / target / "control"
    shutil.rmtree(merged, ignore_errors=True)
    merged.mkdir(parents=True)
    control.unlink(missing_ok=True)
    subprocess.run([CHECKED / target, "-set_cover_merge=1", "-max_len=2048", f"-merge_control_file={control}", merged, *folders],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    lines = control.read_text().splitlines()
    paths = [pathlib.Path(line) for line in lines[2:2 + int(lines[0])]]
    found = (line.split() for line in lines if line.startswith("FT "))
    return {paths[int(words[1])]: frozenset(words[2:]) for words in found}


def keep_corpus(target):
    """Of seeds and of what was learned, those go into the repository that reach most together. Seeds with a name stay."""
    corpus, learned = HERE / "corpus" / target, WORK / target / "learned"
    corpus.mkdir(parents=True, exist_ok=True)
    reached = features_of(target, [*starts(target), learned])
    kept = [path for path in corpus.glob("*") if not re.fullmatch(r"[0-9a-f]{40}", path.name)]
    free = [path for path in reached if path.parent in (corpus, learned) and path not in kept]
    seen = set().union(*(found for path, found in reached.items() if path not in free))
    while free and len(kept) < SEEDS:
        best = max(free, key=lambda path: (len(reached[path] - seen), -path.stat().st_size))
        free.remove(best)
        kept.append(best)
        seen |= reached[best]
    seeds = {path.name: path.read_bytes() for path in kept}
    shutil.rmtree(corpus)
    corpus.mkdir()
    for name, data in seeds.items():
        (corpus / name).write_bytes(data)


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
    parser.add_argument("--seconds", type=int, help="for each target")
    parser.add_argument("--list", action="store_true", help="only print the paths of the inputs that the targets begin with (from the top of the tree)")
    parser.add_argument("--fast", action="store_true", help="many more executions; AddressSanitizer only for what they learn")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="targets at once")
    parser.add_argument("--max-len", type=int, default=1024, help="bytes of an input")
    parser.add_argument("--record", action="store_true", help="add the executions to tests/records, and to the pages that show them")
    parser.add_argument("--keep-corpus", action="store_true", help="then choose the seeds in tests/fuzz/corpus again")
    parser.add_argument("target", nargs="*", choices=[[], *targets], help=", ".join(targets))
    arguments, begun = parser.parse_args(), time.monotonic()
    if arguments.list:
        for folder in (folder for target in arguments.target or targets for folder in starts(target)):
            print(*(path.relative_to(ROOT) for path in sorted(folder.iterdir())), sep="\n")
        return 0
    if not arguments.seconds:
        parser.error("--seconds is missing")
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
            keep_corpus(done.target)
    if arguments.record:
        record(good, time.monotonic() - begun, arguments)
    print(f"{number(sum(done.checked + done.fast for done in runs))} executions, {len(runs) - len(good)} failures")
    return 1 if len(good) < len(runs) else 0


if __name__ == "__main__":
    sys.exit(main())
