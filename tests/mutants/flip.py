#!/usr/bin/env python3
"""Turns single operators, branches and constants of src/core round and lists what neither unit tests nor simulation notice.

usage: scripts/campaign flip [--sample N] [--seed S] [--file NAME]... [--seeds N] [--jobs N] [--record]

Sources are formatted and hold no macros of their own that matter here, so a line and a pattern are enough to find a place; a
mutant that does not compile, or compiles to the same code, is none. What survives must be in survivors.txt beside this file with
the reason why no test can see it, or is to be held by a test: lines "FILE: OLD LINE => NEW LINE: REASON".
"""
import argparse
import concurrent.futures
import hashlib
import os
import pathlib
import random
import re
import shlex
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
OUT = ROOT / "build" / "flip"
SURVIVORS = HERE / "survivors.txt"
sys.path.insert(0, str(ROOT / "tests"))

sys.path.insert(0, str(HERE))

from mutants import Tree  # noqa: E402
from support import records  # noqa: E402

# (what it is called, pattern, what it becomes); each match on a line is a mutant of its own
FLIPS = (
    ("relation", r" == ", " != "), ("relation", r" != ", " == "),
    ("border", r" < ", " <= "), ("border", r" <= ", " < "), ("border", r" > ", " >= "), ("border", r" >= ", " > "),
    ("relation", r" < ", " >= "), ("relation", r" > ", " <= "),
    ("logic", r" && ", " || "), ("logic", r" \|\| ", " && "),
    ("sign", r" \+ ", " - "), ("sign", r" - ", " + "), ("sign", r"\+\+", "--"), ("sign", r" \+= ", " -= "),
    ("condition", r"\bif \((?!.*\bif\b)(.*)\)( \{)?$", r"if (!(\1))\2"),
    ("condition", r"\bwhile \((.*)\)( \{)?$", None),  # would not end: left out
    ("constant", r"\btrue\b", "false"), ("constant", r"\bfalse\b", "true"),
    ("constant", r"(?<![\w.])0(?![\w.])", "1"), ("constant", r"(?<![\w.])1(?![\w.])", "2"),
    ("statement", r"^(\s+)(?!return|break|continue|case|default|else|\}|struct|const|int|uint|size_t|bool|char|static|for|while|if|do|goto)"
                  r"([a-z][\w>.\[\]-]*( [-+|]?= |\().*;)$", r"\1;"),
)
# Played by the simulator, and by these unit tests.
ENGINE = ("engine", "engine_view", "lane", "lane_queue", "partition", "batch_build", "batch_rejects")
ENGINE_TESTS = ["build/tests/unit/test_engine", "build/tests/unit/test_engine_rewind", "build/tests/unit/test_fairness",
                "build/tests/unit/test_batch"]
# Also what only the sanitizers can tell: leaks.
SKIPPED_LINES = re.compile(r"^\s*(/?\*|//|#|RCPT_ASSERT|static const|\[|snprintf|(rcpt_\w*_)?(free|fini)\()|_Static_assert|RCPT_ASSERT|rcpt_error_")


class Mutant:
    def __init__(self, path, number, kind, old, new):
        self.path, self.number, self.kind, self.old, self.new = path, number, kind, old, new
        self.key = f"{path}: {old.strip()} => {new.strip()}"


def mutants_of(path):
    depth = 0
    for number, line in enumerate((ROOT / path).read_text().splitlines(), 1):
        inside = depth > 0 and not line.startswith("}")
        depth += line.count("{") - line.count("}")
        if not inside or SKIPPED_LINES.search(line):
            continue
        code = line.split("/*")[0].rstrip()
        for kind, pattern, becomes in FLIPS:
            if becomes is None:
                continue
            for match in re.finditer(pattern, code):
                new = code[:match.start()] + match.expand(becomes) + code[match.end():]
                yield Mutant(path, number, kind, code, new)


class Builder:
    """Compiles and links with the commands that make would use, in a copy of the tree that nobody else builds in."""

    def __init__(self, root, programs):
        self.root, self.programs = root, programs
        dry = subprocess.run(["make", "--no-print-directory", "-n", "-B", "V=1", "unit-programs", "simulation-programs"], cwd=root,
                             check=True, capture_output=True, text=True).stdout.splitlines()
        self.compile = {match[2]: match[0].strip() for line in dry for match in [re.search(r"\S.* -c -o (\S+) (src/core/\S+\.c)$", line)] if match}
        self.link = {match[1]: line.strip() for line in dry for match in [re.search(r" -o (build/tests/\S+) .*-lcmocka", line)] if match}

    def object_of(self, path):
        return "build/obj/" + path.removeprefix("src/").replace(".c", ".o")

    def build(self, mutant, folder, optimise=False):
        """The object's path; None if it does not compile."""
        lines = (self.root / mutant.path).read_text().splitlines()
        lines[mutant.number - 1] = mutant.new
        source = folder / pathlib.Path(mutant.path).name
        source.write_text("\n".join(lines) + "\n")
        out = source.with_suffix(".o")
        words = shlex.split(self.compile[mutant.path])
        words[words.index("-o") + 1] = str(out)
        words[-1] = str(source)
        words = [word for word in words if word not in ("-MMD", "-MP", "-g", "-Werror")] + ["-w", "-Isrc/core"]
        return out if subprocess.run(words, cwd=self.root, capture_output=True).returncode == 0 else None

    def link_program(self, program, mutant, mutated, folder):
        words = shlex.split(self.link[program].split(";")[-1])
        at = words.index(self.object_of(mutant.path))
        words[at] = str(mutated)
        out = folder / pathlib.Path(program).name
        words[words.index("-o") + 1] = str(out)
        subprocess.run(words, cwd=self.root, check=True, capture_output=True)
        return out


