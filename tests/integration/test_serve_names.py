"""Campaigns have names where the platform's view serve.campaigns says them: in lists, searches, orders and files, for those who may see the campaign."""

import csv
import io
import json
import re
import time
from urllib.parse import quote, unquote

import pytest
from support import reader
from support.site import Site
from support.wait import wait_for

VIEW = "marketing.campaigns"


@pytest.fixture
def site(receiptd, database):
    made = Site(receiptd, database)
    database.execute("CREATE SCHEMA marketing")
    yield made
    if made.process.running:
        made.process.stop()
    made.drop()


def view(site, select):
    """The platform's view, as the role of serve.dsn may read it; the interface starts anew, so it is read at once."""
    site.database.execute(f"DROP VIEW IF EXISTS {VIEW}")
    site.database.execute(f"CREATE VIEW {VIEW} AS {select}")
    site.database.execute(f'GRANT USAGE ON SCHEMA marketing TO "{site.role}"; GRANT SELECT ON {VIEW} TO "{site.role}"')
    site.receiptd.configure(serve={"campaigns": VIEW})
    site.process.stop()
    site.process = reader.start(site.receiptd)


def named(site, token=""):
    return {row["campaign_id"]: (row["name"], row["date"]) for row in site.json("/campaigns", token)["campaigns"]}


def count(database, *campaigns, org="alpha-org"):
    """Campaigns with one message each."""
    for number, campaign in enumerate(campaigns):
        database.execute("INSERT INTO receiptd.message_inbox (message_id, org_id, campaign_id) VALUES (%s, %s, %s)", f"{campaign}-{org}-{number}", org, campaign)


# ---- where they are shown

def test_a_name_is_shown_in_list_funnel_stream_and_files(site):
    assert named(site)["alpha-campaign"] == (None, None), "without the key nothing is read"
    view(site, "SELECT 'alpha-campaign' AS id, E'Früh\u202ejahr & \"Sale\" 50%' AS name, DATE '2026-03-01' AS date")
    name = 'Früh\u202ejahr & "Sale" 50%'
    wait_for(lambda: named(site)["alpha-campaign"] == (name, "2026-03-01"), what="the list has the name")
    assert named(site)["beta-campaign"] == (None, None)
    for path in ("/campaigns/alpha-campaign", "/campaigns/alpha-campaign/funnel"):
        assert (site.json(path)["name"], site.json(path)["date"]) == (name, "2026-03-01")
    stream = reader.Stream(site.process, "/stream?campaign=alpha-campaign", site.token)
    try:
        count(site.database, "alpha-campaign")
        told = wait_for(lambda: [data["funnel"] for event, data in stream.read() if event == "campaign" and data.get("funnel")], what="a funnel in the stream")
        assert (told[0]["name"], told[0]["date"]) == (name, "2026-03-01")
    finally:
        stream.close()
    answer = site.get("/campaigns/alpha-campaign/recipients?status=FAILED")
    rows = list(csv.DictReader(io.StringIO(answer.plain.decode())))
    assert {(row["campaign_id"], row["campaign_name"]) for row in rows} == {("alpha-campaign", name)}
    header = answer.headers["Content-Disposition"]
    assert header.startswith('attachment; filename="Fr_h-jahr-Sale-50-alpha-campaign-FAILED.csv"; filename*=')
    assert unquote(header.partition("UTF-8''")[2]) == "Früh-jahr-Sale-50-alpha-campaign-FAILED.csv"
    whole = site.json("/campaigns/alpha-campaign/recipients?format=json")
    assert (whole["campaign_id"], whole["name"], len(whole["recipients"])) == ("alpha-campaign", name, 31)


@pytest.mark.parametrize("campaign, file", [("11", "11"), ("../../etc/passwd", "etc-passwd"), ("a\r\nSet-Cookie: x=1", "a-Set-Cookie-x-1"), ('"; rm -rf "', "rm--rf"),
                                            ("=1+1", "1-1"), ("ünï", "ünï"), ("x" * 255, "x" * 60), ("春" * 85, "春" * 60), ("...", ""), ("\u202egpj.exe", "gpj.exe")])
def test_files_are_called_after_the_campaign_whatever_its_id(site, campaign, file):
    count(site.database, campaign)
    header = site.get(f"/campaigns/{quote(campaign, safe='')}/recipients").headers["Content-Disposition"]
    found = re.fullmatch(r"attachment; filename=\"([!-~]+)\"; filename\*=UTF-8''([A-Za-z0-9._%-]+)", header)
    assert unquote(found[2]) == f"{file}-recipients.csv", header
    assert found[1] == re.sub(r"[^ -~]", "_", f"{file}-recipients.csv")


