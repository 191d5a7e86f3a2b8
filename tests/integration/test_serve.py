"""receiptd serve: what it shows is what the database says, and nobody sees what belongs to another."""

import csv
import gzip
import http.client
import io
import json
import os
import random
import re
import resource
import signal
import socket
import time
import urllib.request
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import psycopg
import pytest
from prometheus_client.parser import text_string_to_metric_families
from psycopg import sql
from psycopg.conninfo import make_conninfo

from support import reader
from support.openapi import Description
from support.operations import ControlSocket
from support.services import ROOT
from support.site import REDRIVE, SECRET, Site, bury, letters, operator, redrive
from support.wait import wait_for

HEADERS = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}


@pytest.fixture
def create_site(receiptd, database):
    made = []

    def create(**settings):
        made.append(Site(receiptd, database, **settings))
        return made[-1]

    yield create
    for site in made:
        if site.process.running:
            site.process.stop()
        site.drop()


@pytest.fixture
def site(create_site):
    return create_site()


@pytest.fixture
def control(receiptd):
    made = ControlSocket(receiptd)
    yield made
    made.close()


# ---- what it shows ---------------------------------------------------------------------------------------------------

def test_a_funnel_is_what_the_view_says(site):
    found = site.json("/campaigns/alpha-campaign/funnel")
    truth = {name: (messages, events, current) for name, messages, events, current in site.database.query(
        "SELECT status_name, messages, events, current FROM receiptd.campaign_funnel WHERE campaign_id = 'alpha-campaign'")}
    shown = {row["name"]: (row["messages"], row["events"], row["current"]) for row in found["statuses"] if row["messages"] or row["events"]}
    assert shown == {name: row for name, row in truth.items() if name != "COMPLAINED"}
    assert [(row["name"], row["messages"]) for row in found["flags"] if row["messages"]] == [("COMPLAINED", 1)]
    rates = dict(site.database.query("SELECT kpi, value FROM receiptd.campaign_kpi WHERE campaign_id = 'alpha-campaign'"))
    rates["delivery_rate"] = rates.pop("delivered_per_sent")
    assert {row["name"]: row["value"] for row in found["rates"]} == rates and found["rates"][0].keys() == \
        {"name", "value", "numerator", "denominator", "label"}
    assert found["org_id"] == "alpha-org" and found["as_of"] == "2025-11-24T16:00:00.123Z"
    kinds = {row["name"]: row["kind"] for row in found["statuses"]}
    assert (kinds["CLICKED"], kinds["FAILED"], kinds["SENT"]) == ("success", "failure", "open")
    parents = {row["name"]: row["parent"] for row in found["statuses"]}
    assert parents["SENT"] == "IN_GTW" and parents["TARGETED"] is None
    assert site.json("/campaigns/alpha-campaign") == found


def test_all_opens_are_never_fewer_than_opened_messages(site):
    """A click says that its message was opened, though no receipt of an open came."""
    site.database.execute("INSERT INTO receiptd.counter_delta (kind, campaign_id, status, messages, events)"
                          " VALUES ('funnel', '{alpha-campaign,alpha-campaign}', '{700,800}', '{4,2}', '{3,9}')")
    rates = {row["name"]: row["value"] for row in site.json("/campaigns/alpha-campaign/funnel")["rates"]}
    told = json.loads(site.receiptd.command("funnel", "alpha-campaign", "--format", "json").stdout)["kpis"]
    views = dict(site.database.query("SELECT kpi, value FROM receiptd.campaign_kpi WHERE campaign_id = 'alpha-campaign'"))
    for found in (rates, {name: one["value"] for name, one in told.items()}, views):
        assert found["total_opens_per_delivered"] == found["opened_per_delivered"] == 4 / 21
        assert found["total_clicks_per_delivered"] == 9 / 21, "receipts where they are more"


@pytest.mark.parametrize("timestamp", [9 * 10 ** 18, 253402300799000, 1795782291000000000, 1795782291000000, -1, 0, -(2 ** 63)])
def test_a_timestamp_that_means_nothing_hides_no_figure(site, timestamp):
    """One that an older version stored: it comes from the producer, and no broker before 4.0 checks it."""
    site.database.execute("UPDATE receiptd.consumer_progress SET anchor_timestamp = %s", timestamp)
    for path in ("/campaigns", "/campaigns/alpha-campaign/funnel", "/status"):
        as_of = site.json(path)["as_of"]
        assert (as_of is not None) == (timestamp > 0) and (as_of or "") <= time.strftime("%Y-%m-%dT%H:%M:%S.999Z", time.gmtime()), path
    (partition,) = site.json("/status")["partitions"]
    assert (partition["position"], partition["newest_at"] is None) == (100, timestamp <= 0)


def test_a_message_shows_why_and_through_whom_and_whose_it_is(create_site, receiptd):
    receiptd.configure(inbox={"columns": {"customer_id": "customer_id", "logical_id": "logical_id"}}, counters={"groups": ["customer", "logical"]})
    site = create_site()
    plain = site.json("/messages/alpha-m6")
    assert (plain["customer"], plain["logical"], plain["parts"]) == (None, None, None)
    site.database.execute("INSERT INTO receiptd.message_inbox (message_id, org_id, campaign_id, status, customer_id, logical_id)"
                          " VALUES ('alpha-long', 'alpha-org', 'alpha-campaign', 440, '4711', 'alpha-m1')")
    site.database.execute("INSERT INTO receiptd.message_part (message_id, parts, delivered, delivered_at) VALUES ('alpha-long', 3, '{1,3}', ARRAY[now(), now()])")
    site.database.execute("DELETE FROM receiptd.dead_letter")
    site.database.execute("""INSERT INTO receiptd.message_timeline (message_id, topic, partition, "offset", index, status, at, old, new, gained, gateway, reason, reason_class,
        event_id, part, parts, waited) VALUES ('alpha-long', 't', 0, 1, 0, 440, now(), 300, 440, 0, 'kannel', '452 4.2.2 mailbox full', 'mailbox_full', 'e', NULL, NULL, NULL),
        ('alpha-long', 't', 0, 2, 0, 600, now(), NULL, NULL, 0, NULL, NULL, NULL, NULL, 1, 3, 'part'), ('alpha-long', 't', 0, 3, 0, 600, now(), NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
        ('alpha-long', 't', 0, 4, 0, 600, now(), NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL)""")
    site.database.execute("""INSERT INTO receiptd.dead_letter (topic, partition, "offset", index, lane, reason) VALUES ('t', 0, 4, 0, 0, 'other_organisation')""")
    found = site.json("/messages/alpha-long")
    assert (found["customer"], found["logical"], found["parts"]) == ("4711", "alpha-m1", {"parts": 3, "delivered": [1, 3]})
    assert [one["effect"] for one in found["receipts"]] == ["applied", "part", "waited", "refused"]
    assert {name: found["receipts"][0][name] for name in ("gateway", "reason", "reason_class", "event_id")} == {
        "gateway": "kannel", "reason": "452 4.2.2 mailbox full", "reason_class": "mailbox_full", "event_id": "e"}
    assert (found["receipts"][1]["part"], found["receipts"][1]["parts"]) == (1, 3)


def test_a_funnel_shows_how_long_messages_took(site):
    site.database.execute("INSERT INTO receiptd.counter_delta (kind, campaign_id, at, key, status, messages, events)"
                          " VALUES ('time_to_deliver', '{alpha-campaign}', '{-infinity}', '{1024}', '{600}', '{7}', '{0}')")
    (bucket,) = site.json("/campaigns/alpha-campaign/funnel?by=time_to_deliver")["by"]
    assert (bucket["key"], bucket["statuses"][0]["code"], bucket["statuses"][0]["messages"]) == ("1024", 600, 7)
    assert site.json("/campaigns/alpha-campaign/funnel?by=time_to_open")["by"] == []


# Values that PostgreSQL writes in one way and JSON in another.
EXPIRING = {"Brand": ("text", "'acme'", "acme"), 'it"s': ("boolean", "true", "true"), "tags": ("text[]", "'{a,b}'", '["a", "b"]'),
            "born": ("timestamptz", "'2025-01-02 03:04:05Z'", "2025-01-02T03:04:05+00:00"), "n": ("numeric", "1.50", "1.50"),
            "value": ("text", "'a\\b'", "a\\b")}


def test_pending_reads_the_columns_of_its_rules(site):
    """By the role of readers, which may read no other columns; the daemon's `receiptd funnel` says the same."""
    site.process.stop()
    site.receiptd.configure(inbox={"expiry": [{"column": name, "value": value, "after": "72h"} for name, (_, _, value) in EXPIRING.items()]})
    for number, (column, (kind, written, _)) in enumerate(EXPIRING.items()):
        name = sql.Identifier(column)
        site.database.execute(sql.SQL("ALTER TABLE receiptd.message_inbox ADD COLUMN {} {}").format(name, sql.SQL(kind)))
        site.database.execute(sql.SQL("UPDATE receiptd.message_inbox SET status = 300, {} = {} WHERE message_id = {}").format(
            name, sql.SQL(written), sql.Literal(f"alpha-m{number}")))
    site.receiptd.command("migrate", "--serve-role", site.role)
    site.process = reader.start(site.receiptd)
    found = site.json("/campaigns/alpha-campaign?pending=true")["pending"]
    assert found["messages"] == len(EXPIRING)
    assert found == json.loads(site.receiptd.command("funnel", "alpha-campaign", "--format", "json").stdout)["pending"]