def runs_of(path, every):
    """The programs that a file of src/core is worth running with, the quick ones first."""
    stem = pathlib.Path(path).stem
    names = [name for name in every if stem.split("_")[0] in name] if stem not in ENGINE else ENGINE_TESTS
    return [*names, "build/tests/simulation/test_simulation"]


def hunt(mutant, builder, arguments):
    """(what noticed it; None: nothing; "" it is no mutant)"""
    folder = OUT / hashlib.sha1(f"{mutant.key}{mutant.number}".encode()).hexdigest()[:12]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        mutated = builder.build(mutant, folder)
        if mutated is None:
            return ""
        same = folder / "same"
        same.mkdir()
        as_it_is = (builder.root / mutant.path).read_text().splitlines()[mutant.number - 1]
        sound = builder.build(Mutant(mutant.path, mutant.number, "", as_it_is, as_it_is), same)
        if code_of(mutated) == code_of(sound):
            return ""
        for program in runs_of(mutant.path, builder.programs):
            built = builder.link_program(program, mutant, mutated, folder)
            simulation = program.endswith("test_simulation")
            command = [built, "--seeds", str(arguments.seeds), "--first"] if simulation else [built]
            try:
                status = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
                                        timeout=arguments.patience, preexec_fn=limit).returncode
            except subprocess.TimeoutExpired:
                return f"{built.name}: no end"
            if status != 0:
                return built.name
        return None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def limit():
    """A mutant may ask for all memory there is, or fill the disk with a core."""
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def code_of(path):
    text = subprocess.run(["objdump", "-d", "-r", "-s", "-j", ".text", "-j", ".rodata", "--no-show-raw-insn", path], capture_output=True,
                          text=True).stdout
    return text.split("\n", 3)[-1]


def read_survivors():
    reasons = {}
    for line in SURVIVORS.read_text().splitlines() if SURVIVORS.exists() else []:
        if line.strip() and not line.startswith("#"):
            key, _, reason = line.rpartition(": ")
            reasons[key] = reason
    return reasons


def main():
    parser = argparse.ArgumentParser(prog="scripts/campaign flip")
    parser.add_argument("--sample", type=int, default=200, help="so many mutants, drawn by --seed; 0: all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--file", action="append", help="a name in src/core, such as lane.c")
    parser.add_argument("--seeds", type=int, default=400, help="of the simulation")
    parser.add_argument("--patience", type=int, default=30, help="seconds for a program")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--record", action="store_true", help="add the result to tests/records, and to the pages that show it")
    arguments = parser.parse_args()
    paths = sorted(f"src/core/{path.name}" for path in (ROOT / "src/core").glob("*.c") if not arguments.file or path.name in arguments.file)
    everything = [mutant for path in paths for mutant in mutants_of(path)]
    chosen = everything
    if arguments.sample and arguments.sample < len(everything):
        chosen = random.Random(arguments.seed).sample(everything, arguments.sample)
    builder = Builder(Tree("flip").root, sorted(f"build/tests/unit/{path.stem}" for path in (ROOT / "tests/unit").glob("test_*.c")))
    reasons, caught, explained, survivors, void = read_survivors(), 0, 0, [], 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for mutant, found in zip(chosen, pool.map(lambda mutant: hunt(mutant, builder, arguments), chosen)):
            if found == "":
                void += 1
            elif found is not None:
                caught += 1
            elif mutant.key in reasons:
                explained += 1
            else:
                survivors.append(mutant)
                print(f"{mutant.path}:{mutant.number}: {mutant.old.strip()} => {mutant.new.strip()}", flush=True)
    shutil.rmtree(OUT, ignore_errors=True)
    shutil.rmtree(builder.root, ignore_errors=True)
    line = (f"{caught + explained + len(survivors)} mutants of {len(everything)} possible ({void} did not compile or change the code), {caught} caught, "
            f"{explained} survived with a reason, {len(survivors)} survived")
    if arguments.record:
        records.add("flip", {"commit": records.commit(), "command": f"scripts/campaign flip --sample {arguments.sample} --seed {arguments.seed}", "host": records.host(),
                             "setting": {"possible": len(everything), "seeds of the simulation": arguments.seeds}, "anomalies": len(survivors),
                             "figures": {"mutants": caught + explained + len(survivors), "caught": caught, "survived with a reason": explained}})
    print(line)
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
