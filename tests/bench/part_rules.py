"""rules: the rate with each rule alone, and with all of them, as shares of the rate without."""

import datetime

from lab import say
from meter import summary
from runs import run_between, run_receiptd
from stream import Stream

EVENTS = 2_000_000  # so many that plans and cells that are made once hardly count
ON = {
    "none": {},
    "dedup": {"dedup": {"window": "7d"}},
    "series": {"counters": {"series": "90d"}},
    "reasons": {"counters": {"reasons": True}},
    "gateways": {"counters": {"gateways": "90d"}},
    "times": {"counters": {"times": True}},
    "links": {"counters": {"links": True}},
    "cost": {"counters": {"cost": True}},
    "all": {"dedup": {"window": "7d"}, "counters": {"series": "90d", "reasons": True, "gateways": "90d", "times": True}},
}
FIGURES = ("events_per_second", "server_us_per_event", "daemon_us_per_event", "wal_bytes_per_event")


def part_rules(lab, options):
    """The stream has no two copies of an event, so `events` is the same with every rule."""
    stream = Stream("mix", min(EVENTS, 2 * options.events), day=str(datetime.date.today() - datetime.timedelta(days=1)))
    topic = lab.topic(stream)

    def run(case):
        """With an inbox that `receiptd migrate` has made for these settings."""
        times = ON[case].get("counters", {}).get("times")
        return run_receiptd(lab, stream, topic, settings=ON[case], fillfactor=40 if times else None)

    runs, shares = run_between(run, [case for case in ON if case != "none"], "none", options.repeat)
    results = []
    for case, made in runs.items():
        found = {name: summary([run[name] for run in made]) for name in FIGURES}
        share = summary(shares[case])
        results.append({"rule": case, "figures": found, "share": share})
        say(f"  {case}: {found['events_per_second']['median']:,.0f} events/s, {share['median']:.2f}, server {found['server_us_per_event']['median']:.1f} us,"
            f" daemon {found['daemon_us_per_event']['median']:.1f} us, {found['wal_bytes_per_event']['median']:.0f} bytes of WAL an event")
    return {"events": stream.event_count, "cases": results}
