"""What a change touches: the plan of scripts/test --changed.

usage: python3 -m support.changed [BASE]

Prints lines "GROUP ITEM" for scripts/test; ITEM is a test file, a step of the group, or * for the whole group. On stderr it says
what was selected and why. C tests follow from the compiler's dependency files, Python tests from the table below.
"""

import fnmatch
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Tests of tests/integration (without test_, Python's without .py) for the files whose path begins so; the longest beginning counts.
# tests/unit/test_changed.py fails where a folder has no row, a row no file, or a test no row.
TESTS = {
    "config/": "prometheus",
    "config/container": "image manifests hardening",
    "config/debian": "hardening",
    "config/grafana": "prometheus",
    "config/kubernetes": "manifests prometheus",
    "config/prometheus": "prometheus alerts manifests",
    "config/receiptd": "notify hardening",
    "config/stream": "stream_recipes",
    "docs/features": "features",
    "docs/scale": "cells",
    "docs/topics": "topic_accounts",
    "docs/tutorial": "tutorial",
    "sql/actions": "sql_actions actions sql_push sql_caps caps generate_sql",
    "sql/command": "commands explain parked positions recent generate_sql",
    "sql/command/audit": "sql_funnel dimensions groups external_partitions rules",
    "sql/command/explain": "explain",
    "sql/command/inbox": "mapped_inbox",
    "sql/command/recent": "recent",
    "sql/control": "control on_call recent generate_sql sql_rules sql_snapshot",
    "sql/erase": "erase",
    "sql/expiry": "expire",
    "sql/fold": "sql_folds folds stream generate_sql",
    "sql/functions": "sql_apply sql_funnel sql_retention sql_groups sql_dimensions rights",
    "sql/functions/action": "sql_actions actions sql_push sql_caps caps sql_windows windows rights",
    "sql/functions/claim": "sql_push rights",
    "sql/functions/push": "sql_push push rights",
    "sql/functions/alias": "sql_origin origin rights",
    "sql/functions/erase": "erase rights",
    "sql/functions/fold": "sql_folds folds rights",
    "sql/functions/group": "sql_groups groups rights",
    "sql/functions/inbox": "mapped_inbox mapped_shapes sql_inbox_view rights",
    "sql/functions/is_suppressed": "suppression sql_suppression rights",
    "sql/functions/lane_of": "lane_of rights",
    "sql/functions/suppression": "suppression sql_suppression rights",
    "sql/functions/messages": "announcements rights",
    "sql/functions/map_inbox": "mapped_inbox mapped_shapes sql_inbox_view rights",
    "sql/intake": "intake origin",
    "sql/lane": "sql_apply sql_counts sql_parking sql_races sql_rules sql_statements flights exact generate_sql plans",
    "sql/lane/decide_recent": "sql_recent recent generate_sql plans",
    "sql/lane/groups": "sql_groups groups generate_sql",
    "sql/lane/suppression": "suppression sql_suppression generate_sql",
    "sql/lane/keys": "sql_rules rules machine generate_sql",
    "sql/lane/range": "sql_ranges ranges generate_sql",
    "sql/messages": "announcements generate_sql",
    "sql/migrate": "roles rights mapped_inbox mapped_shapes sql_inbox_view your_table",
    "sql/partitions": "partitions external_partitions layouts",
    "sql/retire": "retire retire_faults sql_retention sql_parts proofs",
    "sql/serve": "serve serve_names",
    "sql/tables": "rights roles generate_sql sql_apply sql_funnel sql_positions commands",
    "sql/tables/persons": "suppression sql_suppression rights",
    "sql/views/suppression": "suppression sql_suppression rights",
    "sql/views": "sql_funnel sql_groups rights serve",
    "src/actions": "actions sql_actions push caps sql_caps windows lookup",
    "src/actions/lookup": "lookup actions",
    "src/app": "start_stop ready green_light",
    "src/base": "start_stop bad_input metrics",
    "src/commands": "commands generate_sql",
    "src/commands/figures": "commands sql_funnel folds proofs",
    "src/commands/figures/audit": "sql_funnel dimensions groups external_partitions",
    "src/commands/figures/explain": "explain",
    "src/commands/figures/funnel": "commands sql_funnel dimensions",
    "src/commands/generate": "generate_sql",
    "src/commands/inbox": "mapped_inbox mapped_shapes layouts",
    "src/commands/inbox/dead": "commands bad_input",
    "src/commands/inbox/erase": "erase",
    "src/commands/inbox/expire": "expire",
    "src/commands/inbox/parked": "parked",
    "src/commands/inbox/partitions": "partitions external_partitions layouts",
    "src/commands/inbox/recent": "recent",
    "src/commands/inbox/retire": "retire retire_faults",
    "src/commands/inbox/stream": "stream_rows stream_recipes",
    "src/commands/intake": "intake_try commands",
    "src/commands/limits": "hardening",
    "src/commands/migrate": "roles rights mapped_inbox mapped_shapes upgrade",
    "src/commands/push": "push",
    "src/commands/positions": "positions another_server failover",
    "src/commands/run": "start_stop",
    "src/commands/serve": "serve",
    "src/commands/suppressions": "suppression sql_suppression",
    "src/config": "reload control commands schema",
    "src/config/pipelines_lookup": "lookup",
    "src/core": "exact parking bad_input judge sql_apply",
    "src/core/assignment": "rebalance green_light",
    "src/core/machine": "machine",
    "src/core/origin": "origin sql_origin",
    "src/core/record": "exact bad_input parking carried",
    "src/core/rules/stream": "stream",
    "src/core/rules/suppression": "suppression",
    "src/core/rules": "rules rules_said sql_said sql_rules machine dimensions parts sql_parts groups",
    "src/core/trace": "tracing",
    "src/folds": "folds sql_folds stream",
    "src/folds/stream": "stream stream_rows",
    "src/gateways/topic": "topic_accounts",
    "src/gateways": "intake intake_try sns smpp intake_day",
    "src/host": "metrics places control",
    "src/http": "intake serve sns security",
    "src/intake/targets": "cells",
    "src/intake": "intake intake_bounds intake_try intake_day smpp",
    "src/kafka": "consumer.c producer.c transactor.c consumer_faults.c kafka_faults oversized transactional_producers rebalance security versions places",
    "src/messages": "announcements",
    "src/operate": "control ready metrics notify reload on_call",
    "src/postgres": "connection.c connection_setup.c sql_statements database_faults pooler other_servers failover flights nth_failure versions",
    "src/postgres/encode": "sql_apply sql_counts sql_rules exact",
    "src/postgres/flights": "flights sql_races exact",
    "src/receipts": "exact crash parking positions catch_up green_light expire recent changes",
    "src/receipts/recent": "recent sql_recent",
    "src/receipts/redrive": "carried serve_faults",
    "src/serve": "serve serve_api serve_names serve_shares serve_faults",
    "src/topics": "folds actions rolling",
    "src/trace": "tracing",
}

# Other groups for files by pattern (fnmatch; * also matches /).
GROUPS = (
    ("Makefile", "build *", "unit *", "smoke *"),
    ("[!d]*.md", "lint check-docs"),
    ("docs/*", "lint check-docs"),
    ("scripts/*", "lint check-scripts"),
    ("scripts/demo*", "page scripts/demo"),
    ("scripts/lib/*", "smoke *"),
    ("scripts/model", "model *"),
    ("sql/*", "build make all", "smoke *", "lint check-structure"),
    ("src/*.[ch]", "build make all", "smoke *", "lint check-format", "lint check-structure", "simulation planted defects fit"),
    ("include/*.h", "build make all", "smoke *", "lint check-format", "lint check-structure"),
    ("src/core/*", "simulation tests/simulation/test_simulation.c"),
    ("src/serve/page/*", "build make all", "page tests/page"),
    ("tests/*.[ch]", "lint check-format"),
    ("tests/*.py", "lint check-scripts"),
    ("tests/faults/*", "faults *"),
    ("tests/model/*", "model *"),
    ("tests/mutants/*", "simulation planted defects fit"),
    ("tests/page/test_*.py", "page {path}"),
    ("tests/payloads/*", "unit tests/unit/test_intake_payloads.c", "integration tests/unit/test_agreement.py"),
    ("tests/signatures/*", "unit tests/unit/test_intake_signatures.c"),
    ("tests/page/conftest.py", "page tests/page"),
    ("tests/simulation/*", "simulation tests/simulation/test_simulation.c"),
    ("tests/oracle/*.py", "smoke *"),
    ("tests/support/*.py", "smoke *"),
    ("tests/systemd/test_*.py", "systemd {path}"),
    ("tests/unit/test_*.c", "unit {path}"),
    ("tests/unit/test_*.py", "integration {path}"),
    ("tests/integration/test_*.c", "integration-c {path}"),
    ("tests/integration/test_*.py", "integration {path}"),
    ("tests/fresh/*", "lint check-scripts"),
    ("tests/oracle/test_*.py", "integration {path}"),
)
# No test of a plan reads these: the whole run does, or a command of their own.
NOTHING = (".gitignore", ".clang-*", "LICENSE", ".ci/*", ".github/*", "tests/.clang-tidy", "tests/bench/*", "tests/campaigns/*", "tests/coverage/*",
           "tests/fresh/*", "tests/kubernetes/*", "tests/otel/*", "tests/records/*", "tests/sdk/*")
QUICK = ("build *", "unit *", "smoke *")
MOST = 12  # test files beside those that have changed, and
MOST_TIDY = 40  # sources for clang-tidy: about five minutes
SHOWN = 20  # names in a line of what is said


def git(*arguments):
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"git {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout.splitlines()


def changes(base=None):
    """(what it is compared with, the paths that differ); files that git does not know yet have changed, too."""
    unknown = git("ls-files", "--others", "--exclude-standard")
    if base is None:
        unclean = unknown or git("status", "--porcelain")
        base, = ["HEAD"] if unclean else git("merge-base", "main", "HEAD")
    return base, sorted({*git("diff", "--name-only", base, "--"), *unknown})


def row_of(path):
    """The row of the table for a path; a header that other folders include belongs to the folder of its sources."""
    path = re.sub(r"^include/receiptd/", "src/", path)
    return max((row for row in TESTS if path.startswith(row)), key=len, default=None)


def dependencies():
    """What each object is made of: {source: the files that the compiler read for it}, as far as it is built."""
    found = {}
    for file in (ROOT / "build/obj").rglob("*.d"):
        read = file.read_text().split("\n\n")[0].replace("\\\n", " ").split("\n")[0].split()[1:]
        if read:
            found.setdefault(read[0], set()).update(read)
    return found


def headers_of(source, read):
    """The headers of its folder in which a source says what it does: the one with its name, those that it includes, or all that it reads."""
    folder = re.compile("(include/receiptd|src|tests)/" + re.escape(str(Path(source).parent).partition("/")[2]) + r"/[\w-]+\.h$")
    text = (ROOT / source).read_text() if (ROOT / source).exists() else ""
    own = sorted(header for header in read if folder.match(header))
    yield {header for header in own if Path(source).stem.startswith(Path(header).stem)}
    yield {header for header in own if re.search(rf'#include "(\S*/)?{Path(header).name}"', text)}
    yield set(own)


def of_c(path, objects):
    """(items, why) for the C tests that meet a C file of src, include or tests."""
    if path.endswith(".c") and path not in objects:
        return ["unit *"], "build/obj does not know it"
    for headers in headers_of(path, objects[path]) if path.endswith(".c") else [{path}]:
        users = sorted(test for test, read in objects.items() if re.match("tests/(unit|integration)/test_", test) and read & headers)
        if users:
            break
    items = [f"{'unit' if test.startswith('tests/unit/') else 'integration-c'} {test}" for test in users]
    return items, "they include " + " ".join(sorted(headers))


def importing(path):
    """Tests that import a module of the tests."""
    package, name = path.removesuffix(".py").split("/")[-2:]
    return naming(re.compile(rf"^(from {package}\.{name} |from {package} import .*\b{name}\b|import {package}\.{name}\b|(from|import) {name}\b)", re.MULTILINE))


def naming(pattern):
    """The Python tests in whose text the pattern is found; but not the one whose cases are names of files."""
    files = sorted([*ROOT.glob("tests/integration/test_*.py"), *ROOT.glob("tests/unit/test_*.py")])
    files.remove(ROOT / "tests/unit/test_changed.py")
    return [f"integration {file.relative_to(ROOT)}" for file in files if pattern.search(file.read_text())]


def touched(path, objects):
    """[(items, why)] of a changed path, which all run."""
    found = []
    for pattern, *items in GROUPS:
        if fnmatch.fnmatchcase(path, pattern):
            found.append(([item.format(path=path) for item in items if (ROOT / path).exists() or "{path}" not in item], pattern))
    if re.match(r"(src|include|tests/(unit|integration))/.*\.[ch]$", path):
        items, why = of_c(path, objects)
        found.append((items, f"{path}: {why}"))
    if path.startswith("tests/fuzz/"):
        found.append(([f"fuzz {re.search('fuzz_[a-z_]+', path)[0]}" if "fuzz_" in path else "fuzz *"], path))
    return [(items, why) for items, why in found if items]


def related(path):
    """(items, why) of a changed path, of which as many run as there is time for."""
    if re.match(r"tests/(support|oracle|integration)/(?!test_).*\.py$", path):
        return importing(path), f"{path}: they import it"
    if not path.startswith(("src/", "include/", "tests/integration/", "tests/unit/", "tests/support/", "tests/oracle/")):
        return naming(re.compile(rf"\b{re.escape(path)}\b")), f"{path}: they name it"
    return [], ""


def item_of(name):
    """The item for a name in the table."""
    return f"integration-c tests/integration/test_{name}" if name.endswith(".c") else f"integration tests/integration/test_{name}.py"


def in_turn(lists):
    """The first of each list, then the second of each, and so on; each once."""
    places = range(max(map(len, lists), default=0))
    return list(dict.fromkeys(names[place] for place in places for names in lists if place < len(names)))


def plan(paths, objects):
    """({item: why}, [what else is to be said])"""
    items, said, more = {}, [], {}
    for path in paths:
        found, (others, why), row = touched(path, objects), related(path), row_of(path)
        for chosen, reason in found:
            items.update({item: items.get(item, reason) for item in chosen})
        if others:
            more[why] = others
        if row:
            more[f"the row {row} of the table"] = [item_of(name) for name in TESTS[row].split()]
        if any(fnmatch.fnmatchcase(path, pattern) for pattern in NOTHING):
            said.append(f"{path}: no test here")
        elif not found and not others and not row:
            said.append(f"{path}: nothing says what tests it, so the quick level runs")
            items.update({item: items.get(item, path) for item in QUICK})
    wanted = [item for item in in_turn(list(more.values())) if item not in items]
    for item in wanted[:MOST]:
        items[item] = next(why for why, others in more.items() if item in others)
    if wanted[MOST:]:
        said.append("for the whole run, since they take long: " + " ".join(Path(item.split()[1]).name for item in wanted[MOST:]))
    return tidied(items, paths, said), said


def tidied(items, paths, said):
    """With clang-tidy for the sources that have changed."""
    sources = [path for path in paths if re.match(r"src/.*\.c$", path) and (ROOT / path).exists()]
    if len(sources) > MOST_TIDY:
        said.append(f"for the whole run, since it takes long: clang-tidy of {len(sources)} sources")
    elif sources:
        items.update({item: "the changed sources" for item in ["lint check-tidy", *(f"lint {path}" for path in sources)]})
    return items


def with_alone(items):
    """Tests that stop a server run in a group of their own."""
    for item in list(items):
        group, _, path = item.partition(" ")
        if group == "integration" and "mark.alone" in (ROOT / path).read_text():
            items[f"integration-alone {path}"] = items[item]
    return items


def main(base=None):
    base, paths = changes(base)
    items, said = plan(paths, dependencies())
    print(f"changed since {base}: {len(paths) or 'no'} files", *said, sep="\n", file=sys.stderr)
    reasons = {}
    for item, why in sorted(items.items()):
        group, _, name = item.partition(" ")
        reasons.setdefault((group, why), []).append(Path(name).name)
    for (group, why), names in reasons.items():
        print(f"  {group}: {' '.join(names[:SHOWN])}{' …' if len(names) > SHOWN else ''}, for {why}", file=sys.stderr)
    print("\n".join(with_alone(items)))


if __name__ == "__main__":
    main(*sys.argv[1:])
