"""Runs cycle after cycle. The seed chooses the kind of each; the results go to a file, one line for each cycle."""

import json
import random
import shutil
import subprocess
import time
from pathlib import Path

from faults import kinds
from faults.era import Era
from faults.lab import Lab
from faults.lights import Lights
from support.services import ROOT

ERA = 8  # cycles on one database and topic
CLUSTER_EVERY = 4  # one era in so many has three brokers
POISON, POISON_BESIDE = 12, 4  # refused messages where they are the fault, and beside another: each costs a search in its batch


def available(kind, lab_brokers, disk):
    return kind.brokers in (0, lab_brokers) and (
        kind.needs is None or (kind.needs == "disk" and disk) or shutil.which(kind.needs) is not None)


def select(only):
    """The chosen kinds, by name or by cell; without a choice all of them."""
    table = kinds.load()
    if not only:
        return table
    unknown = set(only) - table.keys() - {cell for kind in table.values() for cell in kind.cells}
    if unknown:
        raise SystemExit(f"no kind and no cell of the matrix: {', '.join(sorted(unknown))}; see scripts/campaign faults --list")
    return {name: kind for name, kind in table.items() if name in only or set(kind.cells) & set(only)}


class Plan:
    """Cycle number → number of brokers, kind, number of instances. Depends on nothing but seed and selection."""

    def __init__(self, seed, only=(), shapes=None):
        self.seed, self.selected = seed, select(only)
        wanted = {kind.brokers for kind in self.selected.values()}
        self.shapes = [1] * (CLUSTER_EVERY - 1) + [3]
        if shapes or wanted == {3} or only and 3 not in wanted:
            self.shapes = shapes or [max({1} | wanted)]

    def brokers(self, number):
        return self.shapes[number // ERA % len(self.shapes)]

    def pool(self, number):
        """Yields every kind once before any comes again, over all the eras of one shape."""
        brokers = self.brokers(number)
        pool = [name for name, kind in self.selected.items() if kind.brokers in (0, brokers)]
        eras = number // ERA
        before = sum(1 for era in range(eras) if self.shapes[era % len(self.shapes)] == brokers)
        turn = before * ERA + number % ERA
        random.Random(f"{self.seed} pool {brokers} {turn // len(pool)}").shuffle(pool)
        return pool[turn % len(pool)]

    def cycle(self, number):
        kind = self.selected[self.pool(number)]
        source = random.Random(f"{self.seed} cycle {number}")
        return kind, source, max(kind.seats, source.choice((1, 1, 2, 2, 3)))


class Campaign:
    def __init__(self, seed, only=(), directory=None, shapes=None, log=print):
        self.seed, self.plan, self.log = seed, Plan(seed, only, shapes), log
        self.directory = Path(directory or ROOT / "build/faults" / f"seed-{seed}")
        self.directory.mkdir(parents=True, exist_ok=True)
        self.lab, self.era, self.era_number = None, None, None
        self.pages_seen = 0  # by the lights of all cycles

    # ---- laboratory and era

    def enter(self, number):
        """The era of this cycle, on a laboratory of the right shape."""
        brokers = self.plan.brokers(number)
        if self.lab is not None and len(self.lab.brokers_list) != brokers:
            self.leave()
            self.lab.close()
            self.lab = None
        trouble = self.leave() if self.era_number != number // ERA else []
        if self.lab is None:
            self.lab = Lab(brokers, self.seed)
        if self.era is None:
            self.era_number = number // ERA
            place = self.directory / f"era-{number}"
            shutil.rmtree(place, ignore_errors=True)
            self.era = Era(self.lab, random.Random(f"{self.seed} era {self.era_number}").getrandbits(32), place)
        return trouble

    def leave(self):
        """Ends the era; returns what went wrong with that."""
        trouble = []
        if self.era is not None:
            self.era.stop_feeding.set()
            self.lab.heal()
            trouble = self.era.close()
            if not trouble and not (self.era.directory / "keep").exists():
                shutil.rmtree(self.era.directory, ignore_errors=True)
        self.era, self.era_number = None, None
        return trouble

    def close(self):
        trouble = []
        try:
            if self.lab is not None:
                trouble = self.leave()
        finally:
            if self.lab is not None:
                self.lab.close()
        return trouble

    # ---- one cycle

    def run(self, number):
        """Runs a cycle; returns its line."""
        kind, source, seats = self.plan.cycle(number)
        line = {"cycle": number, "seed": self.seed, "kind": kind.name, "cells": list(kind.cells),
                "brokers": self.plan.brokers(number), "instances": seats}
        began, receipts = time.monotonic(), 0
        try:
            anomalies = {"end of era": [text] for text in self.enter(number)}
            if not available(kind, line["brokers"], self.lab.disk):
                return {**line, "skipped": f"needs {kind.needs}"}
            began = time.monotonic()
            before, cycle = self.era.ledger.receipts, kinds.Cycle(self.era, source.random())
            anomalies |= self.play(kind, cycle, seats, source)
            receipts = self.era.ledger.receipts - before
            line |= {"notes": cycle.notes, **cycle.times}
        except Exception as error:
            anomalies = {"the campaign itself": [f"{type(error).__name__}: {error}"]}
        line |= {"seconds": round(time.monotonic() - began, 2), "receipts": receipts, "anomalies": anomalies}
        if anomalies:
            self.give_up(number, line)
        return line

    def play(self, kind, cycle, seats, source):
        era, anomalies = self.era, {}
        try:
            began = time.monotonic()
            era.occupy(seats)
            era.begin(source.getrandbits(32), POISON if kind.name == "poison" else
                      POISON_BESIDE if source.random() < 0.2 and "F42" not in kind.cells else 0)
            with Lights(era) as lights:
                try:
                    kind.run(cycle)
                except AssertionError as error:
                    anomalies["broken promise"] = [str(error)]
            anomalies |= lights.anomalies
            self.pages_seen += lights.seen
            era.lab.heal()
            healed = time.monotonic()
            trouble = era.settle()
            if trouble:
                anomalies["ended"] = trouble
            cycle.pause(0.1, 0.3)
            era.end_feeding()
            report = era.judge()
            cycle.times = {"fault": round(healed - began, 2), "recovery": round(era.caught_up_at - healed, 2)}
            anomalies |= {name: report.examples[name] for name in report.counts}
        except Exception as error:
            anomalies["the campaign itself"] = [f"{type(error).__name__}: {error}"]
        return anomalies

    def give_up(self, number, line):
        """Keeps the logs and the difference; the next cycle begins with a fresh laboratory."""
        place = self.directory / f"failed-{number}"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        (place / "anomalies.txt").write_text(
            "\n".join(f"{name}\n  " + "\n  ".join(map(str, texts)) for name, texts in line["anomalies"].items()) + "\n")
        logs = [*self.era.directory.glob("*/*.log")] if self.era else []
        logs += [*self.lab.directory.glob("*.log")] if self.lab else []
        for path in logs:
            shutil.copy(path, place / path.name)
        try:
            self.leave()
        except Exception as error:
            self.log(f"end of the era: {type(error).__name__}: {error}")
        self.era, self.era_number = None, None
        if self.lab is not None:
            self.lab.close()
            self.lab = None


def repeat_command(line):
    return f"scripts/campaign faults --seed {line['seed']} --first {line['cycle']} --cycles 1 --only {line['kind']}" + (
        " --brokers 3" if line["brokers"] == 3 else "")


def commit():
    found = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, text=True, capture_output=True)
    return found.stdout.strip() or "unknown"


def read_lines(path):
    path = Path(path)
    return [json.loads(text) for text in path.read_text().splitlines()] if path.exists() else []
