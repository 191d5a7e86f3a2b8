#!/usr/bin/env python3
"""Proves that the tests have teeth: plants one defect at a time into a copy of the tree and says which layer of tests finds it.

usage: scripts/campaign mutants [--fast] [--every-layer] [--only NAME]... [--seeds N] [--jobs N] [--record]
       scripts/campaign simulate --mutants [--only NAME]... [--seeds N] [--jobs N]

table.py has the defects, and which tests of the two slow layers are worth running for each. Unit tests and simulations are always
run where the changed file is part of them. `simulate --mutants` runs the simulation alone, on what it alone has to find.

A witness runs first; what it finds there, and not without the defect, is found. Where it finds nothing any more, and with --record
or --every-layer, all are run in their order.
"""
import argparse
import os
import pathlib
import queue
import re
import shlex
import shutil
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
OUT = ROOT / "build" / "proof"
sys.path.insert(0, str(ROOT / "tests"))

from support import records  # noqa: E402
from table import MUTANTS, SIMULATED  # noqa: E402

LAYERS = ("unit", "simulation", "integration-c", "integration")
FAST_LAYERS = LAYERS[:2]
SOURCES = ("Makefile", "config", "docs", "include", "scripts", "sql", "src", "tests")
BUILT = ("generated", "obj", "stamp")
LINKED = ("tests", "receiptd")


class Mutant:
    """An entry of the table."""

    def __init__(self, entry, simulated=False):
        self.name, self.defect, self.file, self.edits = entry["name"], entry.get("defect"), entry["file"], entry["edits"]
        self.tests = {layer: entry.get(layer, "").split() for layer in LAYERS[2:]}
        self.witness = entry.get("witness")
        self.simulated = simulated or entry.get("simulation", False)

    def reaches(self, layer):
        """Whether the changed code is part of what the layer runs."""
        if layer == "simulation":
            return self.simulated or self.file.startswith(("src/core/", "src/base/"))
        if layer == "unit":
            return self.file.startswith("src/")
        return bool(self.tests[layer])

    def plant(self, text):
        """The file's text with the defect. ValueError: an old text does not stand there once."""
        for old, new in self.edits:
            begin, end = old[:len(old) - len(old.lstrip())], old[len(old.rstrip()):]
            inside = r"\s+".join(re.escape(word) for word in old.split())
            found = list(re.finditer(re.escape(begin) + inside + re.escape(end), text))
            if len(found) != 1:
                raise ValueError(f"{self.name}: {self.file} has this text {len(found)} times, not once: {old}")
            text = text[:found[0].start()] + new + text[found[0].end():]
        return text


