"""What stands in two files, because C, SQL and the documents each need it, says the same in both. Needs no server."""
import json
import pathlib
import re
import subprocess

import pytest

pytestmark = pytest.mark.smoke
ROOT = pathlib.Path(__file__).resolve().parents[2]


def read(path):
    return (ROOT / path).read_text()


SQL = {str(path.relative_to(ROOT / "sql")): re.sub(r"--.*", "", path.read_text()) for path in (ROOT / "sql").rglob("*.sql")}
GATEWAYS = re.findall(r"\bX\((\w+)\)", read("src/gateways/gateways.h"))


def constant(path, name):
    return int(re.search(rf"#define {name} +(\d+)", read(path))[1])


# Gateways by the file of their adapter; adapters of one vendor share a file.
ADAPTERS = {name: path for path in (ROOT / "src/gateways/adapters").glob("*.c")
            for name in re.findall(r"^const struct rcpt_gateway rcpt_gateway_(\w+)", path.read_text(), re.MULTILINE)}


def test_the_list_of_adapters_is_that_of_the_files_and_of_the_documents():
    assert GATEWAYS == sorted(ADAPTERS)
    table = read("docs/gateways.md").split("| `gateway` | reads |")[1].split("\n\n")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == GATEWAYS
    assert f"of {len(GATEWAYS)} gateways" in read("README.md")


@pytest.mark.parametrize("name", GATEWAYS)
def test_each_status_and_flag_of_an_adapter_has_a_sample(name):
    rows = re.findall(r'^\s+\{"[^"]*",\s*(?:"[^"]*"|NULL),\s*("\w+"|NULL),\s*("\w+"|NULL)\}', ADAPTERS[name].read_text(),
                      re.MULTILINE)
    together = [other for other in GATEWAYS if ADAPTERS[other] == ADAPTERS[name]]
    events = [event for other in together for case in json.loads(read(f"tests/payloads/{other}.json"))["cases"] for event in case["expect"]]
    sampled = {event["status"] for event in events if "status" in event} | {flag for event in events for flag in event.get("flags", [])}
    assert {word.strip('"') for row in rows for word in row} - {"NULL"} <= sampled


@pytest.mark.parametrize("field", ("link", "cost", "currency"))
def test_each_adapter_that_reads_a_link_or_a_cost_is_named_and_has_a_sample(field):
    readers = {name for name in GATEWAYS if re.search(rf"(\.|draft->){field} = ", ADAPTERS[name].read_text())}
    sampled = {name for name in GATEWAYS if any(field in event for case in json.loads(read(f"tests/payloads/{name}.json"))["cases"] for event in case["expect"])}
    table = dict(re.findall(r"^\| `(link|cost|currency)` \| (.*) \|$", read("docs/gateways.md").split("## Links and costs")[1].split("## ")[0], re.MULTILINE))
    named = set(re.findall(r"`(\w+)`", table[field])) & set(GATEWAYS)
    silent = {"plivo", "vonage_sms"}  # their receipts name a cost and no currency
    assert readers == sampled == (named if field != "currency" else set(re.findall(r"`(\w+)`", table["cost"])) - (named & silent))


def test_each_command_has_a_row_on_its_page():
    commands = re.findall(r'^        \.name = "([\w-]+)"', read("src/commands/command.c"), re.MULTILINE)
    assert set(re.findall(r"^\| `receiptd ([\w-]+)", read("docs/commands.md"), re.MULTILINE)) == set(commands)


def test_shards_are_as_many_in_c_as_in_sql():
    actions, folds = constant("src/actions/internal.h", "ACTIONS_SHARDS"), constant("src/folds/internal.h", "FOLDS_SHARDS")
    assert f"hash & {actions - 1})" in SQL["functions/action_lane_of.sql"]
    assert re.findall(r"generate_series\(0, (\d+)\)", SQL["tables/actions.sql"]) == [str(actions - 1)]
    assert re.search(r"INSERT INTO fold_lane \(lane\) VALUES (.*);", SQL["tables/folds.sql"])[1] == ", ".join(
        f"({lane})" for lane in range(folds))


def test_the_code_of_the_first_flag_is_the_same_everywhere():
    first = constant("include/receiptd/core/ladder.h", "RCPT_LADDER_FIRST_FLAG_CODE")
    for name, text in SQL.items():
        assert {int(code) for code in re.findall(r"\b9\d{3}\b", text)} <= {first, first - 1}, name


