"""flights: batches in two flights (RECEIPTD_FLIGHTS=2) beside those in one, in turns: rate and cost, connections, latency."""

import os
from contextlib import contextmanager

from lab import say
from meter import summary
from part_latency import at_rate
from runs import run_receiptd
from stream import Stream

# campaigns, connections
CASES = ((100, 2), (100, 3), (100, 4), (10_000, 2), (10_000, 3))
RATES = ((1_000, 1, 15), (10_000, 10, 15))
FIGURES = ("events_per_second", "server_us_per_event", "backends_us_per_event", "daemon_us_per_event", "wal_bytes_per_event")


@contextmanager
def flights(number):
    if number == 2:
        os.environ["RECEIPTD_FLIGHTS"] = "2"
    try:
        yield
    finally:
        os.environ.pop("RECEIPTD_FLIGHTS", None)


def in_turns(repeat, run):
    """{1: runs, 2: runs}; who begins alternates."""
    found = {1: [], 2: []}
    for turn in range(repeat):
        for number in (1, 2) if turn % 2 == 0 else (2, 1):
            with flights(number):
                found[number].append(run())
    return found


def part_flights(lab, options):
    results = []
    for campaigns, connections in CASES:
        stream = Stream("single", options.events, campaigns=campaigns)
        topic = lab.topic(stream)
        runs = in_turns(options.repeat, lambda: run_receiptd(lab, stream, topic, connections=connections))
        shares = summary([two["events_per_second"] / one["events_per_second"] for one, two in zip(runs[1], runs[2])])
        figures = {number: {name: summary([run[name] for run in made]) for name in FIGURES} for number, made in runs.items()}
        results.append({"campaigns": campaigns, "connections": connections, "figures": figures, "share": shares})
        for number, of in figures.items():
            say(f"  {campaigns} campaigns, {connections} connections, {number} flights: {of['events_per_second']['median']:,.0f} events/s, server "
                f"{of['server_us_per_event']['median']:.2f} us, of that lanes {of['backends_us_per_event']['median']:.2f}, daemon "
                f"{of['daemon_us_per_event']['median']:.2f}, WAL {of['wal_bytes_per_event']['median']:.0f} bytes an event")
        say(f"  two flights have {shares['median']:.2f} ({shares['min']:.2f} … {shares['max']:.2f}) of the rate of one")
    latency = []
    stream = Stream("single", 300_000)
    for rate, per_record, seconds in RATES:
        runs = in_turns(max(1, options.repeat - 1), lambda: at_rate(lab, stream, rate, per_record, seconds))
        for number, made in runs.items():
            p50, p99 = (summary([run[name] for run in made]) for name in ("p50", "p99"))
            latency.append({"rate": rate, "flights": number, "p50": p50, "p99": p99})
            say(f"  {rate:,} events/s, {number} flights: p50 {p50['median']:.1f} ms, p99 {p99['median']:.1f} ms ({p99['min']:.1f} … {p99['max']:.1f})")
    return {"events": options.events, "cases": results, "latency": latency}
