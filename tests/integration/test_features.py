"""docs/features.md names a test for each feature; here it is held that they exist."""

import ast
import re

from support.services import ROOT

ROW = re.compile(r"^\| (?P<feature>[^|]+) \| (?P<mark>[ynp]) \| (?P<how>[^|]+) \| (?P<tests>[^|]+) \|$", re.MULTILINE)
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


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
