"""scripts/test --changed chooses what a change touches. Needs no server."""
import re

import pytest

from support import changed

pytestmark = pytest.mark.smoke
ROOT = changed.ROOT
FOLDERS = sorted(str(path.relative_to(ROOT)) for top in ("src", "sql", "config") for path in (ROOT / top).iterdir() if path.is_dir())


def test_each_row_of_the_table_begins_the_path_of_a_file():
    paths = [str(path.relative_to(ROOT)) for top in ("src", "sql", "config", "docs") for path in (ROOT / top).rglob("*") if path.is_file()]
    assert [row for row in changed.TESTS if not any(path.startswith(row) for path in paths)] == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_each_folder_has_a_row(folder):
    assert changed.row_of(folder + "/a.c") not in (None, "config/")
    assert changed.row_of(folder.replace("src/", "include/receiptd/") + "/a.h") == changed.row_of(folder + "/a.h")


def test_each_test_that_the_table_names_exists_and_each_that_exists_is_named():
    named = {changed.item_of(name).split()[1] for tests in changed.TESTS.values() for name in tests.split()}
    assert [path for path in named if not (ROOT / path).exists()] == []
    assert [path.name for path in sorted((ROOT / "tests/integration").glob("test_*.py")) if f"tests/integration/{path.name}" not in named] == []


def test_each_path_that_a_pattern_chooses_exists():
    chosen = [item.split()[1] for _, *items in changed.GROUPS for item in items if " tests/" in item]
    assert [path for path in chosen if not (ROOT / path).exists()] == []


def test_each_step_that_a_pattern_chooses_exists():
    steps = {item.split(" ", 1)[1] for _, *items in changed.GROUPS for item in items if not re.search(r" (tests/|\*$|{path}$)", item)}
    groups = (ROOT / "scripts/lib/groups.sh").read_text()
    checks = re.search(r"for gl_check in ([a-z ]+);", groups)[1].split()
    assert {step for step in steps if f'"{step}"' not in groups} == {f"check-{name}" for name in checks} & steps


OBJECTS = {
    "src/core/lane.c": {"src/core/lane.h", "src/core/batch.h", "src/base/text.h"},
    "src/http/tls.c": {"src/http/http.h", "include/receiptd/base/text.h"},
    "tests/unit/test_lane.c": {"src/core/lane.h"},
    "tests/unit/test_batch.c": {"src/core/batch.h"},
    "tests/integration/test_connection.c": {"src/http/http.h"},
}


@pytest.mark.parametrize("path, items", [
    ("src/core/lane.c", ["unit tests/unit/test_lane.c"]),
    ("src/core/batch.h", ["unit tests/unit/test_batch.c"]),
    ("src/http/tls.c", ["integration-c tests/integration/test_connection.c"]),
    ("src/core/not_built.c", ["unit *"]),
])
def test_c_tests_are_those_that_include_what_the_file_offers(path, items):
    assert changed.of_c(path, OBJECTS)[0] == items


@pytest.mark.parametrize("path, item", [
    ("src/actions/claim.c", "integration tests/integration/test_actions.py"),
    ("include/receiptd/actions/actions.h", "integration tests/integration/test_actions.py"),
    ("sql/serve/names.sql", "integration tests/integration/test_serve_names.py"),
    ("docs/your-table.md", "integration tests/integration/test_your_table.py"),
    ("docs/your-table.md", "lint check-docs"),
    ("scripts/package", "lint check-scripts"),
    ("tests/support/smpp.py", "integration tests/integration/test_smpp.py"),
    ("tests/fuzz/corpus/fuzz_json/1", "fuzz fuzz_json"),
    ("tests/page/test_page.py", "page tests/page/test_page.py"),
])
def test_a_file_chooses_its_tests(path, item):
    assert item in changed.plan([path], {})[0]


def test_a_file_that_nothing_knows_is_said():
    items, said = changed.plan(["nobody/knows/this"], {})
    assert set(items) == set(changed.QUICK) and said == ["nobody/knows/this: nothing says what tests it, so the quick level runs"]


def test_a_change_of_everything_takes_the_first_tests_of_each_row():
    items, said = changed.plan(["src/postgres/x.c", "src/kafka/x.c", "src/serve/x.c"], {})
    chosen = [item for item, why in items.items() if why.startswith("the row")]
    assert chosen[:3] == [changed.item_of(name) for name in ("connection.c", "consumer.c", "serve")]
    assert len(chosen) == changed.MOST and said[0].startswith("for the whole run")


def test_tests_that_stop_servers_run_in_their_own_group():
    item = "integration tests/integration/test_kafka_faults.py"
    assert f"integration-alone {item.split()[1]}" in changed.with_alone({item: "why"})
