"""folding: how many receipts of a message meet in a batch, and what fetching ahead and the batch limit have to do with it."""

from lab import say
from meter import summary
from runs import run_receiptd
from stream import Stream

EVENTS = 500_000
CASES = [("real", "batch limit", {"batch": {"max_events": limit, "max_bytes": "16MiB"}}, limit) for limit in (4_000, 16_000)]
CASES += [(kind, "fetch budget", {"kafka": {"fetch_budget": budget}}, budget)
          for kind in ("real", "folded") for budget in ("16MiB", "32MiB", "64MiB")]


def part_folding(lab, options):
    results = []
    for kind, what, settings, value in CASES:
        stream = Stream(kind, min(EVENTS, options.events))
        topic = lab.topic(stream)
        runs = [run_receiptd(lab, stream, topic, settings=settings) for _ in range(options.repeat)]
        found = {name: summary([run[name] for run in runs])
                 for name in ("events_per_second", "events_per_row", "server_us_per_event", "peak_rss_mib")}
        results.append({"kind": kind, "what": what, "value": value, "least": stream.event_count / stream.message_count, "figures": found})
        say(f"  {kind}, {what} {value}: {found['events_per_second']['median']:,.0f} events/s, "
            f"{found['events_per_row']['median']:.2f} receipts a row, {found['peak_rss_mib']['median']:.0f} MiB")
    return {"cases": results}
