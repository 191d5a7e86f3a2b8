"""beside: rules and dimensions with this build and with another one (RECEIPTD_BENCH_BESIDE), in turns, each with a database of its own release."""

import copy
import datetime
import os

import part_dimensions
from lab import say
from meter import summary
from part_rules import EVENTS, ON
from runs import run_receiptd
from stream import Stream

COUNTERS = {"series": "90d", "reasons": True, "gateways": "90d"}
CASES = {**{name: ON[name] for name in ("none", "dedup", "series", "reasons", "gateways", "times")}, "counters": {"counters": COUNTERS},
         "dedup, counters": {**ON["dedup"], "counters": COUNTERS}, "all": ON["all"]}
DIMENSIONS = (0, 1, 3)
FIGURES = ("events_per_second", "server_us_per_event", "backends_us_per_event", "daemon_us_per_event", "wal_bytes_per_event")


def in_turns(lab, cases, repeat, run):
    """{case: {build: its runs}}; run(build, case)."""
    builds = {"other": os.environ["RECEIPTD_BENCH_BESIDE"], "this": os.environ.get("RECEIPTD_BINARY")}
    found = {case: {build: [] for build in builds} for case in cases}
    for number in range(repeat):
        for case in cases:
            for build in builds if number % 2 == 0 else reversed(builds):
                if builds[build]:
                    os.environ["RECEIPTD_BINARY"] = builds[build]
                else:
                    os.environ.pop("RECEIPTD_BINARY", None)
                found[case][build].append(run(build, case))
    return found


def show(found):
    results = []
    for case, builds in found.items():
        figures = {build: {name: summary([run[name] for run in runs]) for name in FIGURES} for build, runs in builds.items()}
        results.append({"case": case, "figures": figures})
        for build, of in figures.items():
            say(f"  {str(case):16} {build:5} {of['events_per_second']['median']:>9,.0f} events/s, server {of['server_us_per_event']['median']:5.2f} us (least "
                f"{of['server_us_per_event']['min']:5.2f}), of that lanes {of['backends_us_per_event']['median']:5.2f} (least {of['backends_us_per_event']['min']:5.2f}),"
                f" daemon {of['daemon_us_per_event']['median']:.2f}, WAL {of['wal_bytes_per_event']['median']:.0f} bytes an event")
    return results


def part_beside(lab, options):
    day = str(datetime.date.today() - datetime.timedelta(days=1))
    stream, wide = Stream("mix", min(EVENTS, options.events), day=day), Stream("mix", min(EVENTS, options.events), campaigns=part_dimensions.CAMPAIGNS)
    topic, wide_topic = lab.topic(stream), lab.topic(wide)
    streams, templates = {}, {}

    def run_rules(build, case):
        if build not in streams:
            streams[build] = copy.copy(stream)
            streams[build].inbox_name = f"{build}-{stream.inbox_name}"
        return run_receiptd(lab, streams[build], topic, settings=CASES[case])

    def run_dimensions(build, count):
        if (build, count) not in templates:
            templates[build, count] = part_dimensions.make(lab, wide, count)
        return part_dimensions.run(lab, wide, wide_topic, templates[build, count], count)

    results = show(in_turns(lab, DIMENSIONS, options.repeat, run_dimensions)) + show(in_turns(lab, CASES, options.repeat, run_rules))
    for template in templates.values():
        template.drop()
    return {"events": stream.event_count, "cases": results}