def test_recipients_name_the_customer_and_the_channel(site):
    site.database.execute("ALTER TABLE receiptd.message_inbox ADD COLUMN person bigint, ADD COLUMN way text")
    site.database.execute("UPDATE receiptd.message_inbox SET person = 77, way = '=email' WHERE message_id = 'alpha-m1'")
    rows = lambda: list(csv.DictReader(io.StringIO(site.get("/campaigns/alpha-campaign/recipients").plain.decode())))  # noqa: E731
    assert {(row["customer_id"], row["channel"]) for row in rows()} == {("", "")}, "no column is named"
    site.process.stop()
    site.receiptd.configure(inbox={"columns": {"customer_id": "person", "channel": "way"}})
    site.receiptd.command("migrate", "--serve-role", site.role)  # which reads only what is named
    site.process = reader.start(site.receiptd)
    assert {row["message_id"]: (row["customer_id"], row["channel"]) for row in rows()}["alpha-m1"] == ("77", "'=email")
    whole = {row["message_id"]: (row["customer_id"], row["channel"]) for row in site.json("/campaigns/alpha-campaign/recipients?format=json")["recipients"]}
    assert whole["alpha-m1"] == ("77", "=email") and whole["alpha-m2"] == (None, None)


# ---- which row holds

def test_one_row_holds_for_a_campaign_and_rows_without_a_name_for_none(site):
    count(site.database, "11", "12", "13", "14", "15", "16")
    view(site, """SELECT * FROM (VALUES (11, 'old', DATE '2025-01-01'), (11, 'new', '2026-01-01'), (11, 'undated', NULL),
        (12, 'b', '2026-01-01'), (12, 'a', '2026-01-01'), (13, NULL, '2026-01-01'), (14, E' \t\n', '2026-01-01'), (15, ' kept ', NULL),
        (99, 'of no campaign', '2026-01-01'), (NULL, 'of none', '2026-01-01')) v (id, name, date)""")
    wait_for(lambda: named(site)["11"][0], what="names were read")
    assert {id: found for id, found in named(site).items() if "-" not in id} == {
        "11": ("new", "2026-01-01"), "12": ("a", "2026-01-01"), "13": (None, None), "14": (None, None), "15": ("kept", None), "16": (None, None)}
    assert site.get("/campaigns/99").status == 404 and site.json("/campaigns?q=of%20no")["campaigns"] == [], "the view makes no campaign"


@pytest.mark.parametrize("date, expected", [("TIMESTAMPTZ '2026-03-01 23:30:00-05'", "2026-03-02"), ("TIMESTAMP '2026-03-01 23:30:00'", "2026-03-01"),
                                            ("'2026-03-01'::text", "2026-03-01"), ("'1.3.2026'::text", None), ("'2026-13-41'::text", None), ("'infinity'::date", None),
                                            ("20260301", None), ("'{}'::jsonb", None)])
def test_the_date_is_a_day_whatever_the_column_is(site, date, expected):
    view(site, f"SELECT 'alpha-campaign'::varchar AS id, 'n'::name AS name, {date} AS date")
    wait_for(lambda: named(site)["alpha-campaign"] == ("n", expected), what="the day")


def test_a_view_needs_no_date_and_may_have_other_columns(site):
    view(site, "SELECT 'alpha-campaign' AS id, 'n' AS name, 5 AS budget")
    wait_for(lambda: named(site)["alpha-campaign"] == ("n", None), what="the name")


# ---- who sees them

def test_nobody_sees_or_finds_the_name_of_another_organisations_campaign(site):
    count(site.database, "shared", org="alpha-org")
    count(site.database, "shared", org="beta-org")
    view(site, "SELECT c || '-campaign' AS id, c || ' secret' AS name FROM unnest('{alpha,beta}'::text[]) c UNION ALL SELECT 'shared', 'shared secret'")
    wait_for(lambda: named(site)["shared"][0], what="names were read")
    tokens = {org: reader.make_token(site.receiptd, org, "read,support", "--org", f"{org}-org") for org in ("alpha", "beta")}
    for org, other in (("alpha", "beta"), ("beta", "alpha")):
        assert named(site, tokens[org]) == {f"{org}-campaign": (f"{org} secret", None)}
        for sort in ("match", "name", "date", "sent"):
            for query in ("secret", f"{other} secret", "shared"):
                for reverse in ("true", "false"):
                    said = site.json(f"/campaigns?q={quote(query)}&sort={sort}&reverse={reverse}", tokens[org])
                    assert [row["campaign_id"] for row in said["campaigns"]] == ([f"{org}-campaign"] if query == "secret" else [])
        assert site.get(f"/campaigns/{other}-campaign", tokens[org]).status == 404
        answer = site.get("/campaigns/shared/recipients", tokens[org])  # its own messages of a campaign that others send, too
        assert answer.status == 200 and b"secret" not in answer.plain and "secret" not in answer.headers["Content-Disposition"]