def test_a_column_of_a_rule_that_the_inbox_does_not_have_is_named(site):
    site.process.stop()
    site.receiptd.configure(inbox={"expiry": [{"column": "brnad", "value": "x", "after": "72h"}]})
    site.receiptd.command("migrate", "--serve-role", site.role)
    site.process = site.receiptd.start("serve-without", command="serve")
    site.process.wait_for_log("column m.brnad does not exist")


def test_a_funnel_says_on_demand_until_when_it_is_provisional(site):
    path = "/campaigns/alpha-campaign/funnel"
    assert site.json(path + "?pending=true")["pending"] is None, "nothing expires"
    site.process.stop()
    site.receiptd.configure(inbox={"expiry": [{"column": "org_id", "value": "beta-org", "after": "0s"}, {"after": "72h"}]})
    site.process = reader.start(site.receiptd)
    site.database.execute("UPDATE receiptd.message_inbox SET status = 300 WHERE message_id IN ('alpha-m3', 'alpha-m4', 'beta-m3')")
    for campaign, messages in (("alpha-campaign", 2), ("beta-campaign", 0)):
        told = json.loads(site.receiptd.command("funnel", campaign, "--format", "json").stdout)["pending"]
        found = site.json(f"/campaigns/{campaign}/funnel?pending=true")
        assert found["pending"] == told and told["messages"] == messages and (told["until"] is None) == (messages == 0)
        assert found["behind_s"] is None, "no daemon says it"
    assert site.json(path)["pending"] is None and site.json(path + "?pending=false")["pending"] is None


def test_campaigns_are_listed_sorted_searched_and_paged(site):
    site.database.execute("INSERT INTO receiptd.campaign_funnel_total (campaign_id, status, messages, events)"
                          " SELECT 'x' || lpad(n::text, 3, '0'), s, CASE s WHEN 300 THEN 100 WHEN 600 THEN n ELSE 100 - n END, 0"
                          " FROM generate_series(1, 99) n, unnest('{300,440,600}'::int2[]) s")
    site.database.execute("INSERT INTO receiptd.campaign_changed SELECT 'x' || lpad(n::text, 3, '0'), now() - n * interval '1 minute'"
                          " FROM generate_series(1, 99) n")
    orders = {"changed": [f"x{n:03}" for n in range(1, 100)], "rate": [f"x{n:03}" for n in range(1, 100)],
              "problems": [f"x{n:03}" for n in range(1, 100)]}
    for sort, expected in orders.items():
        seen, after = [], ""
        while after is not None:
            page = site.json(f"/campaigns?sort={sort}&q=X&limit=10" + (f"&after={quote(after)}" if after else ""))
            seen += [row["campaign_id"] for row in page["campaigns"]]
            after = page["next"]
        assert seen == expected, sort
    row = site.json("/campaigns?q=alpha")["campaigns"]
    assert [{key: row[0][key] for key in ("campaign_id", "org_id", "targeted", "sent", "delivered", "failed", "delivery_rate")}] == [
        {"campaign_id": "alpha-campaign", "org_id": "alpha-org", "targeted": 30, "sent": 30, "delivered": 21, "failed": 9, "delivery_rate": 0.7}]


def test_ten_thousand_campaigns_are_listed_quickly(site):
    site.database.execute("INSERT INTO receiptd.campaign_funnel_total (campaign_id, status, messages, events)"
                          " SELECT 'campaign-' || n, s, 100 + n, 100 FROM generate_series(1, 10000) n,"
                          " unnest('{0,200,300,310,420,430,440,600,700,800,9001,9002}'::int2[]) s")
    site.database.execute("INSERT INTO receiptd.campaign_changed SELECT 'campaign-' || n, now() - n * interval '1 second' FROM"
                          " generate_series(1, 10000) n")
    site.database.execute("INSERT INTO receiptd.campaign_organisation SELECT 'campaign-' || n, 'o' || n % 10 FROM generate_series(1, 10000) n")
    site.database.execute("ANALYZE receiptd.campaign_funnel_total, receiptd.campaign_changed, receiptd.campaign_organisation")
    own = reader.make_token(site.receiptd, "own", "read", "--org", "o3")
    for token in (site.token, own):
        for path in ("/campaigns", "/campaigns?sort=rate", "/campaigns?sort=problems", "/campaigns?q=777", "/campaigns/campaign-77/funnel"):
            took = []
            for _ in range(5):
                begin = time.monotonic()
                assert site.get(path, token).status in (200, 404)
                took.append(time.monotonic() - begin)
            print(path, "own" if token == own else "all", f"{min(took) * 1000:.0f} ms")
            assert min(took) < 1, path  # a tenth of it on a quiet machine


def test_recipients_are_all_of_them_in_csv_and_json(site):
    site.database.execute("INSERT INTO receiptd.message_inbox (message_id, org_id, campaign_id) SELECT 'many-' || n, 'alpha-org', 'many' FROM"
                          " generate_series(1, 25000) n")
    site.database.execute("INSERT INTO receiptd.message_inbox (message_id, org_id, campaign_id) VALUES ('=1+1', 'alpha-org', 'many'),"
                          " ('@a\"b,c', 'alpha-org', 'many'), ('-x', 'alpha-org', 'many')")
    answer = site.get("/campaigns/many/recipients?format=csv")
    rows = list(csv.DictReader(io.StringIO(answer.body.decode())))
    truth = [id for id, in site.database.query("SELECT message_id FROM receiptd.message_inbox WHERE campaign_id = 'many' ORDER BY 1")]
    assert [row["message_id"].removeprefix("'") for row in rows] == truth and len(rows) == 25003
    assert {row["message_id"] for row in rows if row["message_id"].startswith("'")} == {"'=1+1", "'@a\"b,c", "'-x"}
    found = site.json("/campaigns/many/recipients?format=json")["recipients"]
    assert [row["message_id"] for row in found] == truth
    assert not any(row["message_id"].startswith("'") for row in found)
    failed = site.json("/campaigns/alpha-campaign/recipients?format=json&status=FAILED")["recipients"]
    assert len(failed) == 9 and {row["status"] for row in failed} == {"FAILED"}
    assert [row["message_id"] for row in site.json("/campaigns/alpha-campaign/recipients?format=json&status=COMPLAINED")["recipients"]] == ["alpha-m5"]


FORMULAS = ("=1+1", "+1", "-1+x", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "\uff1d1+1", "\uff0b1", "\uff0d1", "\uff20SUM(A1)", '="a"",b"', "=1,2")
TEXTS = ("1+1", " x", "a=b", "'=1", "\u00e9", "x\n=1", "\uff1c1")


def test_no_csv_has_a_formula(site):
    """Neither the lists of the interface nor those of commands: campaigns, organisations, topics, ids and reasons come from others."""
    rows = [(text, "alpha-org", text) for text in FORMULAS + TEXTS]
    with site.database.connect() as connection, connection.cursor() as cursor:
        cursor.executemany("INSERT INTO receiptd.message_inbox (message_id, org_id, campaign_id) VALUES (%s, %s, 'many')", [row[:2] for row in rows])
        cursor.executemany("INSERT INTO receiptd.counter_delta (kind, campaign_id, status, messages, events) VALUES ('funnel', ARRAY[%s], '{300}', '{1}', '{1}')",
                           [row[2:] for row in rows])
        cursor.executemany('INSERT INTO receiptd.parked_event (topic, partition, "offset", index, lane, message_id, status, at, payload) VALUES'
                           " (%s, 7, %s, 0, 0, %s, 600, now(), '')", [(text, number, text) for number, text in enumerate(FORMULAS + TEXTS)])
        cursor.executemany('INSERT INTO receiptd.dead_letter (topic, partition, "offset", index, lane, reason, detail, payload) VALUES'
                           " (%s, 7, %s, 0, 0, 'unknown_message', %s, '')", [(text, number, text) for number, text in enumerate(FORMULAS + TEXTS)])
        connection.commit()
    # The command's output comes with its line ends translated.
    cells = lambda text: {cell.replace("\r", "\n") for row in csv.reader(io.StringIO(text, newline="")) for cell in row}  # noqa: E731
    lists = [site.get("/campaigns/many/recipients?format=csv").plain.decode()]
    lists += [site.receiptd.command(*words, "--format", "csv").stdout for words in (("parked",), ("dead-letters",), ("funnel",))]
    for found in map(cells, lists):
        for text in FORMULAS:
            assert text not in found and "'" + text.replace("\r", "\n") in found, repr(text)
        for text in TEXTS:
            assert text in found, repr(text)


def test_an_empty_list_of_recipients_means_that_there_are_none(site):
    """Not that there is no such campaign or status."""
    assert site.get("/campaigns/alpha-campaign/recipients?status=CLICKED").plain.splitlines() == [b"message_id,status,status_at,flags,updated_at,customer_id,channel,campaign_id,campaign_name"]
    assert site.get("/campaigns/alpha-campaign/recipients?status=CLICK").status == 400
    assert site.get("/campaigns/alpha/recipients").status == 404
    beta = reader.make_token(site.receiptd, "beta", "support", "--org", "beta-org")
    assert site.get("/campaigns/alpha-campaign/recipients", beta).status == 404
    count(site.database, "retired")  # its messages are gone, its counters stay
    assert site.get("/campaigns/retired/recipients").plain.count(b"\n") == 1
    assert site.get("/campaigns/retired/recipients", beta).status == 404


