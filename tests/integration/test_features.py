"""Pages name the tests that show what they say, docs/features.md one for each feature: they exist."""

import ast
import functools
import re

from support.services import ROOT

ROW = re.compile(r"^\| (?P<feature>[^|]+) \| (?P<mark>[ynp]) \| (?P<how>[^|]+) \| (?P<tests>[^|]+) \|$", re.MULTILINE)
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


@functools.lru_cache
def functions_of(path):
    return {node.name for node in ast.walk(ast.parse((ROOT / path).read_text())) if isinstance(node, ast.FunctionDef)}


def test_each_feature_names_tests_that_are_there():
    rows = list(ROW.finditer((ROOT / "docs/features.md").read_text()))
    assert len(rows) >= 25
    for row in rows:
        named = NAMED.findall(row["tests"])
        assert named or row["mark"] == "n", row["feature"]
        for path, name in named:
            assert name in functions_of(path), f"{row['feature']}: {path} has no {name}"


def test_each_test_that_a_page_names_is_there():
    named = [(page.name, *found) for page in (ROOT / "docs").glob("*.md") for found in NAMED.findall(page.read_text())]
    assert "origins.md" in {page for page, *_ in named}
    assert [(page, path, name) for page, path, name in named if name not in functions_of(path)] == []