class Tree:
    """A copy of the checkout with what is built already, so that a mutant costs one compilation and the links that are wanted."""

    def __init__(self, number, built=BUILT + LINKED):
        self.root = OUT / f"tree-{number}"
        shutil.rmtree(self.root, ignore_errors=True)
        (self.root / "build").mkdir(parents=True)
        self.copy([ROOT / name for name in SOURCES], self.root)
        self.copy([ROOT / "build" / name for name in built], self.root / "build")
        if (ROOT / "build" / "kafka").exists():
            (self.root / "build" / "kafka").symlink_to(ROOT / "build" / "kafka")

    @staticmethod
    def copy(names, target):
        subprocess.run(["cp", "-a", *(name for name in names if name.exists()), target], check=True)

    def make(self, target):
        run = subprocess.run(["make", "-j1", "CFLAGS=" + os.environ.get("CFLAGS", "-O2 -g"), target], cwd=self.root,
                             capture_output=True, text=True)
        if run.returncode != 0:
            raise SystemExit(f"mutants: {target} does not build:\n{run.stdout}{run.stderr}")

    def run(self, command, timeout, directory=None):
        """The status (None: it did not end in time) and the output."""
        try:
            run = subprocess.run(command, cwd=directory or self.root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                 text=True, errors="replace", timeout=timeout, stdin=subprocess.DEVNULL)
            return run.returncode, run.stdout
        except subprocess.TimeoutExpired as late:
            return None, (late.stdout or b"").decode(errors="replace")

    # ---- the layers: each says what found the defect, or None

    def unit(self, mutant, arguments):
        self.make("unit-programs")
        return self.programs("unit", sorted(path.name for path in (self.root / "build/tests/unit").glob("test_*")
                                            if path.suffix == ""))

    def integration_c(self, mutant, arguments):
        self.make("integration-programs")
        return self.programs("integration", mutant.tests["integration-c"])

    def programs(self, kind, names, root=None):
        for name in names:
            status, output = self.run([(root or self.root) / "build/tests" / kind / name], 240)
            if status != 0:
                failed = re.search(r"^\[  FAILED  \] (\w+)", output, re.MULTILINE)
                return f"{name}: " + (failed[1] if failed else "no end" if status is None else f"status {status}")
        return None

    def simulation(self, mutant, arguments):
        self.make("simulation-programs")
        return self.simulate(arguments.seeds)

    def simulate(self, seeds, root=None):
        status, output = self.run([(root or self.root) / "build/tests/simulation/test_simulation", "--seeds", str(seeds),
                                   "--first"], 600)
        found = re.search(r"^first: seed (\d+): ([\w-]+)", output, re.MULTILINE)
        if found:
            return f"seed {found[1]}: {found[2]}"
        if status is None:
            return "no end"
        if status != 0:
            asserted = re.search(r"assert\w* [^\n]*", output)
            return asserted[0][:60] if asserted else f"ended with {status}"
        return None

    def integration(self, mutant, arguments):
        self.make("all")
        words = shlex.split(" ".join(mutant.tests["integration"]))
        words = [f"tests/integration/{word}" if word.endswith(".py") else word for word in words]
        status, output = self.run([sys.executable, "-m", "pytest", "-x", "-q", "--color=no", "-p", "no:cacheprovider", *words],
                                  900)
        failed = re.search(r"^(?:FAILED|ERROR) tests/integration/(\S+)", output, re.MULTILINE)
        if failed:
            return failed[1].replace("::", ": ")[:90]
        if status not in (0, None):
            raise SystemExit(f"mutants: {mutant.name}: pytest ended with {status}:\n{output[-3000:]}")
        return "no end" if status is None else None

    def ask(self, mutant, arguments):
        """What the witness finds with the defect and not without it, in the checkout itself."""
        if mutant.witness == "test_simulation":
            layer, found = "simulation", self.simulation(mutant, arguments)
            seed = re.match(r"seed (\d+): ", found or "")
            innocent = found and self.simulate(seed[1] if seed else arguments.seeds, ROOT)
        else:
            self.make(f"build/tests/unit/{mutant.witness}")
            layer, found = "unit", self.programs("unit", [mutant.witness])
            innocent = found and self.programs("unit", [mutant.witness], ROOT)
        if innocent:
            raise SystemExit(f"mutants: {mutant.name}: {mutant.witness} fails without a defect: {innocent}")
        return {layer: found} if found else {}

    def vouch(self, mutants, layers, arguments):
        """What fails without a defect too would find every one of them."""
        few = argparse.Namespace(seeds=200)
        programs = sorted({name for mutant in mutants for name in mutant.tests["integration-c"]})
        wanted = argparse.Namespace(tests={"integration-c": programs})
        for layer in layers:
            if layer == "integration":  # many files: the one that failed is run once more, see confirm
                continue
            found = getattr(self, layer.replace("-", "_"))(wanted, few)
            if found:
                raise SystemExit(f"mutants: {layer} fails without a defect: {found}")

    def confirm(self, mutant, found):
        """The test that found it has to pass now that the defect is gone."""
        self.make("all")
        name = "tests/integration/" + found.replace(": ", "::").partition("[")[0]
        status, output = self.run([sys.executable, "-m", "pytest", "-q", "--color=no", "-p", "no:cacheprovider", "-k",
                                   name.rpartition("::")[2], name.partition("::")[0]], 900)
        if status != 0:
            raise SystemExit(f"mutants: {mutant.name}: {found} fails without the defect too:\n{output[-3000:]}")

    def hunt(self, mutant, layers, arguments):
        """{layer: what found it, None if nothing did}; stops at the first that does unless every layer is asked.

        Without layers only the witness is asked."""
        results = {}
        sound = (self.root / mutant.file).read_text()
        (self.root / mutant.file).write_text(mutant.plant(sound))
        try:
            if not layers:
                return self.ask(mutant, arguments)
            for layer in layers:
                if not mutant.reaches(layer):
                    continue
                results[layer] = getattr(self, layer.replace("-", "_"))(mutant, arguments)
                if results[layer] and not arguments.every_layer:
                    break
        finally:
            (self.root / mutant.file).write_text(sound)
        if results.get("integration") not in (None, "no end"):
            self.confirm(mutant, results["integration"])
        return results