def test_a_message_is_found_and_explained(site):
    found = site.json("/messages/alpha-m5")
    assert found["path"] == ["TARGETED", "IN_GTW", "SENT", "DELIVERED"] and found["flags"] == ["COMPLAINED"]
    assert [(row["status"], row["old"], row["new"], row["gained"], row["effect"]) for row in found["receipts"]] == [
        ("SENT", "TARGETED", "SENT", [], "applied"), ("DELIVERED", "SENT", "DELIVERED", ["COMPLAINED"], "applied")]
    assert len(found["parked"]) == 1 and [row["detail"] for row in found["dead_letters"]] == ["of alpha"]
    assert b"43660" not in site.get("/messages/alpha-m5").body + site.get("/dead-letters").body, "a telephone number"
    both = site.json("/messages?q=gateway-id")["messages"]
    assert [(row["message_id"], row["found_by"]) for row in both] == [("alpha-m5", "alias of alpha-account"), ("beta-m5", "alias of beta-account")]
    assert site.json("/messages?q=nothing") == {"messages": []}
    assert site.get("/messages/nothing").status == 404


def test_messages_of_a_customer_are_found_newest_first(site):
    refused = site.get("/messages?customer=77")
    assert refused.status == 501 and "inbox.columns.customer_id" in refused.json["detail"]
    site.process.stop()
    site.database.execute("ALTER TABLE receiptd.message_inbox ADD COLUMN person bigint")
    site.database.execute("UPDATE receiptd.message_inbox SET person = 77, created_at = now() - right(message_id, 1)::int * interval '1 day'"
                          " WHERE message_id IN ('alpha-m1', 'alpha-m2', 'beta-m3')")
    site.receiptd.configure(inbox={"columns": {"customer_id": "person"}})
    site.receiptd.command("migrate", "--serve-role", site.role)  # which reads only what is named
    site.process = reader.start(site.receiptd)
    listed = lambda token="": [row["message_id"] for row in site.json("/messages?customer=77", token)["messages"]]  # noqa: E731
    assert listed() == ["alpha-m1", "alpha-m2", "beta-m3"]
    assert listed(reader.make_token(site.receiptd, "beta", "support", "--org", "beta-org")) == ["beta-m3"]
    assert site.get("/messages?customer=77", reader.make_token(site.receiptd, "read", "read")).status == 403
    for query in ("", "?q=alpha-m1&customer=77", "?customer=", "?customer=no-number-7654321"):
        assert site.get(f"/messages{query}").status == 400, query
    site.database.execute("INSERT INTO receiptd.message_inbox (message_id, org_id, campaign_id, person) SELECT 'p-' || n, 'alpha-org', 'many', 78 FROM"
                          " generate_series(1, 101) n")
    assert len(site.json("/messages?customer=78")["messages"]) == 100
    assert "7654321" not in site.process.log()


def test_operators_see_pipelines_actions_letters_and_positions(site):
    assert [row["name"] for row in site.json("/pipelines")["pipelines"]] == ["alpha-pipeline", "beta-pipeline"]
    assert site.json("/pipelines/alpha-pipeline")["stages"] == [{"stage": "call", "op": "webhook", "actions": {"pending": 1}}]
    assert [row["because"] for row in site.json("/actions")["actions"]] == ["waits for its turn"] * 2
    page = site.json("/actions?limit=1")
    rest = site.json(f"/actions?limit=1&after={page['next']}")
    assert page["actions"][0]["org_id"] == "alpha-org" and rest["actions"][0]["org_id"] == "beta-org"
    page = site.json("/dead-letters?limit=1")
    rest = site.json(f"/dead-letters?limit=1&after={quote(page['next'])}")
    assert {page["dead_letters"][0]["detail"], rest["dead_letters"][0]["detail"]} == {"of alpha", "of beta"}
    status = site.json("/status")
    assert [(row["topic"], row["partition"], row["position"]) for row in status["partitions"]] == [("t", 0, 100)]
    for path in ("/campaigns/alpha-campaign/timeline", "/gateways"):
        answer = site.get(path)
        assert answer.status == 501 and answer.headers["Content-Type"] == "application/problem+json"


def instances(site, token=""):
    return {row["status"]["pid"]: row for row in site.json("/status", token)["instances"]}


def test_operators_see_the_state_of_all_instances_and_how_old_it_is(site):
    one, two = [site.receiptd.start(name) for name in ("one", "two")]
    wait_for(lambda: {one.pid, two.pid} <= instances(site).keys(), what="both instances")
    wait_for(lambda: all(row["status"]["readiness"]["ready"] for row in instances(site).values()), what="both are ready")
    for pid, row in instances(site).items():
        assert row["name"] == row["status"]["instance"] and row["name"].endswith(f"-{pid}")
        assert {"readiness", "assignment", "lanes", "connections", "parked", "since_start", "last_errors"} <= row["status"].keys()
        assert SECRET not in json.dumps(row) and site.token not in json.dumps(row)
    one.kill()
    left = instances(site)[one.pid]
    wait_for(lambda: instances(site)[one.pid]["age_s"] > instances(site)[two.pid]["age_s"] + 5, what="the one that was killed gets older")
    assert instances(site)[one.pid]["at"] == left["at"] and instances(site)[two.pid]["at"] > left["at"]
    alpha = reader.make_token(site.receiptd, "alpha", "operate", "--org", "alpha-org")
    assert instances(site, alpha) == {}
    site.database.execute("UPDATE receiptd.instance_status SET at = at - interval '1 hour' WHERE name = %s", left["name"])
    wait_for(lambda: instances(site).keys() == {two.pid}, what="who is silent for an hour is forgotten")
    two.stop()
    assert instances(site) == {}, "who stops in order leaves at once"


def test_an_instance_that_cannot_store_its_state_says_so_once_and_goes_on(site):
    site.database.execute("ALTER TABLE receiptd.instance_status ADD CHECK (false)")
    failed = "SELECT xact_rollback FROM pg_stat_database WHERE datname = current_database()"
    process = site.receiptd.start("one")
    process.wait_for_log("storing of this instance's state failed")
    before = site.database.value(failed)
    wait_for(lambda: site.database.value(failed) >= before + 2, what="it has tried again, twice")
    assert process.log().count("storing of this instance's state failed") == 1 and 'msg="ready"' in process.log()
    site.database.execute("ALTER TABLE receiptd.instance_status DROP CONSTRAINT instance_status_check")
    wait_for(lambda: process.pid in instances(site), what="it is stored")
    process.stop()


def test_answers_are_kept_by_their_tag_and_zipped(site):
    site.database.execute("DELETE FROM receiptd.counter_delta WHERE false")
    first = site.get("/campaigns/alpha-campaign/funnel")
    again = site.get("/campaigns/alpha-campaign/funnel", headers={"If-None-Match": first.headers["ETag"]})
    assert again.status == 304 and again.body == b""
    zipped = site.get("/campaigns/alpha-campaign/funnel", headers={"Accept-Encoding": "gzip"})
    assert zipped.headers["Content-Encoding"] == "gzip" and gzip.decompress(zipped.body) == first.body and len(zipped.body) < len(first.body) / 3
    for accepted, packs in (("gzip;q=0", False), ("gzip ; q=0.0", False), ("br, gzip;q=0.5", True), ("x-gzip, identity", True), ("identity", False)):
        assert ("Content-Encoding" in site.get("/campaigns/alpha-campaign/funnel", headers={"Accept-Encoding": accepted}).headers) == packs, accepted
    for known in (zipped.headers["ETag"], f'"other", {first.headers["ETag"]}', "*"):
        again = site.get("/campaigns/alpha-campaign/funnel", headers={"If-None-Match": known, "Accept-Encoding": "gzip"})
        assert again.status == 304 and again.body == b"" and "Content-Encoding" not in again.headers, known
    for path, kind in (("/campaigns", "application/json"), ("/stream", "text/event-stream"), ("/campaigns/alpha-campaign/recipients", "text/csv; charset=utf-8"),
                       ("/campaigns/alpha-campaign/recipients?format=json", "application/json")):
        head = site.get(path, method="HEAD")
        assert (head.status, head.headers["Content-Type"], head.body) == (200, kind, b""), path
    for path in ("/campaigns", "/", "/assets/app.js", "/nothing"):
        headers = site.get(path).headers
        assert HEADERS.items() <= headers.items() and "frame-ancestors 'none'" in headers["Content-Security-Policy"], path
    assert site.get("/").headers["Content-Type"].startswith("text/html")


# ---- dead letters are tried again ------------------------------------------------------------------------------------

def test_letters_that_are_redriven_land(site, topic):
    site.topic = topic
    operator(site)
    bury(site, 3)
    bury(site, 1, 3, payload='{"message_id":"alpha-m3","status":"NO_SUCH"}', reason="unknown_status")
    bury(site, 1, 4, payload="[1]", reason="unknown_status", index=-2)
    found = {row["id"] for row in site.json("/dead-letters")["dead_letters"]}
    assert found == {f"{topic}/0/{n}/{-2 if n == 4 else 0}" for n in range(5)}
    answer = redrive(site, {"reason": "unknown_message"})
    assert answer.status == 200 and answer.headers["Cache-Control"] == "no-store"
    assert answer.json == {"redriven": 3, "receipts": 3, "left": 0, "letters_left": [], "next": None}
    answer = redrive(site, {"ids": [*sorted(found), sorted(found)[0], f"{topic}/7/1/0"]}).json
    assert (answer["redriven"], answer["left"]) == (0, 2)
    why = {row["id"]: row["why"] for row in answer["letters_left"]}
    assert why == {f"{topic}/0/{n}/0": "gone" for n in range(3)} | {f"{topic}/0/3/0": "unknown_status", f"{topic}/0/4/-2": "no_receipt", f"{topic}/7/1/0": "gone"}
    assert "NO_SUCH" in str(answer) and "the token all moved 3 dead letters" in site.process.log()
    daemon = site.receiptd.start()
    clicked = "SELECT count(*) FROM receiptd.message_inbox WHERE message_id IN ('alpha-m0', 'alpha-m1', 'alpha-m2') AND status = 800"
    wait_for(lambda: site.database.value(clicked) == 3, 60, "the receipts are applied")
    wait_for(lambda: letters(site) == (2, 0, 0), what="nothing is parked any more")
    assert dict((row["name"], row["messages"]) for row in site.json("/campaigns/alpha-campaign/funnel")["statuses"])["CLICKED"] == 3
    assert redrive(site, {"reason": "unknown_message"}).json["redriven"] == 0
    daemon.stop()


