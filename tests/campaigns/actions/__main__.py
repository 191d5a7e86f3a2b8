"""Two instances, one receiver that writes down every call, and repeated faults: see scripts/campaign actions.

Every cycle of a scenario sends something and disturbs a process or the database. After some cycles everything must settle, and
the scenario's verdict holds: drip.py, push.py, bounds.py.
"""

import argparse
import collections
import random
import secrets
import shutil
import sys
import tempfile
import time
from pathlib import Path

from support import records
from support import services as service_pairs

from .bounds import Bounds
from .drip import Drip
from .push import Push

SCENARIOS = {"drip": Drip, "push": Push, "bounds": Bounds}


def play(scenario, random, options):
    """Runs cycles until there were enough, or until the time is over. Returns what was done, how long it took, the result."""
    faults = scenario.instances.faults()
    counts, took, begun, cycle, repeated = collections.Counter(), collections.Counter(), time.monotonic(), 0, 0
    while cycle < options.cycles and time.monotonic() - begun < options.minutes * 60:
        cycle += 1
        at = time.monotonic()
        scenario.send()
        time.sleep(random.random() * 0.3)
        fault = random.choice(faults)
        fault()
        counts[fault.__name__] += 1
        took[fault.__name__] += time.monotonic() - at
        if cycle % options.judge_every == 0:
            repeated = scenario.judge()
            print(f"cycle {cycle}: {scenario.runs} runs, {len(scenario.receiver.seen())} calls,"
                  f" {repeated} answered more than once, anomalies: {scenario.anomalies or 'none'}", flush=True)
    repeated = scenario.judge()
    return {"seed": options.seed, "cycles": cycle, "seconds": time.monotonic() - begun, "kinds": dict(sorted(counts.items())),
            "mean_seconds": {kind: took[kind] / counts[kind] for kind in sorted(counts)}, "runs": scenario.runs,
            "calls": len(scenario.receiver.seen()), "answered_again": repeated, "anomalies": scenario.anomalies,
            "refused": scenario.database.value("SELECT count(*) FROM receiptd.action_overlap")}


def record(played, options, commit):
    others = {name: value for name, value in played.items() if name not in ("seed", "seconds", "cycles", "runs", "calls", "anomalies")}
    records.add_campaign("actions", f"--scenario {options.scenario} --cycles {options.cycles} --seed {options.seed}", commit, played["seconds"],
                         figures={name: played[name] for name in ("cycles", "runs", "calls")}, **others)


def main():
    parser = argparse.ArgumentParser(prog="scripts/campaign actions")
    parser.add_argument("--scenario", choices=SCENARIOS, default="drip")
    parser.add_argument("--cycles", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--judge-every", type=int, default=10)
    parser.add_argument("--minutes", type=float, default=600, help="no cycle begins after that")
    parser.add_argument("--record", action="store_true", help="add the result to tests/records, and to the pages that show it")
    options, commit = parser.parse_args(), records.commit()
    name = f"actions-{secrets.token_hex(3)}"
    directory = Path(tempfile.mkdtemp(prefix="receiptd-actions-"))
    failed, chance = True, random.Random(options.seed)
    try:
        scenario = SCENARIOS[options.scenario](service_pairs.start(name), chance, directory)
        played = play(scenario, chance, options)
        print(f"{played['cycles']} cycles in {played['seconds']:.0f} s ({', '.join(f'{n} {k}' for k, n in played['kinds'].items())}),"
              f" {played['runs']} runs, {played['calls']} calls, {played['refused']} results of zombies refused,"
              f" {len(played['anomalies'])} anomalies", *played["anomalies"], sep="\n  ")
        failed = bool(played["anomalies"])
        if options.record and not failed:
            record(played, options, commit)
        scenario.close()
    finally:
        service_pairs.stop(name)
        if not failed:
            shutil.rmtree(directory, ignore_errors=True)
        else:
            print(f"logs are in {directory}", file=sys.stderr)
    return failed


sys.exit(main())