def test_where_ids_are_shared_the_view_says_whose_a_row_is(site):
    count(site.database, "11", org="alpha-org")
    count(site.database, "12", org="beta-org")
    count(site.database, "13", org="alpha-org")
    count(site.database, "13", org="beta-org")
    view(site, """SELECT * FROM (VALUES ('11', 'alpha''s', 'alpha-org', DATE '2020-01-01'), ('11', 'beta''s', 'beta-org', '2026-01-01'), ('12', 'beta''s', 'beta-org', NULL),
        ('12', 'nobody''s', NULL, '2026-01-01'), ('13', 'alpha''s', 'alpha-org', NULL), ('alpha-campaign', 'beta''s', 'beta-org', NULL)) v (id, name, org_id, date)""")
    wait_for(lambda: named(site)["11"][0], what="names were read")
    assert {id: name for id, (name, _) in named(site).items()} == {"11": "alpha's", "12": "beta's", "13": None, "alpha-campaign": None, "beta-campaign": None}


# ---- a view that is no good

def answers_quickly(site):
    """However slow the machine is, it does not take as long as the view."""
    begin = time.monotonic()
    for path in ("/campaigns", "/campaigns?q=a&sort=name", "/campaigns/alpha-campaign", "/campaigns/alpha-campaign/recipients"):
        assert site.get(path).status == 200, path
    return time.monotonic() - begin < 30


def test_a_slow_view_holds_nothing_up(site):
    site.receiptd.configure(serve={"statement_timeout": "60s", "connections": 2})
    view(site, "SELECT 'alpha-campaign' AS id, 'n' AS name FROM pg_sleep(59)")
    waits = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'"
    wait_for(lambda: site.database.value(waits) == 1, what="the view is read")
    assert answers_quickly(site) and named(site)["alpha-campaign"] == (None, None)
    assert site.database.value(waits) == 1, "it is still read, by one session"
    site.process.stop()


def test_what_was_read_last_holds_until_the_view_can_be_read_again(site):
    site.receiptd.configure(serve={"statement_timeout": "500ms"})
    site.database.execute("CREATE TABLE marketing.c AS SELECT 'alpha-campaign' AS id, 'one' AS name")
    view(site, "SELECT id, name FROM marketing.c")
    wait_for(lambda: named(site)["alpha-campaign"][0] == "one", what="the first name")
    refused = "reading of names from serve.campaigns failed"
    with site.database.connect() as other, other.transaction():
        other.execute("LOCK TABLE marketing.c")
        site.process.wait_for_log(refused)
        assert answers_quickly(site) and named(site)["alpha-campaign"][0] == "one"
    site.database.execute("UPDATE marketing.c SET name = 'two'")
    wait_for(lambda: named(site)["alpha-campaign"][0] == "two", what="the next name")
    site.database.execute(f"DROP VIEW {VIEW}")
    site.process.wait_for_log(f"serve.campaigns is {VIEW}; HINT: it has to be a view")
    assert "42P01" in site.process.log()
    assert answers_quickly(site) and named(site)["alpha-campaign"][0] == "two"
    site.database.execute(f"CREATE VIEW {VIEW} AS SELECT 'alpha-campaign' AS id, 'three' AS name")
    site.database.execute(f'GRANT SELECT ON {VIEW} TO "{site.role}"')
    wait_for(lambda: named(site)["alpha-campaign"][0] == "three", what="the last name")


@pytest.mark.parametrize("select, code", [("SELECT 1 AS number", "42703"), ("SELECT 'alpha-campaign' AS id, (1 / (random() * 0)::int)::text AS name", "22012")])
def test_a_broken_view_is_told_once_and_hurts_nobody(site, select, code):
    view(site, select)
    wait_for(lambda: code in site.process.log(), what="the log says why")
    assert answers_quickly(site) and named(site)["alpha-campaign"] == (None, None)