def test_a_redrive_needs_no_kafka(site):
    site.receiptd.configure(kafka={"brokers": "127.0.0.1:1"})
    operator(site)
    bury(site, 10)
    assert redrive(site, {"reason": "unknown_message"}).json["redriven"] == 10 and letters(site) == (0, 10, 10)


def test_only_an_operators_token_redrives(site):
    refused = redrive(site, {"reason": "unknown_message"})
    assert refused.status == 501 and "serve.operate_dsn" in refused.json["detail"] and site.json("/me")["redrive"] is False
    operator(site, open=True, trusted_proxies="127.0.0.1", proxy_header="X-Org")
    bury(site, 2)
    body = {"reason": "unknown_message"}
    link = site.receiptd.command("serve", "link", "alpha-campaign").stdout.strip().partition("?link=")[2]
    tokens = {name: reader.make_token(site.receiptd, name, *scope) for name, scope in
              {"support": ["read,support"], "alpha": ["read,support,operate,suppressions", "--org", "alpha-org"]}.items()}
    for token in tokens.values():
        answer = redrive(site, body, token)
        assert answer.status == 403 and answer.headers["Content-Type"] == "application/problem+json", answer
        assert site.json("/me", token)["redrive"] is False
    assert "belong to no organisation" in redrive(site, body, tokens["alpha"]).json["detail"]
    for headers in ({}, {"Cookie": f"Authorization=Bearer {site.token}; token={site.token}"}, {"X-Org": "*"}):
        answer = site.get(REDRIVE, None, method="POST", body=json.dumps(body).encode(), headers=headers)
        assert answer.status == 403 and "Authorization header" in answer.json["detail"], (headers, answer)
    assert site.get(f"{REDRIVE}?link={link}", None, method="POST", body=b"{}").status == 403
    assert site.get(f"{REDRIVE}?token={site.token}", method="POST", body=b"{}").status == 400
    assert letters(site) == (2, 0, 0) and site.json("/me")["redrive"] is True


def test_a_redrive_says_what_is_wrong_with_its_body(site):
    operator(site)
    bury(site, 2)
    for body, detail in ((b"", "empty"), (b"x", "no JSON"), (b"{}", "either"), (b"[]", "list"), (b'"reason"', "object"), (b'{"reason": "no_such"}', "reason"),
                         (b'{"reason": 1}', "texts"), (b'{"ids": "x"}', "list of texts"), (b'{"ids": []}', "empty"), (b'{"ids": ["x"]}', "TOPIC/"),
                         (b'{"ids": [["t/0/0/0"]]}', "one list"), (b'{"ids": ["t/0/0/0"], "reason": "aged_out"}', "either"),
                         (b'{"ids": ["t/0/0/0 "]}', "TOPIC/"), (b'{"ids": ["t/0/99999999999999999999/0"]}', "TOPIC/"), (b'{"ids": ["/0/0/0"]}', "TOPIC/"),
                         (b'{"ids": ["t/0/0/0"], "ids": ["t/0/1/0"]}', "one list"), (b'{"other": "x"}', "members"), (b'{"reason": {"a": 1}}', "object"),
                         (b'{"reason": "aged_out", "after": "x"}', "next"), (b'{"reason": "aged_out"', "no JSON"), (b'{"reason": "\xff"}', "UTF-8"),
                         (json.dumps({"ids": [f"t/0/{n}/0" for n in range(501)]}).encode(), "500")):
        answer = redrive(site, body)
        assert answer.status == 400 and detail in answer.json["detail"], (body[:80], answer)
    assert letters(site) == (2, 0, 0)


def test_a_role_that_may_not_move_letters_is_named(site):
    operator(site, operate_dsn=make_conninfo(site.database.dsn, user=site.role))
    bury(site, 2)
    answer = redrive(site, {"reason": "unknown_message"})
    assert answer.status == 503 and "serve.operate_dsn" in answer.json["detail"] and letters(site) == (2, 0, 0)


def test_redrives_at_the_same_time_move_each_letter_once_over_http(site):
    operator(site)
    bury(site, 3000, payload='{"message_id":"m%s","status":"SENT"}')
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda _: redrive(site, {"reason": "unknown_message"}), range(6)))
        assert {answer.status for answer in answers} <= {200, 503}
        for answer in answers:
            assert answer.status == 200 or ("under way" in answer.json["detail"] and answer.headers["Retry-After"] == "1")
        assert site.get("/campaigns").status == 200, "the loop does not wait"
    answers = [answer.json for answer in answers if answer.status == 200]
    while all(answer["next"] for answer in answers):  # the seconds of each were over before the letters were
        answers.append(redrive(site, {"reason": "unknown_message"}).json)
    assert sum(answer["redriven"] for answer in answers) == 3000 and letters(site) == (0, 3000, 3000)


def test_the_death_of_serve_within_a_redrive_loses_and_doubles_nothing(site):
    operator(site)
    bury(site, 3000, payload='{"message_id":"m%s","status":"SENT"}')
    with ThreadPoolExecutor(1) as pool:
        for least in (1, 1001):
            answer = pool.submit(redrive, site, {"reason": "unknown_message"})
            wait_for(lambda: letters(site)[1] >= least, 60, "some are moved")
            site.process.kill()
            with pytest.raises((ConnectionError, http.client.HTTPException)):
                answer.result()
            left, parked, distinct = letters(site)
            assert left + parked == 3000 and parked == distinct
            site.process = reader.start(site.receiptd)
    assert redrive(site, {"reason": "unknown_message"}).status == 200 and letters(site) == (0, 3000, 3000)


# ---- the table of routes ---------------------------------------------------------------------------------------------

VALUES = {org: {"campaign": f"{org}-campaign", "message": f"{org}-m5", "pipeline": f"{org}-pipeline"} for org in ("alpha", "beta")}
QUERIES = {"/api/v1/messages": ("?q=alpha-m5", "?q=gateway-id"), "/api/v1/campaigns": ("", "?q=alpha", "?sort=rate", "?sort=problems"),
           "/api/v1/actions": ("", "?status=pending", "?pipeline=alpha-pipeline"), "/api/v1/dead-letters": ("", "?reason=unknown_message"),
           "/api/v1/campaigns/{campaign}/recipients": ("", "?format=json", "?status=FAILED")}


def test_openapi_describes_what_is_answered_and_documented(site):
    described = site.json("/openapi.json")
    assert described["openapi"].startswith("3.1")
    for path, methods in described["paths"].items():
        for method, route in methods.items():
            names = [parameter["name"] for parameter in route["parameters"] if parameter["in"] == "path"]
            assert names == re.findall(r"\{(\w+)\}", path)
            if path.endswith("/stream"):
                continue
            answer = site.get(reader.fill(path, VALUES["alpha"]) + QUERIES.get(path, ("",))[0], method=method.upper(), body=b"{}" if method == "post" else None)
            assert str(answer.status) in route["responses"], (path, answer)
            kind = next(iter(route["responses"][str(answer.status)]["content"]))
            assert answer.headers["Content-Type"].startswith(kind)
            assert site.get(reader.fill(path, VALUES["alpha"]) + "?no_such=1", method=method.upper(), body=b"{}").status in (400, 501), path
            other = "POST" if method == "get" else "GET"
            assert site.get(reader.fill(path, VALUES["alpha"]), method=other, body=b"{}").status == 405
    table = re.findall(r"^\| `(/\S+)` \| (\S+) *\|? *.*\| (.*) \|$", (ROOT / "docs/serve.md").read_text(), re.MULTILINE)
    routes = [(path.removeprefix("/api/v1"), route["summary"]) for path, methods in described["paths"].items() for route in methods.values()]
    assert [(path, text) for path, _, text in table] == routes


