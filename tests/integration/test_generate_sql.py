"""receiptd generate sql: prints what the daemon prepares, and psql takes it."""

import itertools
import os
import pathlib
import re
import subprocess

import psycopg
import pytest

from sql_fixture import ROOT, SQL, bind_ranges, text_of

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
FOLDERS = ("lane", "control", "actions", "fold", "intake", "serve")
SUBSCRIBERS = {variant: tuple((SQL / f"lane/subscribers/{name}.sql").read_text() for name in variant.split())
               for variant in ("", "folds", "folds_columns", "actions", "folds actions", "folds_columns actions")}


@pytest.fixture
def printed(receiptd):
    """{name: text}; "lane/apply folds" is that variant."""
    out = receiptd.command("generate", "sql").stdout
    found = re.findall(r'^PREPARE "([^"]+)" AS\n(.*?);\n(?=\nPREPARE |\Z)', out, re.MULTILINE | re.DOTALL)
    assert len(dict(found)) == len(found) > 60
    return dict(found)


def test_every_statement_is_its_files_joined_as_they_stand(printed):
    def same(one, other):
        return one.rstrip(";\n") == other.rstrip(";\n")

    for variant, name, since in itertools.product(SUBSCRIBERS, ("lane/apply", "lane/wake"), (None, "-infinity")):
        full = " ".join(f"{name} {variant} {'recent' if since else ''}".split())
        assert same(printed.pop(full), text_of(name, *SUBSCRIBERS[variant], recent_since=since)), full
    for name in ("lane/apply", "lane/wake"):
        rules = ("dedup", "series", "reasons", "gateways", "times")
        assert same(printed.pop(f"{name} rules"), text_of(name, rules=rules))
        for variant, since in (("", None), (" recent", "-infinity")):
            assert same(printed.pop(f"{name} rules dimensions{variant}"),
                        text_of(name, rules=(*rules, "dimensions_echoes", "dimensions", "groups"), dimensions=(("variant", "org_id"),),
                                groups={"customer": "org_id"}, recent_since=since))
    guard = (SQL / "lane/apply/91_unsubscribed.sql").read_text()
    for variant in [variant for variant in SUBSCRIBERS if "actions" in variant]:
        rest = SUBSCRIBERS[variant.removesuffix("actions").strip()]
        assert same(printed.pop(f"lane/apply_unsubscribed {variant}"), text_of("lane/apply", *rest) + guard)
        assert same(printed.pop(f"lane/apply_unsubscribed {variant} recent"), text_of("lane/apply", *rest, recent_since="-infinity") + guard)
    for name in ("lane/timeline", "lane/insert", "lane/insert_parked"):
        assert same(printed.pop(f"{name} recent"), text_of(name, recent_since="-infinity"))
    assert same(printed.pop("lane/blockers"), printed["control/blockers"]), "a lane's connection asks where the control connection waits"
    customers = text_of("serve/messages_of_customer").replace(':"customer"', '"org_id"').replace(':"newest"', '"created_at"')
    assert same(printed["serve/messages_of_customer"], customers)
    assert same(printed["serve/names"], text_of("serve/names").replace(':"schema".:"view"', '"receiptd"."action"'))
    columns = {"range_recipient": "org_id", "range_account": "org_id", "range_sent": "created_at"}
    assert same(printed["lane/range_resolve"], bind_ranges((SQL / "lane/range_resolve.sql").read_text(), columns))
    for name, many in (("serve/funnel", "one"), ("serve/funnels", "many")):
        assert same(printed[name], text_of("serve/funnel").replace(":'many'", f"'{many}'"))
    for name in ("serve/message", "serve/recipients"):
        text = re.sub(r":'has_(?:customer|logical|channel)'", "'true'", text_of(name))
        assert same(printed[name], re.sub(r':"(?:customer|logical|channel)"', '"org_id"', text))
    assert same(printed["serve/pending"], text_of("serve/pending").replace(":'column'", "'org_id'").replace(':"column"', '"org_id"'))
    bound = ("serve/pending", "serve/message", "serve/messages_of_customer", "serve/recipients", "serve/names", "lane/range_resolve", "serve/funnel", "serve/funnels")
    assert all(same(text, text_of(name)) for name, text in printed.items() if name not in bound)
    files = {f"{folder}/{path.stem}" for folder in FOLDERS for path in (SQL / folder).glob("*.sql")}
    assert files <= set(printed), "a file that nobody prepares"