def prove(mutants, layers, arguments):
    """Yields (mutant, results, seconds) as they come, from as many trees as there are jobs; without layers from their witnesses."""
    todo, done = queue.Queue(), queue.Queue()
    built = BUILT + LINKED if layers else BUILT
    for mutant in mutants:
        todo.put(mutant)

    def work(number):
        try:
            tree = Tree(number, built)
            while True:
                try:
                    mutant = todo.get_nowait()
                except queue.Empty:
                    return
                started = time.monotonic()
                done.put((mutant, tree.hunt(mutant, layers, arguments), time.monotonic() - started))
        except BaseException as error:  # also SystemExit: told to the main thread
            done.put(error)

    if layers and mutants:
        Tree(0, built).vouch(mutants, layers, arguments)
    workers = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(min(arguments.jobs, len(mutants)))]
    for worker in workers:
        worker.start()
    for _ in mutants:
        result = done.get()
        if isinstance(result, BaseException):
            raise result
        yield result
    for number, worker in enumerate(workers):
        worker.join()
        shutil.rmtree(OUT / f"tree-{number}", ignore_errors=True)


def prove_all(mutants, layers, arguments):
    """The same: witnesses first, then all layers for those that have none or whose witness has seen nothing."""
    left = mutants
    if not (arguments.every_layer or arguments.record or arguments.simulate):
        known, left = [mutant for mutant in mutants if mutant.witness], [mutant for mutant in mutants if not mutant.witness]
        for mutant, results, seconds in prove(known, (), arguments):
            if results:
                yield mutant, results, seconds
            else:
                print(f"{mutant.name:42} {mutant.witness} finds it no more", flush=True)
                left.append(mutant)
    yield from prove(left, layers, arguments)


def show(results):
    """The layers that found it, and what in the first one."""
    found = [layer for layer in results if results[layer]]
    if not found:
        return "-", f"SURVIVED {', '.join(results) or 'without any test'}"
    return " ".join(found), results[found[0]]


def record(rows, layers, arguments):
    """Each defect was planted alone; the first layer that failed is named."""
    survived = sum(how == "-" for _, how, _ in rows)
    records.add("mutants", {"commit": records.commit(), "command": "scripts/campaign mutants", "host": records.host(),
                            "setting": {"layers": ", ".join(layers), "seeds": arguments.seeds}, "anomalies": survived,
                            "figures": {"defects": len(rows), "caught": len(rows) - survived},
                            "rows": [{"case": mutant.name, "defect": mutant.defect, "caught by": how, "first": what} for mutant, how, what in rows]})


def check(mutants):
    """A defect that does not fit is one that nobody plants any more."""
    misfits = 0
    for mutant in mutants:
        try:
            mutant.plant((ROOT / mutant.file).read_text())
        except (OSError, ValueError) as error:
            misfits += 1
            print(f"does not fit any more: {error}")
    print(f"{len(mutants)} defects, {misfits} do not fit")
    return 1 if misfits else 0


def main():
    parser = argparse.ArgumentParser(prog="scripts/campaign mutants")
    parser.add_argument("--fast", action="store_true", help="unit tests and simulation only: no servers, the mutants they reach")
    parser.add_argument("--every-layer", action="store_true", help="go on after the first layer that finds it")
    parser.add_argument("--only", action="append", help="one mutant (may be repeated)")
    parser.add_argument("--seeds", type=int, default=10000, help="of the simulation")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="trees that work at once")
    parser.add_argument("--check", action="store_true", help="only whether every defect still fits the tree")
    parser.add_argument("--record", action="store_true", help="add the result to tests/records, and to the pages that show it")
    parser.add_argument("--simulate", action="store_true", help="the simulation only, on what it has to find (simulate --mutants)")
    arguments = parser.parse_args()
    every = [Mutant(entry) for entry in MUTANTS] + [Mutant(entry, True) for entry in SIMULATED]
    if arguments.check:
        return check(every)
    layers = ("simulation",) if arguments.simulate else FAST_LAYERS if arguments.fast else LAYERS
    every = [mutant for mutant in every if (mutant.simulated if arguments.simulate else mutant.defect)]
    mutants = [mutant for mutant in every if (not arguments.only or mutant.name in arguments.only)
               and (not arguments.fast or mutant.reaches("simulation"))]
    if not mutants:
        raise SystemExit(f"mutants: there is none of this name; there are: {', '.join(mutant.name for mutant in every)}")
    rows = []
    print(f"{'defect':42} {'caught by':28} how", flush=True)
    for mutant, results, seconds in prove_all(mutants, layers, arguments):
        how, what = show(results)
        rows.append((mutant, how, what))
        print(f"{mutant.name:42} {how:28} {what}  ({seconds:.0f} s)", flush=True)
    rows.sort(key=lambda row: row[0].name)
    survived = sum(how == "-" for _, how, _ in rows)
    if arguments.record:
        record(rows, layers, arguments)
    print(f"{len(rows)} mutants, {len(rows) - survived} caught, {survived} survived")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