def test_every_answer_is_what_openapi_says(create_site, topic):
    site = create_site()
    site.topic = topic
    site.receiptd.configure(counters={"series": "90d", "gateways": "90d", "reasons": True, "times": True}, timeline={"retention": "1d"})
    operator(site, link_secret=SECRET)
    description = Description(site.json("/openapi.json"))
    daemon = site.receiptd.start()
    for number in range(10):
        topic.send({"message_id": f"alpha-m{number}", "status": "CLICKED" if number % 2 else "BOUNCED_HARD", "gateway": "acme", "reason": "blocked"})
    topic.send({"message_id": "alpha-m0", "status": "NO_SUCH"})
    bury(site, 3, 100, payload="?")
    bury(site, 3, 200)
    wait_for(lambda: site.json("/gateways")["gateways"] and len(site.json("/dead-letters")["dead_letters"]) == 7, 60, "receipts are counted by gateway")
    wait_for(lambda: site.json("/status")["instances"], what="an instance says something")
    alpha = reader.make_token(site.receiptd, "alpha", "read,support,operate,suppressions", "--org", "alpha-org")
    link = site.receiptd.command("serve", "link", "alpha-campaign").stdout.strip().partition("?link=")[2]
    more = {"/campaigns/{campaign}/funnel": ("?by=reason", "?by=link", "?by=gateway", "?by=time_to_deliver", "?pending=true"),
            "/campaigns/{campaign}/timeline": ("", "?step=minute"), "/me": ("", f"?link={link}"), "/messages/{message}": ("", "?x=1"),
            "/campaigns/{campaign}/recipients": ("?format=json", "?format=csv", "?format=json&status=CLICKED")}
    bodies = {"post": ({"reason": "unknown_message"}, {"ids": ["t/0/1/0"]}, {})}
    seen = Counter()
    for path, method, operation in description.routes():
        short = path.removeprefix("/api/v1")
        if short == "/stream":
            continue
        for query in (*QUERIES.get(path, ("",)), *more.get(short, ())):
            for token in (site.token, alpha, None):
                for values in (VALUES["alpha"], dict.fromkeys(VALUES["alpha"], "nothing")):
                    for body in bodies.get(method, (None,)):
                        answer = site.get(reader.fill(path, values) + query, token, method=method.upper(), body=body if body is None else json.dumps(body).encode())
                        description.check(path, method, answer)
                        seen[short, answer.status] += 1
    assert {short for short, status in seen if status == 200} == {path.removeprefix("/api/v1") for path, *_ in description.routes()} - {"/stream"}
    assert seen["/dead-letters/redrive", 400] and seen["/me", 401] and seen["/messages/{message}", 404]
    events = description.document["paths"]["/api/v1/stream"]["get"]["responses"]["200"]["x-events"]
    stream = reader.Stream(site.process, token=site.token)
    wait_for(lambda: {name for name, _ in stream.read()} == set(events), what="events of all kinds")
    for name, data in stream.read():
        assert not description.faults(events[name], data), (name, data)
    takes = description.document["paths"]["/api/v1/dead-letters/redrive"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert not description.faults(takes, {"reason": "aged_out"}) and description.faults(takes, {"reasons": "aged_out"})
    daemon.stop()


# What the whole of a route belongs to: there is nothing in it that is of one organisation alone. A route that is new has to be here, or it has to show something of
# alpha to who may see all: otherwise that its answers hold nothing of alpha would prove nothing.
OF_NOBODY = {"/api/v1/me", "/api/v1/openapi.json", "/api/v1/gateways", "/api/v1/dead-letters/redrive", "/api/v1/status"}
OF_THEIR_OWN_TEST = {"/api/v1/stream": "test_streams_tell_each_organisation_its_own"}
ASK = {"/api/v1/campaigns/{campaign}/timeline": "counters.series"}  # 501 without the key


def test_no_route_shows_anything_of_another_organisation(create_site):
    """For each route of the table, asked for what belongs to alpha: beta's token sees nothing of alpha, nobody's token nothing of either."""
    site = create_site()
    described = site.json("/openapi.json")
    beta = reader.make_token(site.receiptd, "beta", "read,support,operate,suppressions", "--org", "beta-org")
    nobody = reader.make_token(site.receiptd, "nobody", "read,support,operate,suppressions", "--org", "nobody")
    shown = set()
    for path, methods in described["paths"].items():
        if path in OF_THEIR_OWN_TEST:
            assert OF_THEIR_OWN_TEST[path] in globals()
            continue
        for method in methods:
            for query in QUERIES.get(path, ("",)):
                target = reader.fill(path, VALUES["alpha"]) + query
                everything = site.get(target, method=method.upper(), body=b"{}" if method == "post" else None)
                if b"alpha" in everything.plain or (everything.status == 501 and ASK.get(path, "-").encode() in everything.plain):
                    shown.add(path)
                for token, marks in ((beta, b"alpha"), (nobody, b"alpha|beta")):
                    answer = site.get(target, token, method=method.upper(), body=b"{}" if method == "post" else None)
                    assert not re.search(rb"(?:" + marks + rb")-?(?:m\d|org|campaign|pipeline)|of (?:" + marks + rb")|\"topic\" ?: ?\"", answer.body), (target, answer)
                    assert answer.status in (200, 404, 501), (target, answer)
    assert shown | OF_NOBODY | OF_THEIR_OWN_TEST.keys() == set(described["paths"]), "a route without its case"
    assert [row["campaign_id"] for row in site.json("/campaigns", beta)["campaigns"]] == ["beta-campaign"]
    assert site.json("/me", beta) | {"version": ""} == {"organisation": "beta-org", "scopes": ["read", "support", "operate", "suppressions"], "link": None, "redrive": False, "version": ""}


def test_a_campaign_of_another_organisation_costs_as_much_as_none(site):
    """In pages that the database reads: the time tells who has which campaigns."""
    text = (ROOT / "sql/serve/funnel.sql").read_text().replace(":'many'", "'one'")
    read = {}
    with site.database.connect() as connection:
        connection.execute("SET search_path = receiptd")
        connection.execute("INSERT INTO counter_delta (kind, campaign_id, status, messages, events) SELECT 'funnel', '{alpha-campaign}', '{300}', '{1}', '{1}'"
                           " FROM generate_series(1, 3000)")
        connection.execute("PREPARE q (text, text, text, text, text, text) AS " + text)
        for campaign in ("beta-campaign", "alpha-campaign", "no-campaign"):
            for _ in range(2):  # the first reads catalogs, too
                (plan,), = connection.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE q ('beta-org', '{campaign}', 'reason', NULL, NULL, NULL)").fetchone()
            read[campaign] = (plan["Plan"]["Actual Rows"], plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"])
        connection.rollback()
    assert read["beta-campaign"][0] == 1 and read["alpha-campaign"][0] == read["no-campaign"][0] == 0
    assert abs(read["alpha-campaign"][1] - read["no-campaign"][1]) <= 2 < read["beta-campaign"][1] - read["no-campaign"][1], read


# ---- who asks --------------------------------------------------------------------------------------------------------

def test_without_a_token_nothing_is_shown_and_the_answer_says_how_to_make_one(site):
    for path in ("/campaigns", "/openapi.json", "/me"):
        answer = site.get(path, token=None)
        assert answer.status == 401 and answer.headers["WWW-Authenticate"] == "Bearer"
        assert "receiptd serve token add" in answer.json["detail"]
    for token in ("x", "rcpt_" + "0" * 64, "' OR 1=1 --", "a" * 1000, site.token.upper(), site.token + "0"):
        assert site.get("/campaigns", token).status == 401, token
    assert site.token not in site.process.log()


def test_scopes_expiry_and_revocation_hold(site):
    read = reader.make_token(site.receiptd, "reader", "read")
    assert site.get("/campaigns", read).status == 200
    for path in ("/messages/alpha-m5", "/campaigns/alpha-campaign/recipients", "/actions", "/status", "/pipelines"):
        assert site.get(path, read).status == 403, path
    assert "reader  read  all organisations" in site.receiptd.command("serve", "token", "list").stdout
    stored = site.database.query("SELECT name, encode(hash, 'hex') FROM receiptd.serve_token ORDER BY name")
    assert [name for name, _ in stored] == ["all", "reader"] and read not in str(stored)
    brief = reader.make_token(site.receiptd, "brief", "read", "--expires", "30d")
    assert site.get("/campaigns", brief).status == 200
    site.database.execute("UPDATE receiptd.serve_token SET expires_at = now() WHERE name = 'brief'")
    assert site.get("/campaigns", brief).status == 401
    site.receiptd.command("serve", "token", "revoke", "--name", "reader")
    assert site.get("/campaigns", read).status == 401
    for arguments, status in ((["add", "--name", "all"], 66), (["revoke", "--name", "reader"], 66), (["add"], 64), (["frobnicate"], 64),
                              (["add", "--name", "x", "--scope", "write"], 64), (["add", "--name", "x", "--expires", "soon"], 64)):
        assert site.receiptd.command("serve", "token", *arguments, check=False).returncode == status, arguments


def test_a_link_shows_one_campaign_until_it_expires(site):
    url = site.receiptd.command("serve", "link", "alpha-campaign", "--expires", "1d").stdout.strip()
    link = url.partition("?link=")[2]
    assert "/campaign/alpha-campaign?" in url
    assert site.get(f"/campaigns/alpha-campaign/funnel?link={link}", None).status == 200
    me = site.get(f"/me?link={link}", None).json
    assert me["scopes"] == ["read"] and me["link"]["campaign"] == "alpha-campaign" and me["link"]["expires"].endswith("Z")
    for path in ("/campaigns/beta-campaign/funnel", "/campaigns", "/messages/alpha-m5", "/stream?campaign=beta-campaign"):
        assert site.get(f"{path}{'&' if '?' in path else '?'}link={link}", None).status == 403, path
    campaign, expires, mac = link.split(".")
    other = "beta-campaign".encode().hex()
    for forged in (f"{other}.{expires}.{mac}", f"{campaign}.{int(expires) + 1}.{mac}", f"{campaign}.{expires}.{mac[:-1]}", f"{campaign}.{expires}.",
                   f"{campaign}.{expires}.{'0' * 64}", "x", "...", f"{campaign}..{mac}", f"{campaign}.-1.{mac}", f"{campaign[:-1]}.{expires}.{mac}"):
        assert site.get(f"/campaigns/alpha-campaign/funnel?link={forged}", None).status == 401, forged
    past = site.receiptd.command("serve", "link", "alpha-campaign", "--expires", "1m").stdout.strip().partition("?link=")[2]
    assert int(past.split(".")[1]) - time.time() <= 60


def test_a_proxy_is_believed_only_where_it_is_trusted(create_site):
    site = create_site(trusted_proxies="127.0.0.1", proxy_header="X-Org")
    listed = lambda **headers: [row["campaign_id"] for row in site.get("/campaigns", None, headers=headers).json["campaigns"]]  # noqa: E731
    assert listed(**{"X-Org": "beta-org"}) == ["beta-campaign"]
    assert sorted(listed(**{"x-org": "*"})) == ["alpha-campaign", "beta-campaign"]
    assert site.get("/actions", None, headers={"X-Org": "beta-org"}).status == 403
    assert site.get("/campaigns", None).status == 401
    twice = reader.raw(site.process, f"GET /api/v1/campaigns HTTP/1.1\r\nHost: 127.0.0.1:{site.process.port}\r\nX-Org: *\r\nX-Org: beta-org\r\n"
                       "Connection: close\r\n\r\n".encode())
    assert twice.startswith(b"HTTP/1.1 401")


def test_a_header_of_a_stranger_is_not_believed(create_site):
    site = create_site(trusted_proxies="192.0.2.1", proxy_header="X-Org")
    assert site.get("/campaigns", None, headers={"X-Org": "*"}).status == 401


FOREIGN = ("evil.example", "evil.example:8322", "127.0.0.1.evil.example", "", "[::2]", "localhost.evil.example", "[::1].evil.example", "[::1]evil", "[::1",
           "localhost:80@evil.example", "localhost:x", "127.", "127.1", "127.0.0.1.", "127.0.0.1evil", "0.0.0.0", "[::ffff:10.0.0.1]", "[127.0.0.1", "localhost,evil.example",
           "10.0.0.1", "128.0.0.1", "localhost ", "::1:80")
OWN = ("localhost", "LocalHost:8322", "127.0.0.1:1", "127.9.9.9", "[::1]:8322", "[::1]", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]:80", "localhost:")


@pytest.mark.parametrize("command", ["serve", "run", "intake"])
def test_pages_of_metrics_answer_this_machine_alone(create_site, command):
    """A page elsewhere, whose name leads here, reads nothing; unless a token protects what it would read."""
    site = create_site()
    site.process.stop()
    account = {"name": "acme", "gateway": "twilio", "org_id": "o", "verify": "off", "message_id": "?mid"}
    site.receiptd.configure(http={"listen": "127.0.0.1:0"}, intake={"listen": "127.0.0.1:0", "metrics_listen": "127.0.0.1:0", "topic": "t",
                                                                                     "dead_letter_topic": "d", "accounts": [account]})
    site.process = site.receiptd.start("pages", command=command)
    site.process.port = reader.pages(site.process)
    pages = ("/livez", "/readyz", "/startupz", "/statusz", "/metrics", "/nothing")
    ask = lambda path, **headers: reader.raw(site.process, "\r\n".join([f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()),  # noqa: E731
                                                                         "Connection: close", "", ""]).encode())
    for path in pages:
        for host in FOREIGN:
            assert int(ask(path, Host=host).split()[1]) in (400, 421), (path, host)
        for host in OWN:
            assert int(ask(path, Host=host).split()[1]) not in (400, 421), (path, host)
    site.process.stop()
    site.receiptd.configure(http={"token": "a token of the tests"})
    site.process = site.receiptd.start("with-a-token", command=command)
    site.process.port = reader.pages(site.process)
    assert int(ask("/metrics", Host="prometheus.example").split()[1]) == 401
    assert int(ask("/metrics", Host="prometheus.example", Authorization="Bearer a token of the tests").split()[1]) == 200


def test_open_is_for_this_machine_alone(create_site):
    site = create_site(open=True)
    assert site.get("/campaigns", None).status == 200
    for host in FOREIGN:
        assert site.get("/campaigns", None, headers={"Host": host}).status in (400, 421), host
        assert site.get("/", None, headers={"Host": host}).status in (400, 421), host
    for host in OWN:
        assert site.get("/campaigns", None, headers={"Host": host}).status == 200, host
    for target, status in (("http://evil.example", 421), ("http://localhost:1", 200), ("http://localhost@evil.example", 421), ("HTTP://[::1].evil.example:1", 421)):
        answer = reader.raw(site.process, f"GET {target}/api/v1/campaigns HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
        assert int(answer.split()[1]) == status or status == 421 and b" 400 " in answer[:16], (target, answer[:200])
    site.receiptd.configure(serve={"listen": "0.0.0.0:0"})
    refused = site.receiptd.command("serve", check=False)
    assert refused.returncode == 78 and "serve.open would show everything to everybody" in refused.stderr


# ---- streams ---------------------------------------------------------------------------------------------------------

def count(database, campaign, messages=1):
    database.execute("INSERT INTO receiptd.counter_delta (kind, campaign_id, status, messages, events) VALUES ('funnel', %s, '{300}', %s, '{1}')",
                     [campaign], [messages])


def roll_up(database):
    text = (ROOT / "sql/control/rollup.sql").read_text().replace("$1", "1000").replace("$2", "0").replace("$3", "'funnel'")
    with database.connect() as connection:
        connection.execute("SET search_path = receiptd")
        connection.execute(text)
        connection.commit()


def campaigns(stream):
    return [data["campaign_id"] for name, data in stream.read() if name == "campaign"]


def test_a_change_is_told_also_when_it_was_rolled_up_in_between(site):
    roll_up(site.database)
    stream = reader.Stream(site.process, token=site.token)
    wait_for(lambda: None in campaigns(stream), what="the stream begins with: fetch again")
    assert stream.read()[0] == ("health", {"ok": True, "behind_s": None, "database": "up"})
    seen = 0
    for turn in range(4):
        count(site.database, "alpha-campaign")
        if turn % 2:
            roll_up(site.database)  # between two polls, most of the time
        seen += 1
        wait_for(lambda: campaigns(stream).count("alpha-campaign") >= seen, what=f"turn {turn}")
        roll_up(site.database)
        seen = campaigns(stream).count("alpha-campaign")
    assert "beta-campaign" not in campaigns(stream)
    # A transaction that was open during a poll and is committed later.
    with psycopg.connect(site.database.dsn) as late:
        late.execute("INSERT INTO receiptd.counter_delta (kind, campaign_id, status, messages, events) VALUES ('funnel', '{beta-campaign}', '{300}', '{1}', '{1}')")
        time.sleep(2.2)
        count(site.database, "alpha-campaign")
        wait_for(lambda: campaigns(stream).count("alpha-campaign") > seen, what="the other one")
        assert "beta-campaign" not in campaigns(stream)
        late.commit()
    wait_for(lambda: "beta-campaign" in campaigns(stream), what="the late one")
    stream.close()


def begin_to_watch(site, streams, everything, *of_alpha):
    """Until all streams are open and know what has happened so far: only one that was open before the first poll is told to fetch."""
    for name, stream in streams.items():
        wait_for(stream.read, what=f"{name} is open")

    def is_named():
        count(site.database, "alpha-campaign")
        time.sleep(0.5)
        return "alpha-campaign" in campaigns(everything)

    wait_for(is_named, what="a poll after the first")
    alpha = site.json("/campaigns/alpha-campaign/funnel")["statuses"]
    for stream in of_alpha:
        wait_for(lambda: any(data.get("funnel", {}).get("statuses") == alpha for _, data in stream.read()), what="the funnel of now")


def test_streams_tell_each_organisation_its_own(site):
    beta = reader.make_token(site.receiptd, "beta", "read", "--org", "beta-org")
    link = site.receiptd.command("serve", "link", "alpha-campaign").stdout.strip().partition("?link=")[2]
    streams = {"all": reader.Stream(site.process, token=site.token), "beta": reader.Stream(site.process, token=beta),
               "one": reader.Stream(site.process, "/stream?campaign=beta-campaign", site.token), "link": reader.Stream(site.process, f"/stream?link={link}")}
    begin_to_watch(site, streams, streams["all"], streams["link"])
    begun = {name: len(campaigns(stream)) for name, stream in streams.items()}
    count(site.database, "alpha-campaign")
    wait_for(lambda: campaigns(streams["link"])[begun["link"]:], what="alpha")
    count(site.database, "beta-campaign")
    wait_for(lambda: "beta-campaign" in campaigns(streams["beta"])[begun["beta"]:], what="beta")
    time.sleep(0.3)
    assert campaigns(streams["beta"])[begun["beta"]:] == campaigns(streams["one"])[begun["one"]:] == ["beta-campaign"]
    assert campaigns(streams["link"])[begun["link"]:] and set(campaigns(streams["link"])) == {"alpha-campaign"}
    for stream in streams.values():
        stream.close()


def test_the_stream_of_a_campaign_brings_its_funnel_to_those_who_may_see_it(site):
    """For all viewers by one question, which names the organisation of each."""
    beta = reader.make_token(site.receiptd, "beta", "read", "--org", "beta-org")
    link = site.receiptd.command("serve", "link", "alpha-campaign").stdout.strip().partition("?link=")[2]
    streams = {"alpha": reader.Stream(site.process, "/stream?campaign=alpha-campaign", site.token), "link": reader.Stream(site.process, f"/stream?link={link}"),
               "beta": reader.Stream(site.process, "/stream?campaign=beta-campaign", beta), "stranger": reader.Stream(site.process, "/stream?campaign=alpha-campaign", beta),
               "nothing": reader.Stream(site.process, "/stream?campaign=no-such-campaign", site.token), "list": reader.Stream(site.process, token=site.token)}
    funnels = lambda name: [data["funnel"] for event, data in streams[name].read() if event == "campaign" and "funnel" in data]  # noqa: E731
    begin_to_watch(site, streams, streams["list"], streams["alpha"])
    for campaign in ("alpha-campaign", "beta-campaign"):
        count(site.database, campaign)
    for name, campaign in (("alpha", "alpha-campaign"), ("link", "alpha-campaign"), ("beta", "beta-campaign")):
        truth = site.json(f"/campaigns/{campaign}/funnel")
        wait_for(lambda: funnels(name) and funnels(name)[-1]["statuses"] == truth["statuses"], what=f"the funnel for {name}")
        assert {**funnels(name)[-1], "as_of": None, "behind_s": None} == {**truth, "as_of": None, "behind_s": None}
    for name in ("stranger", "nothing", "list"):
        assert not funnels(name), name
    for stream in streams.values():
        stream.close()


def test_readers_are_told_how_far_the_counters_are_behind(site, topic, control):
    stream = reader.Stream(site.process, token=site.token)
    told = lambda: [data["behind_s"] for name, data in stream.read() if name == "health"]  # noqa: E731
    funnel = lambda: site.json("/campaigns/alpha-campaign/funnel")["behind_s"]  # noqa: E731
    daemon = site.receiptd.start()
    wait_for(lambda: funnel() is not None and funnel() < 2, 60, "the daemon is not behind")
    wait_for(lambda: told()[-1:] == [0] or told()[-1:] == [1], what="the stream says so")
    control.ctl("pause")
    topic.send({"message_id": "alpha-m0", "status": "CLICKED"})
    wait_for(lambda: funnel() >= 3, 60, "receipts lie in Kafka")
    wait_for(lambda: told()[-1] >= 3, 60, "the stream says so")
    assert site.json("/campaigns")["behind_s"] >= 3 and site.json("/status")["behind_s"] >= 3
    control.ctl("resume")
    wait_for(lambda: funnel() < 2 and told()[-1] < 2, 60, "they are applied")
    daemon.kill()
    before = funnel()
    wait_for(lambda: funnel() > before + 3, 60, "who says nothing counts as standing still")
    site.database.execute("UPDATE receiptd.instance_status SET at = at - interval '30 seconds'")
    wait_for(lambda: funnel() is None and told()[-1] is None, what="nothing is known any more")
    stream.close()


def resident_kib(process):
    return int(re.search(r"VmRSS:\s+(\d+)", open(f"/proc/{process.pid}/status").read())[1])


@pytest.mark.alone
def test_a_thousand_viewers_cost_little_and_get_all(site):
    for _ in range(20):
        site.get("/campaigns")
    before = resident_kib(site.process)
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    streams = []
    for _ in range(20):  # a question for a token waits two seconds at most
        streams += [reader.Stream(site.process, token=site.token) for _ in range(50)]
        wait_for(streams[-1].read, what="it begins")
    count(site.database, "alpha-campaign")
    for stream in streams:
        wait_for(lambda: "alpha-campaign" in campaigns(stream), what="each one is told")
    grown = resident_kib(site.process) - before
    print(f"1000 viewers: {grown} KiB")
    sanitized = "asan" in str(site.receiptd.command_binary())
    assert sanitized or grown < 20 * 1024
    for stream in streams:
        stream.close()
    assert site.get("/campaigns").status == 200


def test_those_who_ask_the_same_at_once_share_an_answer(site):
    """A change has all viewers of a campaign ask for it: most of them while the same question waits. Nobody gets an answer of another organisation."""
    beta = reader.make_token(site.receiptd, "beta", "read", "--org", "beta-org")
    asked = [("alpha", site.token, 200), ("beta", site.token, 200), ("beta", beta, 200), ("alpha", beta, 404)] * 100
    alone = {(org, token): site.get(f"/campaigns/{org}-campaign", token) for org, token, _ in asked[:4]}
    questions = lambda: metrics(reader.pages(site.process))["receiptd_serve_question_seconds_count",]  # noqa: E731
    before = questions()
    with psycopg.connect(site.database.dsn) as holder, ThreadPoolExecutor(len(asked)) as pool:
        holder.execute("LOCK TABLE receiptd.campaign_funnel_total, receiptd.serve_token IN ACCESS EXCLUSIVE MODE")
        answers = [(org, token, status, pool.submit(site.get, f"/campaigns/{org}-campaign", token)) for org, token, status in asked]
        wait_for(lambda: metrics(reader.pages(site.process))["receiptd_serve_questions_waiting",] > 0, what="some wait")
        holder.rollback()
        for org, token, status, answer in answers:
            answer = answer.result(60)
            assert answer.status == status and (status == 404 or answer.json["campaign_id"] == f"{org}-campaign"), answer
            assert answer.json.get("org_id") == alone[org, token].json.get("org_id")
    assert questions() - before < len(asked), "two questions each would be twice as many"


def test_a_viewer_that_does_not_read_gets_the_latest_alone_or_is_cut_off(site):
    """The socket of one that does not read fills; from then on nothing is kept for it, and when it reads again it is told to fetch again."""
    late, dead, reading = (reader.Stream(site.process, token=site.token) for _ in range(3))
    for stream in (late, dead, reading):
        wait_for(lambda: campaigns(stream), what="it begins")
    names = [(f"{n}" + "c" * 900,) for n in range(110)]

    def turn():
        """A text of 100 KB for each viewer."""
        seen = len(campaigns(reading))
        with site.database.connect() as connection, connection.cursor() as cursor:
            cursor.executemany("INSERT INTO receiptd.campaign_changed (campaign_id) VALUES (%s) ON CONFLICT (campaign_id) DO UPDATE SET changed_at = now()", names)
        wait_for(lambda: len(campaigns(reading)) >= seen + len(names), what="who reads is told all")

    before = resident_kib(site.process)
    turns = 12
    for _ in range(turns):
        turn()
    grown = resident_kib(site.process) - before
    assert "asan" in str(site.receiptd.command_binary()) or grown < 1024, grown
    wait_for(lambda: campaigns(late)[-1] is None, what="it is told to fetch again")
    assert 2 <= campaigns(late).count(None) and len(campaigns(late)) < turns * len(names)
    count(site.database, "alpha-campaign")
    wait_for(lambda: campaigns(late)[-1] == "alpha-campaign", what="it is told like the others")
    cut = lambda: metrics(reader.pages(site.process))["receiptd_serve_viewers_cut_total",]  # noqa: E731
    wait_for(lambda: cut() == 1, 60, "the one that never reads is cut off")
    for stream in (late, dead, reading):
        stream.close()


# ---- metrics ---------------------------------------------------------------------------------------------------------

def metrics(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        families = text_string_to_metric_families(answer.read().decode())
    return {(sample.name, *(value for name, value in sorted(sample.labels.items()) if name != "le"), *([sample.labels["le"]] if "le" in sample.labels else [])):
            sample.value for family in families for sample in family.samples}


@pytest.mark.parametrize("command", ["serve", "run"])
def test_metrics_say_what_readers_asked_and_how_long_it_took(create_site, command):
    site = create_site(enabled=True)
    site.process.stop()
    if command == "run":
        site.receiptd.configure(http={"listen": "127.0.0.1:0"})
    site.process = reader.start(site.receiptd, command)
    port = reader.pages(site.process)
    assert ("receiptd_serve_requests_total", "200", "/campaigns") not in metrics(port)
    for _ in range(3):
        site.get("/campaigns")
    for path, token in (("/campaigns?limit=0", site.token), ("/campaigns", None), ("/nothing", site.token), ("/", site.token),
                        ("/campaigns/alpha-campaign/recipients", site.token)):
        site.get(path, token)
    streams = [reader.Stream(site.process, token=site.token) for _ in range(4)]
    for stream in streams:
        wait_for(lambda: campaigns(stream), what="it begins")

    def settled():
        found = metrics(port)
        return found if found["receiptd_serve_question_seconds_count",] == found["receiptd_serve_wait_seconds_count",] else None

    found = wait_for(settled, what="no question of a stream is under way")
    requests = {key[1:]: value for key, value in found.items() if key[0] == "receiptd_serve_requests_total"}
    assert requests == {("200", "/campaigns"): 3, ("400", "/campaigns"): 1, ("401", "/campaigns"): 1, ("404", "none"): 1, ("200", "page"): 1,
                        ("200", "/campaigns/{campaign}/recipients"): 1, ("200", "/stream"): 4}
    assert found["receiptd_serve_request_seconds_count", "/campaigns"] == 5 == found["receiptd_serve_request_seconds_bucket", "/campaigns", "+Inf"]
    assert found["receiptd_serve_viewers",] == 4
    states = {key[1]: value for key, value in found.items() if key[0] == "receiptd_serve_connections"}
    assert sum(states.values()) == 2 and states["down"] == 0 and found["receiptd_serve_questions_waiting",] == 0
    assert found["receiptd_serve_question_seconds_count",] >= 10
    assert found["receiptd_serve_viewers_cut_total",] == 0
    assert ("receiptd_records_received_total",) in found if command == "run" else ("receiptd_records_received_total",) not in found
    for stream in streams:
        stream.close()
    wait_for(lambda: metrics(port)["receiptd_serve_viewers",] == 0, what="viewers are gone")


# ---- hostile requests ------------------------------------------------------------------------------------------------

HOSTILE = (
    "/campaigns/%", "/campaigns/%2", "/campaigns/%zz", "/campaigns/%00", "/campaigns/%ff%fe", "/campaigns/a%00b/funnel", "/campaigns//funnel",
    "/campaigns/../../etc/passwd", "/campaigns/%2e%2e%2f", "/campaigns/a/funnel/", "/campaigns?limit=0", "/campaigns?limit=-1",
    "/campaigns?limit=99999999999999999999", "/campaigns?limit=1&limit=2", "/campaigns?sort=", "/campaigns?sort=changed|rate", "/campaigns?q=%",
    "/campaigns?after=NaN:x", "/campaigns?after=1e400:x", "/campaigns?after=" + "9" * 990, "/campaigns?q=" + "x" * 1001, "/dead-letters?after=a|b|c",
    "/dead-letters?after=||||", "/actions?after=x", "/actions?status=pending'", "/messages?q=", "/messages", "/messages?q=%F0%28%8C%28",
    "/campaigns/'; DROP TABLE serve_token; --/funnel".replace(" ", "%20"), "/stream?campaign=%00", "/" + "a/" * 2000, "/campaigns?" + "a=1&" * 1000,
    "/me/", "//me", "/me%20", "/ME", "/campaigns/a/recipients?format=xml", "/openapi.json?x=%zz")


def test_what_the_server_itself_refuses_is_a_problem_too(site):
    host = f"Host: 127.0.0.1:{site.process.port}\r\n".encode()
    for request, status in ((b"DELETE /api/v1/campaigns HTTP/1.1\r\n" + host, 405), (b"POST /api/v1/campaigns HTTP/1.1\r\n" + host, 411),
                            (b"GET /" + b"a" * 20000 + b" HTTP/1.1\r\n" + host, 414), (b"GET /api/v1/me HTTP/1.1\r\n", 400), (b"nonsense\r\n", 400),
                            (b"POST /api/v1/dead-letters/redrive HTTP/1.1\r\nContent-Length: 99999\r\n" + host, 413)):
        head, _, body = reader.raw(site.process, request + b"\r\n").partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 %d " % status), head
        assert b"Content-Type: application/problem+json" in head and b"X-Content-Type-Options: nosniff" in head
        problem = json.loads(body)
        assert (problem["type"], problem["status"]) == ("about:blank", status) and problem["title"]


def test_a_hostile_path_gets_a_problem_and_harms_nothing(site):
    for path in HOSTILE:
        answer = site.get(path)
        assert answer.status in (400, 404) or "NaN" in path, (path, answer)
        if answer.status != 200:
            assert answer.json["status"] == answer.status, path
    assert site.get("/campaigns").status == 200 and "DROP" not in site.process.log()


def test_random_requests_are_all_answered(site):
    """What a client may come to by mistake or on purpose; with a build that has sanitizers it is worth most."""
    rng = random.Random(8322)
    described = site.json("/openapi.json")
    bits = [*described["paths"], "/api/v1", "/", "//", "/assets/app.js", "/campaign/x", "%00", "%ff", "%2F", "?", "&", "=", "limit=", "after=", "q=",
            "link=", "campaign=", "1:x", "\u00e9", "'", '"', "{", "}", "a" * 300, "..", ";", "#", "-1", "NaN", "a.1.b", "format=json"]
    headers = ["If-None-Match: *", "If-None-Match: W/\"x", "Accept-Encoding: gzip", "Authorization: Bearer", "Authorization: Basic x", "Authorization: Bearer x",
               "Range: bytes=0-", "X-Forwarded-For: 1.2.3.4", "Cookie: a=b", "Origin: null", f"Authorization: Bearer {site.token}", "Last-Event-ID: 1:2:3"]
    statuses = Counter()
    with socket.create_connection(("127.0.0.1", site.process.port), 60):  # one that says nothing
        for _ in range(int(os.environ.get("RECEIPTD_TEST_REQUESTS", "1500"))):
            target = "".join(rng.choice(bits) for _ in range(rng.randrange(1, 6))).replace("{campaign}", "alpha-campaign")
            if "/stream" in target:
                continue
            target = target if target.startswith("/") else "/" + target
            lines = [f"{rng.choice(['GET', 'GET', 'GET', 'HEAD', 'POST', 'OPTIONS'])} {target} HTTP/1.1", f"Host: 127.0.0.1:{site.process.port}",
                     *rng.sample(headers, rng.randrange(4)), f"Authorization: Bearer {site.token}" if rng.random() < 0.7 else "X: y", "Content-Length: 0",
                     "Connection: close", "", ""]
            answer = reader.raw(site.process, "\r\n".join(lines).encode(), 60)
            statuses[int(answer.split()[1])] += 1
    print(statuses)
    assert set(statuses) <= {200, 204, 304, 400, 401, 403, 404, 405, 501} and statuses[200] > 20
    assert site.get("/campaigns").status == 200


def test_bytes_that_are_no_request_are_refused(site):
    host = f"Host: 127.0.0.1:{site.process.port}\r\n"
    auth = f"Authorization: Bearer {site.token}\r\n"
    end = "Connection: close\r\n\r\n"
    for data, statuses in ((f"GET /api/v1/me HTTP/1.1\r\n{host}{host}{auth}{end}", (400,)),
                           (f"GET /api/v1/me HTTP/1.1\r\n{auth}{end}", (400,)),
                           (f"GET /api/v1/me HTTP/9.9\r\n{host}{end}", (400, 505)),
                           (f"PUT /api/v1/me HTTP/1.1\r\n{host}Content-Length: 0\r\n{auth}{end}", (405,)),
                           (f"DELETE /api/v1/campaigns HTTP/1.1\r\n{host}{auth}{end}", (405,)),
                           (f"GET /{'a' * 20000} HTTP/1.1\r\n{host}{auth}{end}", (414, 431)),
                           (f"GET /api/v1/me HTTP/1.1\r\n{host}X: {'a' * 20000}\r\n{end}", (431,)),
                           (f"POST /api/v1/dead-letters/redrive HTTP/1.1\r\n{host}{auth}Content-Length: 9999999\r\n{end}", (413,)),
                           ("\x16\x03\x01\x02\x00\x01\x00", (400,)), ("GET\r\n\r\n", (400,)),
                           (f"GET http://evil.example/api/v1/me HTTP/1.1\r\n{host}{auth}{end}", (200, 400, 421))):
        answer = reader.raw(site.process, data.encode())
        assert int(answer.split()[1]) in statuses, (data[:80], answer[:200])
    assert site.get("/campaigns").status == 200


def test_the_role_that_migrate_made_may_not_write(site):
    with psycopg.connect(make_conninfo(site.database.dsn, user=site.role), autocommit=True) as connection:
        for statement in ("DELETE FROM receiptd.serve_token", "INSERT INTO receiptd.serve_token (name, hash, scopes) VALUES ('x', 'x', '{read}')",
                          "UPDATE receiptd.message_inbox SET status = 0", "SELECT * FROM receiptd.erasure", "SELECT receiptd.watch_server()",
                          "CREATE TABLE receiptd.own (id int)"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement)


def test_a_reload_says_what_it_has_changed_and_a_file_with_a_fault_changes_nothing(site):
    dsn = make_conninfo(site.database.dsn, user=site.role, keepalives=1)
    site.receiptd.configure(serve={"dsn": dsn, "page": "false"}, log={"level": "debug"})
    site.process.signal(signal.SIGHUP)
    site.process.wait_for_log('msg="reload: applied: serve.dsn log.level"|msg="reload: applied: log.level serve.dsn"')
    site.process.wait_for_log('msg="reload: needs a restart: serve.page"')
    site.receiptd.configure(serve={"connections": 9})
    site.process.signal(signal.SIGHUP)
    site.process.wait_for_log('msg="reload: refused: .*serve.connections.*; the configuration stays as it was')
    site.receiptd.configure(serve={"connections": 2, "page": "true"})
    for _ in range(5):  # those that come while one is under way make one more
        site.process.signal(signal.SIGHUP)
    site.process.wait_for_log('msg="reload: nothing has changed"')
    assert site.get("/campaigns").status == 200


def test_run_answers_readers_where_it_is_enabled(create_site):
    site = create_site(enabled=True)
    site.process.stop()
    site.process = reader.start(site.receiptd, "run")
    assert site.json("/campaigns/alpha-campaign/funnel")["org_id"] == "alpha-org"
    stream = reader.Stream(site.process, token=site.token)
    wait_for(lambda: campaigns(stream), what="a stream")
    site.process.stop()
    assert json.dumps(stream.read())


def test_what_is_held_is_counted_up_to_ten_thousand_and_estimated_above(site):
    """Without statistics, too: nobody has run ANALYZE."""
    held = lambda: {name: site.json("/status")[name] for name in ("parked", "parked_is_estimate", "letters", "letters_is_estimate")}  # noqa: E731
    site.database.execute("TRUNCATE receiptd.dead_letter, receiptd.parked_event")
    assert held() == {"parked": 0, "parked_is_estimate": False, "letters": 0, "letters_is_estimate": False}
    site.database.execute("ALTER TABLE receiptd.dead_letter SET (autovacuum_enabled = off)")
    bury(site, 5)
    park = ('INSERT INTO receiptd.parked_event (topic, partition, "offset", index, lane, message_id, status, at, payload) SELECT \'t\', 0, i, 0, 0, \'m\' || i, 600,'
            " now(), '' FROM generate_series(%s::int8, %s) i")
    site.database.execute(park, 1, 2)
    assert held() == {"parked": 2, "parked_is_estimate": False, "letters": 5, "letters_is_estimate": False}
    bury(site, 9995, 5)
    wait_for(lambda: (held()["letters"], held()["letters_is_estimate"]) == (10000, False), what="ten thousand are counted")
    bury(site, 1, 10000)
    wait_for(lambda: (held()["letters"], held()["letters_is_estimate"]) == (10001, True), what="one more is an estimate")
    listed = [site.receiptd.command(*words).stdout for words in (("dead-letters",), ("dead-letters", "--limit", "1"), ("parked",), ("parked", "--limit", "1"),
                                                                  ("parked", "--limit", "2"))]
    assert listed[0].endswith("\n100 of about 10001 (an estimate): --limit shows more\n")
    assert "1 of about 10001 (an estimate)" in listed[1]
    assert "of 2:" not in listed[2] + listed[4] and listed[3].endswith("\n1 of 2: --limit shows more\n")
    alpha = reader.make_token(site.receiptd, "alpha", "operate", "--org", "alpha-org")
    assert [site.json("/status", alpha)[name] for name in ("parked", "parked_is_estimate", "letters")] == [None] * 3
