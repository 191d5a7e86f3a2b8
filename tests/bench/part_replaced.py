"""replaced: the two forms that receiptd replaces, in their usual form, on a sample.

Both in Python with psycopg and ten consumers, reading the events from memory instead of Kafka and with
synchronous_commit off: all of that is in their favour.

lock        one advisory lock per message id, taken and released over the network; between them read, decide, write, and
            +1/-1 on the summary
optimistic  one UPDATE with a join on the priorities and an IN list per status and batch; the summary incremented per event
"""

import itertools
import json
import multiprocessing
import time
import traceback

import psycopg
from lab import say
from meter import Meter, summary
from runs import run_receiptd
from stream import Stream

CONSUMERS = 10
SAMPLE = 50_000

SUMMARY = """
CREATE TABLE receiptd.campaign_summary (campaign_id text, status smallint, n bigint NOT NULL, PRIMARY KEY (campaign_id, status));
INSERT INTO receiptd.campaign_summary
SELECT 'campaign-' || c, p.code, 0 FROM generate_series(0, 99) c, receiptd.message_status_priority p
"""


def lock_per_message(connection, codes, events):
    for event in events:
        message, new = event["message_id"], codes[event["status"]]
        connection.execute("SELECT pg_advisory_lock(hashtextextended(%s, 0))", (message,))
        old, campaign = connection.execute(
            "SELECT status, campaign_id FROM message_inbox WHERE message_id = %s", (message,)).fetchone()
        if new > old:
            with connection.transaction():
                connection.execute("UPDATE message_inbox SET status = %s, updated_at = now() WHERE message_id = %s",
                                   (new, message))
                # In one order, or two consumers deadlock.
                for status, change in sorted(((old, -1), (new, 1))):
                    connection.execute("UPDATE campaign_summary SET n = n + %s WHERE campaign_id = %s AND status = %s",
                                       (change, campaign, status))
        connection.execute("SELECT pg_advisory_unlock(hashtextextended(%s, 0))", (message,))


def optimistic(connection, codes, events):
    by_status = {}
    for event in events:
        by_status.setdefault(event["status"], []).append(event["message_id"])
    increments = sorted((event["campaign_id"], codes[event["status"]]) for event in events)
    while True:
        try:
            with connection.transaction(), connection.pipeline():
                for status in sorted(by_status):
                    ids = sorted(set(by_status[status]))
                    places = ",".join(["%s"] * len(ids))
                    connection.execute(
                        "UPDATE message_inbox m SET status = n.code, updated_at = now()"
                        " FROM message_status_priority o, message_status_priority n"
                        " WHERE o.code = m.status AND n.code = %s AND n.priority > o.priority"
                        f" AND m.message_id IN ({places})", (codes[status], *ids), prepare=False)
                for campaign, status in increments:
                    connection.execute("UPDATE campaign_summary SET n = n + 1 WHERE campaign_id = %s AND status = %s",
                                       (campaign, status))
            return
        except (psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure):
            continue  # the published form has deadlocks too; its batch is repeated


FORMS = {"lock": lock_per_message, "optimistic": optimistic}


def _consumer(form, dsn, batches, ready, go, failed):
    try:
        with psycopg.connect(dsn, autocommit=True, application_name="bench-replaced") as connection:
            connection.execute("SET search_path = receiptd")
            connection.execute("SET synchronous_commit = off")
            codes = dict(connection.execute("SELECT name, code FROM message_status_priority").fetchall())
            ready.release()
            go.wait()
            for batch in batches:
                FORMS[form](connection, codes, batch)
    except Exception:  # noqa: BLE001 - reported to the parent
        traceback.print_exc()
        failed.set()
        ready.release()


def run_form(lab, stream, form, records):
    with lab.database(stream) as database:
        database.execute(SUMMARY)
        context = multiprocessing.get_context("fork")
        ready, go, failed = context.Semaphore(0), context.Event(), context.Event()
        workers = [context.Process(target=_consumer, args=(form, database.dsn, records[number::CONSUMERS], ready, go, failed))
                   for number in range(CONSUMERS)]
        for worker in workers:
            worker.start()
        for _ in workers:
            ready.acquire()
        meter = Meter(lab, database)
        meter.start("bench-replaced")
        begun = time.monotonic()
        go.set()
        for worker in workers:
            worker.join()
        seconds = time.monotonic() - begun
        used = meter.stop()
        assert not failed.is_set() and not any(worker.exitcode for worker in workers), f"{form} failed, see above"
    events = sum(len(record) for record in records)
    return {"seconds": seconds, "events": events, "events_per_second": events / seconds,
            "server_us_per_event": used["server"] / events * 1e6}


def part_replaced(lab, options):
    stream = Stream("real", options.events)
    topic = lab.topic(stream)
    sample = min(SAMPLE, stream.event_count)
    records = [json.loads(value) for value in itertools.islice(stream.records(), sample // 1000)]
    runs = {"lock": [], "optimistic": [], "receiptd": []}
    for repeat in range(options.repeat):
        for form in ("receiptd", "optimistic", "lock") if repeat % 2 else ("lock", "optimistic", "receiptd"):
            if form == "lock" and repeat > 1:
                continue  # minutes each; two are enough to see it
            result = run_receiptd(lab, stream, topic) if form == "receiptd" else run_form(lab, stream, form, records)
            for bulky in ("timeline", "answers"):
                result.pop(bulky, None)
            runs[form].append(result)
            say(f"  {form}: {result['events_per_second']:,.0f} events/s")
    return {"sample": sample, "consumers": CONSUMERS, "runs": runs,
            "rates": {form: summary([run["events_per_second"] for run in found]) for form, found in runs.items()},
            "factors": {form: summary([ours["events_per_second"] / theirs["events_per_second"]
                                       for ours, theirs in zip(runs["receiptd"], runs[form])])
                        for form in ("lock", "optimistic")}}
