"""Tables of figures in the documents are what tests/records says (support/records.py). Needs no server."""

import json
import sys

import pytest

from support import records

sys.path.append(str(records.ROOT / "tests/bench"))
import report_rows  # noqa: E402

pytestmark = pytest.mark.smoke


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Writes records into a folder of the test: files(NAME=[run, …])."""
    monkeypatch.setattr(records, "FOLDER", tmp_path)

    def write(**runs):
        for name, lines in runs.items():
            (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))

    return write


def lines_of(page):
    return records.filled(page).splitlines()[1:-1]


def test_the_newest_run_and_the_sums_of_all_stand_in_a_row(files):
    files(kills=[{"date": "2026-01-01", "figures": {"cycles": 1000}, "anomalies": 1},
                 {"date": "2026-01-02T03:04:05Z", "commit": "abc", "figures": {"cycles": 20}, "anomalies": 0}], once=[{"figures": {"defects": 3}}])
    assert lines_of("<!-- newest kills once -->\nold\n<!-- end -->")[2:] == [
        "| kills | 2026-01-02 | abc | 20 cycles | 0 | 2: 1\u202f020 cycles, 1 anomalies |", "| once | – | – | 3 defects | – | 1 |"]


def test_rows_show_the_chosen_columns_of_the_newest_run(files):
    rows = [{"case": "first", "rate": [200000, 100000, 300000], "share": 1.0}, {"case": "second", "share": [0.9, 0.85, 1.0]}, {"case": "third", "other": 1}]
    files(one=[{"rows": [{"case": "old", "rate": 1}]}, {"date": "2026-01-02 03:04 UTC", "runs": 2, "host": "2 × X", "rows": rows}])
    assert lines_of("<!-- rows one\n   | case | rate | share … -->\n<!-- end -->")[1:] == [
        "|  | rate | share |", "|---|---|---|", "| first | 200\u202f000 | 1.00 |", "| second | – | 0.90 (0.85 … 1.00) |", "", "`one`: 2026-01-02, 2 runs, 2 × X."]
    assert lines_of("<!-- rows one[sec|thi] | case | share -->\n<!-- end -->")[2:3] == ["| second | 0.90 |"]


def test_a_run_is_added_and_the_pages_follow(files, tmp_path, monkeypatch):
    page = tmp_path / "docs/page.md"
    page.parent.mkdir()
    page.write_text("before\n<!-- newest kills -->\n<!-- end -->\nafter\n")
    monkeypatch.setattr(records, "ROOT", tmp_path)
    records.add("kills", {"figures": {"cycles": 1}})
    records.add("kills", {"figures": {"cycles": 2}})
    assert "| kills | – | – | 2 cycles | – | 2: 3 cycles |" in page.read_text()
    assert page.read_text().startswith("before\n<!-- newest kills -->\n") and page.read_text().endswith("<!-- end -->\nafter\n")


@pytest.mark.parametrize("page", sorted(path.name for path in (records.ROOT / "docs").glob("*.md")))
def test_tables_of_a_page_are_what_the_records_say(page):
    text = (records.ROOT / "docs" / page).read_text()
    assert records.filled(text) == text, "scripts/update-docs writes it again"


def test_the_figure_of_the_readme_is_that_of_the_newest_load_test():
    run = records.read("bench-loadtest")[-1]
    seconds = next(row["seconds"] for row in run["rows"] if row["traffic"] == "single")
    readme = (records.ROOT / "README.md").read_text()
    assert f"{records.cell(seconds, 1, True)} from Kafka" in readme.replace(" s (", " (") and run["date"][:10] in readme


def test_each_part_of_the_bench_has_rows():
    """A figure of several runs is median, least and most; without a figure there is no column."""
    found = {"median": 2.0, "min": 1.0, "max": 3.04, "runs": 2}
    result = {"figures": {"full": {"events_per_second": found, "server_us_per_event": found}}, "events": 5}
    assert report_rows.rows_of("limit", result) == [{"case": "UPDATE of the whole table, one statement", "events/s": [2, 1, 3], "server µs": [2.0, 1.0, 3.0]}]
    assert report_rows.setting_of("limit", result) == {"events": 5}
    parts = {path.stem.removeprefix("bench-") for path in records.FOLDER.glob("bench-*.jsonl")}
    assert parts and all(callable(getattr(report_rows, part)) for part in parts)
