"""Random histories with all rules on, in any order, with copies, over several lanes and instances, among faults of all sorts: they must count what the oracle does."""

import argparse
import shutil
import signal
import sys
import time
from collections import Counter
from pathlib import Path

from faults.lab import Lab
from rules import kinds
from rules.arm import Arm
from rules.histories import Histories
from support import records
from support.services import ROOT


class Rounds:
    """Each has a database and a topic of its own. They share a laboratory; after an anomaly comes a new one."""

    def __init__(self, seed, faults, directory, only=()):
        self.seed, self.faults, self.directory, self.only = seed, faults, Path(directory), only
        self.directory.mkdir(parents=True, exist_ok=True)
        self.lab, self.totals, self.played, self.notes = None, Counter(), Counter(), Counter()

    def run(self, number, count, sides):
        """`count` histories, once in each of these ways: see Arm."""
        histories = Histories(f"{self.seed}.{number}", count, int(time.time() * 1000))
        anomalies = sum(self.run_arm(histories, number, side, self.draw(number, side if len(sides) > 1 else "")) for side in sides)
        self.totals.update(histories=count, events=len(histories.events), anomalies=anomalies)

    def draw(self, number, side):
        """The faults of this round. Where each history comes twice, each of the sides has an order of its own."""
        self.lab = self.lab or Lab(1, self.seed)
        table = kinds.load(self.lab.disk)
        return [table[kinds.draw(f"{self.seed}{side}", self.only or table, number * self.faults + turn)] for turn in range(self.faults)]

    def run_arm(self, histories, number, side, faults):
        """Whether there was an anomaly: it is printed, and its logs are kept."""
        self.lab = self.lab or Lab(1, self.seed)
        directory = self.directory / f"{self.seed}.{number}{side}"
        shutil.rmtree(directory, ignore_errors=True)
        arm, anomaly = None, ""
        try:
            arm = Arm(self.lab, histories, f"{histories.seed}/{side}", directory, side == "b")
            anomaly = arm.run(faults)
        except Exception as error:  # an anomaly is reported, the next round goes on
            anomaly = f"{type(error).__name__}: {error}"
        anomaly = self.leave(arm, anomaly)
        if anomaly:
            print(f"ANOMALY, seed {self.seed}, round {number}, arm {side}, logs in {directory}: {anomaly}", flush=True)
        else:
            shutil.rmtree(directory, ignore_errors=True)
        return bool(anomaly)

    def leave(self, arm, anomaly):
        """Ends the arm; returns the anomaly, or what went wrong at the end."""
        if arm is not None:
            self.totals.update(receipts=sum(arm.copies))
            self.played += arm.played
            self.notes += arm.notes
            try:
                anomaly = "\n".join(filter(None, (anomaly, arm.close())))
            except Exception as error:
                anomaly = "\n".join(filter(None, (anomaly, f"at the end: {type(error).__name__}: {error}")))
        if anomaly:
            for log in self.lab.directory.glob("*.log"):
                shutil.copy(log, arm.directory if arm else self.directory)
            self.close()
        return anomaly

    def close(self):
        if self.lab is not None:
            self.lab.close()
            self.lab = None

    def sentence(self):
        faults = ", ".join(f"{count} {name}" for name, count in sorted(self.played.items()))
        back = self.notes["the database went back"]
        return (f"{self.totals['histories']} histories of {self.totals['events']} receipts came in any order, with copies, in any batches and over two instances:"
                f" {self.totals['receipts']} receipts in all, among {self.played.total()} faults ({faults}); {back} of these took positions back")


def arguments():
    parser = argparse.ArgumentParser(prog="scripts/campaign rules", description=__doc__)
    parser.add_argument("--histories", type=int, default=100_000, metavar="N")
    parser.add_argument("--round", type=int, default=20_000, metavar="N", help="histories of a round, which has a database of its own")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="number of the first round, to repeat one")
    parser.add_argument("--faults", type=int, default=8, metavar="N", help="in each round")
    parser.add_argument("--only", default="", metavar="KIND[,KIND]", help="kinds of faults, by their names in scripts/campaign faults --list")
    parser.add_argument("--twice", action="store_true", help="each history comes twice, in other orders, with other copies, in other batches, among other faults")
    parser.add_argument("--seed", type=int, default=1, metavar="S")
    parser.add_argument("--record", action="store_true", help="add the result to tests/records, and to the pages that show it")
    return parser.parse_args()


def interrupt(number, frame):
    raise KeyboardInterrupt


def main():
    options, begun, commit = arguments(), time.monotonic(), records.commit()
    signal.signal(signal.SIGTERM, interrupt)
    rounds = Rounds(options.seed, options.faults, ROOT / "build/rules", [name for name in options.only.split(",") if name])
    try:
        for done in range(0, options.histories, options.round):
            number = options.first + done // options.round
            rounds.run(number, min(options.round, options.histories - done), "ab" if options.twice else "ab"[number % 2])
            totals = rounds.totals
            print(f"{totals['histories']:9} histories, {totals['receipts']} receipts, {rounds.played.total()} faults, {totals['anomalies']} anomalies,"
                  f" {time.monotonic() - begun:.0f} s", flush=True)
    finally:
        rounds.close()
    for note, count in rounds.notes.items():
        print(f"{count}: {note}")
    if options.record and not rounds.totals["anomalies"]:
        totals = rounds.totals
        records.add_campaign("rules", f"--histories {options.histories} --seed {options.seed}", commit, time.monotonic() - begun,
                             figures={"histories": totals["histories"], "receipts": totals["receipts"], "faults": rounds.played.total()},
                             receipts_of_histories=totals["events"], took_positions_back=rounds.notes["the database went back"],
                             kinds=dict(sorted(rounds.played.items())))
    print(f"{rounds.sentence()}; {rounds.totals['anomalies']} anomalies")
    return 1 if rounds.totals["anomalies"] else 0


if __name__ == "__main__":
    sys.exit(main())
