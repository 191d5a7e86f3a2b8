"""The columns of message_inbox, as include/receiptd/config/inbox_columns.h lists them, for tests that run the files of sql/migrate themselves."""

import json
import re

from support.services import ROOT


def columns():
    """Of each: name, type, constraint, filler, feature."""
    text = re.sub(r"\\\n", " ", (ROOT / "include/receiptd/config/inbox_columns.h").read_text())
    rows = re.findall(r'X\((\w+), "([^"]*)", "((?:\\.|[^"\\])*)", (\w+), "([^"]*)"', text)
    return [(name, type, constraint.replace('\\"', '"'), filler.lower(), feature) for name, type, constraint, filler, feature in rows]


def variables(theirs):
    """Those of the files, for names in the table; without first times."""
    rows = [{"n": n, "ours": name, "theirs": theirs.get(name, name) or None, "type": type, "definition": f"{type} {constraint}".strip(), "filler": filler,
             "feature": feature, "wanted": not feature and theirs.get(name) != "", "named": False}
            for n, (name, type, constraint, filler, feature) in enumerate(columns(), 1)]

    def filled_by(filler):
        return ", ".join(row["ours"] for row in rows if row["filler"] == filler and not row["feature"])

    return {"inbox_columns": json.dumps(rows), "inbox_definitions": ",\n    ".join(f"{row['ours']} {row['definition']}" for row in rows),
            "platform_columns": filled_by("platform"), "receiptd_columns": filled_by("receiptd")}
