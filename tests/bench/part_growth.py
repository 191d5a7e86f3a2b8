"""growth: the same work with more or fewer partitions, lanes, connections, larger batches, fuller pages, other ids."""

from lab import say
from meter import summary
from runs import run_receiptd
from stream import Stream

EVENTS = 200_000


def cases():
    """(what, value, stream arguments, partitions, arguments of the run)"""
    for partitions in (1, 8, 64):
        yield "partitions", partitions, {}, partitions, {}
    for lanes in (1, 8, 32):
        yield "lanes", lanes, {}, 8, {"lanes": lanes, "connections": min(lanes, 2)}
    for connections in (1, 2, 4, 8):
        yield "connections", connections, {}, 8, {"connections": connections}
    for limit in (100, 500, 1_000, 4_000, 20_000):
        yield "batch limit", limit, {}, 8, {"settings": {"batch": {"max_events": limit, "max_bytes": "16MiB"}}}
    for fillfactor in (50, 80, 100):
        yield "fillfactor", fillfactor, {}, 8, {"fillfactor": fillfactor}
    for ids in ("uuid", "ulid", "smpp"):
        yield "ids", ids, {"ids": ids}, 8, {}


def part_growth(lab, options):
    events = min(EVENTS, options.events)
    results = []
    for what, value, arguments, partitions, settings in cases():
        stream = Stream("single", events, **arguments)
        topic = lab.topic(stream, partitions)
        runs = [run_receiptd(lab, stream, topic, **settings) for _ in range(options.repeat)]
        figures = {name: summary([run[name] for run in runs])
                   for name in ("events_per_second", "daemon_us_per_event", "server_us_per_event", "peak_rss_mib",
                                "wal_bytes_per_event", "batches")}
        results.append({"what": what, "value": value, "figures": figures})
        say(f"  {what} {value}: {figures['events_per_second']['median']:,.0f} events/s, "
            f"{figures['daemon_us_per_event']['median']:.2f} µs daemon, "
            f"{figures['server_us_per_event']['median']:.1f} µs server")
        if partitions != 8:
            lab.drop_topic(stream, partitions)
    return {"events": events, "cases": results}