def test_a_view_that_the_role_may_not_read_hurts_nobody(site):
    view(site, "SELECT 'alpha-campaign' AS id, 'n' AS name")
    site.process.stop()
    site.database.execute(f'REVOKE ALL ON {VIEW} FROM "{site.role}"')
    site.process = reader.start(site.receiptd)
    site.process.wait_for_log("needs USAGE on its schema and SELECT on it")
    assert answers_quickly(site)


# ---- search and order

def found(site, query, **more):
    options = "".join(f"&{name}={value}" for name, value in more.items())
    return [row["campaign_id"] for row in site.json(f"/campaigns?q={quote(query)}{options}")["campaigns"]]


def test_what_fits_best_is_found_first(site):
    count(site.database, "711", "11", "211", "118", "1100", "41", "50")
    view(site, "SELECT * FROM (VALUES ('41', 'Week 11'), ('50', '11')) v (id, name)")
    wait_for(lambda: named(site)["41"][0], what="names were read")
    site.database.execute("UPDATE receiptd.campaign_changed SET changed_at = now() - length(campaign_id) * interval '1 hour'")
    listed = found(site, "11")
    assert (set(listed[:2]), set(listed[2:4]), set(listed[4:])) == ({"11", "50"}, {"118", "1100"}, {"711", "211", "41"}), "itself, then its beginning, then within"
    assert found(site, "week") == found(site, "EEK 1") == ["41"]
    pages, after = [], ""
    while after is not None:
        page = site.json(f"/campaigns?q=11&limit=2{after and '&after=' + quote(after)}")
        pages += [row["campaign_id"] for row in page["campaigns"]]
        after = page["next"]
    assert pages == listed


def test_each_order_goes_both_ways_page_by_page(site):
    site.database.execute("INSERT INTO receiptd.campaign_funnel_total (campaign_id, status, messages, events)"
                          " SELECT 'x' || n, s, CASE s WHEN 0 THEN 1000 + n WHEN 300 THEN 1000 WHEN 440 THEN n * 7 % 30 ELSE n * 11 % 30 END, 0"
                          " FROM generate_series(10, 39) n, unnest('{0,300,440,600,700,800}'::int2[]) s")
    site.database.execute("INSERT INTO receiptd.campaign_changed SELECT 'x' || n, now() - n * interval '1 minute' FROM generate_series(10, 39) n")
    view(site, "SELECT 'x' || n AS id, chr(65 + n * 17 % 26) || ' ' || n % 2 AS name, DATE '2026-01-01' + n * 13 % 28 AS date FROM generate_series(12, 39) n")
    wait_for(lambda: named(site)["x12"][0], what="names were read")
    figure = {"changed": lambda row: row["changed_at"], "rate": lambda row: -row["delivery_rate"], "problems": lambda row: row["failed"],
              "date": lambda row: row["date"] or "", "targeted": lambda row: row["targeted"], "sent": lambda row: row["sent"], "delivered": lambda row: row["delivered"],
              "opened": lambda row: row["opened"], "clicked": lambda row: row["clicked"], "name": lambda row: (row["name"] or row["campaign_id"]).lower()}
    for sort, of in figure.items():
        for reverse in ("false", "true"):
            rows, after = [], ""
            while after is not None:
                page = site.json(f"/campaigns?q=x&sort={sort}&reverse={reverse}&limit=7{after and '&after=' + quote(after)}")
                rows += page["campaigns"]
                after = page["next"]
            ids = [row["campaign_id"] for row in rows]
            assert len(ids) == len(set(ids)) == 30, (sort, reverse)
            values = [of(row) for row in rows]
            last = sum(value == "" for value in values)
            assert all(value == "" for value in values[len(values) - last:]), "what has no date comes last"
            values = values[:len(values) - last]
            falls = (sort != "name") != (reverse == "true")
            assert values == sorted(values, reverse=falls), (sort, reverse)
            ties = {}
            for id, value in zip(ids, [of(row) for row in rows]):
                ties.setdefault(value, []).append(id)
            assert all(some == sorted(some) for some in ties.values()), (sort, reverse)
    for after in ("x", "3:1:0:", "0:1:1", "0:NaN:0:", "0:1:x:", "-1:1:0:"):
        assert site.get(f"/campaigns?after={quote(after)}").status == 400, after
