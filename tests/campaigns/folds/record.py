"""Records campaigns: one line for each era in campaigns.jsonl, and the table in docs/folds.md."""

import collections
import json
import subprocess

from support.record import replace_between
from support.services import ROOT

RECORDED, PAGE = ROOT / "tests/campaigns/folds/campaigns.jsonl", ROOT / "docs/folds.md"
BEGIN, END = "<!-- folds: begin (scripts/campaign folds --record) -->", "<!-- folds: end -->"


def read(path=RECORDED):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def append(path, era):
    with path.open("a") as file:
        file.write(json.dumps(era) + "\n")


def commit():
    answer = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return answer.stdout.strip() or "?"


def table(eras):
    kinds = collections.Counter()
    for era in eras:
        kinds.update(era["kinds"])
    rows = [("cycles", sum(era["cycles"] for era in eras)),
            ("of them", ", ".join(f"{kind} {n}" for kind, n in sorted(kinds.items()))),
            ("streams (a new database each)", len(eras)), ("seeds", ", ".join(sorted({str(era["seed"]) for era in eras}))),
            ("commits", ", ".join(dict.fromkeys(era["commit"] for era in eras))),
            ("hours", f"{sum(era['seconds'] for era in eras) / 3600:.1f}"),
            ("publications, compared with the replay", f"{sum(era['publications'] for era in eras):,}".replace(",", " ")),
            ("lost or doubled, or anything else that is wrong", sum(era["anomaly"] is not None for era in eras))]
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)])


def write_page():
    replace_between(PAGE, BEGIN, END, [table(read())])
