"""receiptd generate sql: prints what the daemon prepares, and psql takes it."""

import itertools
import os
import pathlib
import re
import subprocess

import psycopg
import pytest

from sql_fixture import EXTRA, ROOT, SQL, bind_ranges, text_of

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
NOT_PRINTED = {"lane/begin", "lane/commit", "lane/rollback"}  # they cannot be prepared by PREPARE
FOLDERS = ("lane", "control", "actions", "fold", "intake", "serve")


@pytest.fixture
def printed(receiptd):
    """{name: text}; "lane/decide recent" is that variant."""
    out = receiptd.command("generate", "sql").stdout
    found = re.findall(r'^PREPARE "([^"]+)" AS\n(.*?);\n(?=\nPREPARE |\Z)', out, re.MULTILINE | re.DOTALL)
    assert len(dict(found)) == len(found) > 60
    return dict(found)


def pieces_of(name):
    """A file between its variables."""
    text = (SQL / f"{name}.sql").read_text().rstrip(";\n").replace(':"column"', '"created_at"').replace(":'since'", "'{\"-infinity\"}'")
    return re.split(rf"(?<![:\w]):(?:{'|'.join(EXTRA)})\b", text)


def test_every_statement_is_its_file_as_it_stands(printed):
    def same(one, other):
        return one.rstrip(";\n") == other.rstrip(";\n")

    texts = {name: printed.pop(name) for name in [*printed] if name.startswith("lane/decide")}
    assert set(texts) == {"lane/decide", "lane/decide recent", "lane/decide rules", "lane/decide rules recent"}
    for variant, text in texts.items():
        pieces = pieces_of("lane/decide_recent" if variant.endswith("recent") else "lane/decide")
        assert re.fullmatch(".*".join(map(re.escape, pieces)), text.rstrip(";\n"), re.DOTALL), f"{variant} has more of its file than its variables"
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
    for variant in ("rules", "rules recent"):
        assert same(printed.pop(f"lane/wake {variant}"), text_of("lane/wake").replace("NULL AS payload", "CASE WHEN octet_length(g.payload) <= 16384 THEN convert_from(g.payload, 'UTF8') END AS payload"))
    candidates = text_of("expiry/candidates").replace(':"part_schema".:"part_table"', '"receiptd"."message_inbox"')
    assert same(printed["expiry/candidates"], re.sub(r':("(?:message_id|status|updated_at)")', r"\1", candidates))
    bound = ("expiry/candidates", "serve/pending", "serve/message", "serve/messages_of_customer", "serve/recipients", "serve/names", "lane/range_resolve", "serve/funnel", "serve/funnels")
    assert all(same(text, text_of(name)) for name, text in printed.items() if name not in bound)
    files = {f"{folder}/{path.stem}" for folder in FOLDERS for path in (SQL / folder).glob("*.sql")}
    assert files - {"lane/decide", "lane/decide_recent"} - NOT_PRINTED <= set(printed), "a file that nobody prepares"


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
    "stream": {"stream": {"mode": "state", "columns": ["org_id"]}},
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
    status_stream = settings.pop("stream", None)
    world = create_world(**settings)
    if status_stream:
        world.installation.configure(stream={"topic": str(create_topic(1)), **status_stream})
    world.database.execute(f'ALTER DATABASE "{world.database.name}" SET log_min_duration_statement = 0')
    begin = log.stat().st_size
    process = world.installation.start()
    required = {"decide", "wake", "fence", "rollup"} | ({"gather", "positions"} if "folds" in variant else set()) | ({"stream_claim"} if "stream" in variant else set()) \
        | ({"claim"} if "actions" in variant else set())
    process.wait_for(lambda: required <= {name for name, _ in prepared_since(log, begin, world.database.name)}, 60, f"{required} are prepared")
    process.stop()
    expected = {}  # texts of a name in any folder
    for name, text in printed.items():
        expected.setdefault(name.partition(" ")[0].split("/")[1], []).append(text)
    for name, text in prepared_since(log, begin, world.database.name):
        text = text.strip().rstrip(";")
        if name == "decide":  # what it returns is of the configuration
            assert re.fullmatch(".*".join(map(re.escape, pieces_of("lane/decide"))).rstrip(), text, re.DOTALL)
        elif text not in ("BEGIN", "COMMIT", "ROLLBACK"):
            assert text in expected[name], name
