"""snapshot: what a long open snapshot costs (pg_dump, an analyst, a forgotten transaction).

Two databases of one server get the same traffic, paced, for ten minutes; in one of them a repeatable-read transaction is
open all the time. (Since PostgreSQL 14 a snapshot keeps dead rows of its own database only.) Then bursts of fresh traffic
are applied at full speed, in turns, the snapshot still open: the ratio of the two rates is the snapshot's cost by then.
"""

import signal
import threading
import time
from contextlib import ExitStack, contextmanager

import psycopg
from lab import fill, say
from meter import Meter, summary
from stream import Stream
from support.progress import wait_until_consumed

MINUTES = 10
PACED_EVENTS = 600_000
BURST_EVENTS = 300_000
BURSTS = 5


def _add_messages(database, stream):
    with open(stream.messages_path, "rb") as file, database.connection.cursor() as cursor, \
            cursor.copy("COPY receiptd.message_inbox (message_id, org_id, campaign_id) FROM STDIN") as target:
        target.write(file.read())


@contextmanager
def _installation(lab, streams):
    """A daemon that runs on its own database and topic."""
    topic = lab.services.create_topic(8)
    with lab.database(streams[0]) as database:
        for stream in streams[1:]:
            _add_messages(database, stream)
        database.execute("VACUUM (FREEZE, ANALYZE) receiptd.message_inbox")
        receiptd = lab.receiptd(database, topic, log={"stats_interval": "0s"})
        process = receiptd.start()
        try:
            process.wait_for_log("consuming \\d+ partitions", timeout=60)
            yield database, topic, process
            process.signal(signal.SIGCONT)
            process.stop()
        finally:
            receiptd.close()
    topic.drop()


def _pace(topic, stream, seconds, failures):
    """The stream's records, evenly over the time."""
    try:
        producer = topic.producer(linger_ms=1)
        begun = time.monotonic()
        for number, value in enumerate(stream.records()):
            time.sleep(max(0.0, begun + seconds * number / stream.record_count - time.monotonic()))
            producer.produce(topic.name, value, partition=number % topic.partitions)
            producer.poll(0)
        if producer.flush(60):
            raise AssertionError("records were not acknowledged")
    except Exception as error:  # noqa: BLE001 - the main thread raises it
        failures.append(error)


def _burst(lab, installation, stream):
    """Events a second, and microseconds of the server for each."""
    database, topic, process = installation
    meter = Meter(lab, database, process.pid)
    fill(topic, stream)  # while the daemon is stopped, so that only its own speed counts
    meter.start("receiptd/%/lanes-%")
    process.signal(signal.SIGCONT)
    begun = time.monotonic()
    wait_until_consumed(database, topic, process, timeout=120)
    rate = stream.event_count / (time.monotonic() - begun)
    used = meter.stop()
    process.signal(signal.SIGSTOP)
    return rate, used["server"] / stream.event_count * 1e6


def _check(database, streams):
    expected = sum(stream.event_count for stream in streams)
    found = database.value("SELECT sum(events) FROM receiptd.campaign_funnel WHERE status > 0")
    assert found == expected, f"{found} of {expected} events counted"


def part_snapshot(lab, options):
    minutes = options.minutes or MINUTES
    paced = Stream("real", PACED_EVENTS)
    bursts = [Stream("real", BURST_EVENTS, salt=number + 1) for number in range(BURSTS)]
    streams = [paced, *bursts]
    rates = {"without": [], "with": []}
    costs = {name: [] for name in rates}
    with ExitStack() as stack:
        installations = {name: stack.enter_context(_installation(lab, streams)) for name in rates}
        holder = stack.enter_context(psycopg.connect(installations["with"][0].dsn))
        holder.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        holder.execute("SELECT count(*) FROM receiptd.message_inbox")
        failures = []
        threads = [threading.Thread(target=_pace, args=(topic, paced, minutes * 60, failures))
                   for _, topic, _ in installations.values()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures, failures
        for database, topic, process in installations.values():
            wait_until_consumed(database, topic, process)
            process.signal(signal.SIGSTOP)
        for number, stream in enumerate(bursts):
            order = list(rates) if number % 2 == 0 else list(reversed(rates))
            for name in order:
                rate, cost = _burst(lab, installations[name], stream)
                rates[name].append(rate)
                costs[name].append(cost)
        for database, _, process in installations.values():
            process.signal(signal.SIGCONT)
            _check(database, streams)
        holder.rollback()
    ratios = [a / b for a, b in zip(rates["with"], rates["without"])]
    say(f"  after {minutes:g} minutes: {summary(ratios)['median']:.2f} of the rate without a snapshot, "
        f"server {summary(costs['without'])['median']:.1f} and {summary(costs['with'])['median']:.1f} µs an event")
    return {"minutes": minutes, "paced_events": paced.event_count, "burst_events": bursts[0].event_count,
            "rates": {name: summary(found) for name, found in rates.items()},
            "server_us_per_event": {name: summary(found) for name, found in costs.items()}, "ratio": summary(ratios)}