def test_the_results_of_actions_have_the_same_words():
    words = re.search(r"names\[\] = \{(.*?)\}", read("src/actions/results.c"))[1]
    named = re.findall(r"\bresult (?:=|IN) (\(.*?\)|'\w+')|CASE w\.result (.*?) END", SQL["functions/actions_finish.sql"], re.DOTALL)
    known = {word for pair in named for part in pair for word in re.findall(r"(?:WHEN )?'(\w+)'", part)} - {"pending"}
    assert set(re.findall(r'"(\w+)"', words)) == known


def test_each_file_of_tables_is_a_migration_of_its_version():
    """The baseline's files have the names of their subjects, those of a later version its number before that."""
    text = read("src/commands/migrate/plan.c")
    baseline = int(re.search(r"^#define BASELINE (\d+)$", text, re.MULTILINE)[1])
    rows = [(int(version) if version.isdigit() else baseline, file) for version, file in re.findall(r'\{(\w+), "(tables/\w+)"\}', text)]
    assert sorted(f"{file}.sql" for _, file in rows) == sorted(name for name in SQL if name.startswith("tables/"))
    assert rows == sorted(rows, key=lambda row: row[0])
    assert all(version == int((re.match(r"tables/(\d+)_", file) or [0, baseline])[1]) for version, file in rows)
    written = {int(number) for _, file in rows for number in re.findall(r"schema_version \(version\) VALUES \((\d+)\)", SQL[f"{file}.sql"])}
    assert written == {version for version, _ in rows}


def test_the_baseline_is_written_as_it_is():
    """Steps from an earlier form are for later versions. Storage has no other form before PostgreSQL 16, compression none before 14."""
    for name in (name for name in SQL if re.match(r"tables/[a-z]", name)):
        for statement in re.findall(r"\b(?:ALTER|DROP|IF NOT EXISTS|ON CONFLICT)\b.*", re.sub(r"--.*", "", SQL[name])):
            assert re.search(r" SET (STORAGE|COMPRESSION) ", statement), (name, statement)


def test_each_key_of_the_configuration_stands_in_a_section_of_the_pages():
    text = read("src/config/table.c")
    sections = re.findall(r'^    \{"(\w*)",\s+".*?ROWS\((\w+)\)\},$', text, re.MULTILINE | re.DOTALL)
    arrays = dict(re.findall(r"^static const struct rcpt_config_row (\w+)_rows\[\] = \{\n(.*?)^\};", text, re.MULTILINE | re.DOTALL))
    keys = {name: re.findall(r'^ +[A-Z]+\(\s*(?:[A-Z]+, )?"([\w.]+)"', rows, re.MULTILINE) for name, rows in arrays.items()}
    assert sum(map(len, keys.values())) > 150 and sorted(name for _, name in sections) == sorted(arrays)
    assert all((key.partition(".")[0] if "." in key else "") == section for section, name in sections for key in keys[name])


def test_something_counts_each_metric():
    sources = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.c"))
    metrics = re.findall(r"^METRIC\((\w+),", read("include/receiptd/host/metrics_rows.h"), re.MULTILINE)
    assert len(metrics) > 80 and [name for name in metrics if not re.search(rf"\bRCPT_METRIC_{name}\b", sources)] == []


def panels(found):
    for panel in found:
        yield from panels(panel.get("panels", []))
        yield f"panel {panel['title']}", " ".join(target["expr"] for target in panel.get("targets", []))


def test_each_metric_is_looked_at_where_its_row_says():
    rules = re.split(r"- alert: ", read("config/prometheus/rules.yaml"))[1:]
    looking = [(f"alert {rule.split()[0]}", re.search(r"expr:(.*?)\n +(?:for|labels):", rule, re.DOTALL)[1]) for rule in rules]
    looking += panels(json.loads(read("config/grafana/receiptd.json"))["panels"])
    looking += [(f"{page.name}, {section.partition(chr(10))[0]}", section) for page in (ROOT / "docs").glob("*.md") if page.name != "metrics.md"
                for section in re.split(r"^#+ ", page.read_text(), flags=re.MULTILINE)[1:]]
    rows = re.findall(r'^METRIC\(\s*\w+, "(\w+)".*?\.who = "(.+?)"', read("include/receiptd/host/metrics_rows.h"), re.MULTILINE | re.DOTALL)
    assert len(rows) == len(re.findall(r"^METRIC\(", read("include/receiptd/host/metrics_rows.h"), re.MULTILINE))
    for name, who in rows:
        seen = re.compile(rf"\b{name}(?:_bucket|_sum|_count)?\b")
        assert any(place == who and seen.search(text) for place, text in looking), f"{name}: {who} does not look at it"