def test_psql_prepares_all_of_it(receiptd, database, printed):
    receiptd.migrate()
    out = receiptd.command("generate", "sql").stdout
    done = subprocess.run(["psql", "-X", "-v", "ON_ERROR_STOP=1", "-d", database.dsn], input="SET search_path = receiptd;\n" + out,
                          text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("PREPARE") == len(printed)


COLUMNS = re.compile(r"/\* Columns of ([^*]+)\. \*/\nenum \{(.*?)\}", re.DOTALL)
READS = re.compile(r"rcpt_pg_rows_(?:text|int|bool)\(\s*[\w>\[\]-]+,\s*[\w -]+,\s*(\w+)\)")


def test_c_names_the_columns_of_answers_in_their_order(receiptd, database, printed):
    """An enumerator is called like its column, with or without a word in front. Only a first column may be read by number."""
    receiptd.migrate()
    named, texts = {"0"}, [path.read_text() for path in (ROOT / "src").rglob("*.[ch]") if path.name != "setup.c"]  # has its SQL beside it
    with psycopg.connect(database.dsn) as connection:
        connection.execute("SET search_path = receiptd")
        for statements, body in itertools.chain.from_iterable(map(COLUMNS.findall, texts)):
            names = re.findall(r"[A-Z]\w*", re.sub(r"/\*.*?\*/", "", body, flags=re.DOTALL))
            named.update(names)
            for statement in re.findall(r"sql/([\w/]+)", statements):
                connection.pgconn.prepare(b"", printed[statement].encode())
                described = connection.pgconn.describe_prepared(b"")
                columns = [described.fname(index).decode() for index in range(described.nfields)][:len(names)]
                assert [column if column in (name.lower(), name.lower().partition("_")[2]) else name
                        for name, column in zip(names, columns)] == columns and len(names) == len(columns), statement
    read = {name for text in texts for name in READS.findall(text) if not name.islower()}
    assert len(read) > 50 and read <= named


CONFIGURED = {
    "": {},
    "folds": {"folds": [{"name": "f", "group_key": ["campaign_id"], "window": "1s", "max_hold": "5s"}]},
    "folds_columns actions": {
        "folds": [{"name": "f", "group_key": ["inbox.channel"], "window": "1s", "max_hold": "5s"}],
        "pipelines": [{"name": "p", "on": "DELIVERED", "webhook": "crm"}],
        "actions": {"allow_private": True, "endpoints": [{"name": "crm", "url": "http://127.0.0.1:9/", "secrets": [SECRET]}]}},
}


def prepared_since(log, begin, database):
    """[(name, text)] in a database as the server's log tells, which begins the following lines of a message with a tab."""
    with log.open("rb") as file:
        file.seek(begin)
        messages = re.split(r"^(?!\t)", file.read().decode(), flags=re.MULTILINE)
    found = [re.search(rf"\] {database} .*duration: [\d.]+ ms  parse (\w+): (.*)", message, re.DOTALL) for message in messages]
    return [(match[1], match[2].replace("\n\t", "\n")) for match in found if match]


@pytest.mark.parametrize("variant", CONFIGURED)
def test_what_is_printed_is_what_the_daemon_prepares(create_world, create_topic, printed, variant):
    if not os.environ.get("RECEIPTD_TEST_SERVICES"):
        pytest.skip("the server's log is not ours to read")
    log = pathlib.Path(os.environ["RECEIPTD_TEST_SERVICES"]) / "postgres.log"
    settings = dict(CONFIGURED[variant])
    if "folds" in settings:
        settings["folds"] = [rule | {"publish": {"kafka": {"topic": str(create_topic(1))}}} for rule in settings["folds"]]
    world = create_world(**settings)
    world.database.execute(f'ALTER DATABASE "{world.database.name}" SET log_min_duration_statement = 0')
    begin = log.stat().st_size
    process = world.installation.start()
    required = {"apply", "wake", "fence", "rollup"} | ({"gather", "positions"} if "folds" in variant else set()) \
        | ({"claim", "apply_unsubscribed"} if "actions" in variant else set())
    process.wait_for(lambda: required <= {name for name, _ in prepared_since(log, begin, world.database.name)}, 60, f"{required} are prepared")
    process.stop()
    expected = {}  # texts of a name in any folder; of a lane's statements, those of the variant
    for name, text in printed.items():
        path, _, suffix = name.partition(" ")
        if suffix == variant or not suffix and f"{name} {variant}" not in printed:
            expected.setdefault(path.split("/")[1], []).append(text)
    for name, text in prepared_since(log, begin, world.database.name):
        assert text.strip().rstrip(";") in expected[name], name