def test_a_key_that_may_change_is_copied_only_where_a_reload_copies_it_again():
    """A module reads the configuration when it needs a value, or it has a function for the reload. Actions begin anew as a whole."""
    row = r'^    [A-Z]+\(\s*(?:[A-Z]+, )?"[\w.]+",\s+(?:LIST_)?(?:AT\()?([\w.]+)\)?,([^"]*)'
    members = [re.escape(member) for member, flags in re.findall(row, read("src/config/table.c"), re.MULTILINE) if "RELOADABLE" in flags]
    copy = re.compile(rf"(?:\.|->)\w+ = (?:\(\w+\))?[\w>-]*config->(?:{'|'.join(members)})\b")
    assert len(members) > 40
    for path in (ROOT / "src").rglob("*.c"):
        text, folder = path.read_text(), path.relative_to(ROOT / "src").parts[0]
        if folder not in ("config", "commands", "actions", "host") and copy.search(text):
            assert re.search(r"_apply_config\(|_reload\(", text), path
        if "= host_pg_settings(" in text:
            assert any("_set_dsn(" in other.read_text() for other in path.parent.glob("*.c")), folder


def test_whatever_is_made_of_the_sources_is_made_by_a_test_or_said_to_be_made_by_hand():
    rows = [row.split(" | ") for row in read("docs/contributing.md").split("| artefact |")[1].split("\n\n")[0].splitlines()[2:]]
    named = " ".join(row[0] for row in rows)
    folders = [path for parent in ("config", "docs") for path in (ROOT / parent).iterdir() if path.is_dir()]
    assert len(folders) > 5 and [path for path in folders if f"`{path.relative_to(ROOT)}`" not in named] == []
    for artefact, command, maker in rows:
        tests = re.findall(r"`(tests/[\w/.]+)`", maker)
        assert tests or maker.startswith("by hand"), artefact
        names = [pathlib.Path(path).name for path in re.findall(r"`([\w.]+/[\w/.-]+)`", f"{artefact} {command}")]
        assert all(any(name in read(test) for name in names) for test in tests), artefact


def keys_of_the_reference():
    """(key, its value, whether a reload takes it) of each row of docs/configuration.md; a field of a list's entry as LIST[].FIELD."""
    listed = ""
    for line in read("docs/configuration.md").splitlines():
        row = re.match(r"\| `([\w.]+)` \| ([^|]+) \|", line)
        if entry := re.match(r"An entry of `([\w.]+)`", line):
            listed = entry[1]
        elif line.startswith("#"):
            listed = ""
        elif row:
            yield (f"{listed}[].{row[1]}", row[2], True) if listed else (row[1], row[2], "reload" in row[2])


def test_each_secret_stands_in_the_table_of_secrets_with_the_way_to_rotate_it():
    rows = [row.strip("| ").split(" | ") for row in read("docs/security.md").split("| key | who asks for it |")[1].split("\n\n")[0].splitlines()[2:]]
    told = {re.match(r"`([\w.\[\]]+)`", row[0])[1]: row[3].startswith("reload") for row in rows}
    properties = told.pop("kafka.properties")  # some of them: docs/operations.md, Reload
    secrets = {key: reload for key, kind, reload in keys_of_the_reference() if "secret" in kind}
    assert len(secrets) > 10 and properties and told == secrets
    assert all(len(row) == 4 and all(row) for row in rows)


def test_the_table_of_rights_is_made_of_the_sql_that_grants():
    """docs/security.md, by scripts/update-docs; tests/integration/test_rights.py compares it with the catalogs."""
    result = subprocess.run([ROOT / "scripts/rights", "--check"], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_picture_of_the_folders_is_that_of_their_headers():
    """docs/architecture.md, by scripts/update-docs."""
    picture = subprocess.run([ROOT / "scripts/structure", "--picture"], capture_output=True, text=True, check=True).stdout
    assert picture == re.search(r"<!-- public headers.*?-->\n(.*?)<!-- end -->", read("docs/architecture.md"), re.DOTALL)[1]


def test_no_work_waits_for_a_lock_that_needs_no_right():
    """Every role that may connect may take an advisory lock: turns are rows and tables (sql/tables/turns.sql)."""
    sources = SQL | {str(path): path.read_text() for path in (ROOT / "src").rglob("*.c")}
    assert [name for name, text in sources.items() if re.search(r"pg_\w*advisory", text)] == []
    lanes = int(re.search(r'INTEGER\(\s*"lanes", [^)]*?, (\d+),\s+"', read("src/config/table.c"))[1])
    assert f"'ranges', n FROM generate_series(0, {lanes - 1}) n" in SQL["tables/turns.sql"]
