"""records: each event as a record of its own, as most producers send it, beside 1 000 events a record. receiptd, the bare statement and
a Go consumer take turns; so both ratios come from neighbouring runs."""

from lab import say
from meter import summary
from part_rivals import go_consumer
from runs import run_limit, run_receiptd
from stream import Stream

SHAPES = {"one": ("one event a record, 105 bytes", True), "thousand": ("1 000 events a record", False)}
REST_SECONDS = 5
FIGURES = ("events_per_second", "cpu_us_per_event", "server_us_per_event", "peak_rss_mib", "later_rss_mib")


def _receiptd(lab, stream, topic):
    run = run_receiptd(lab, stream, topic, rest_seconds=REST_SECONDS)
    run["cpu_us_per_event"] = run["daemon_us_per_event"]
    return run


def part_records(lab, options):
    result = {"rest_seconds": REST_SECONDS, "shapes": {}}
    for shape, (text, alone) in list(SHAPES.items())[:1 if options.quick else None]:
        stream = Stream("single", options.events, alone=alone)
        topic = lab.topic(stream)
        runners = {"receiptd": lambda: _receiptd(lab, stream, topic), "bare": lambda: run_limit(lab, stream)}
        go = go_consumer(lab, topic, stream)
        if go:
            runners["go"] = go
        runs = {name: [] for name in runners}
        for repeat in range(options.repeat):
            for name in runners if repeat % 2 == 0 else reversed(runners):
                runs[name].append(runners[name]())
                say(f"  {text}, {name}: " + ", ".join(f"{key} {runs[name][-1][key]:,.2f}" for key in FIGURES if key in runs[name][-1]))
        ours = runs["receiptd"]
        result["shapes"][shape] = {
            "text": text, "events": stream.event_count,
            "figures": {name: {key: summary([run.get(key) for run in found]) for key in FIGURES} for name, found in runs.items()},
            "ratios": {name: {key: summary([own[key] / other[key] for own, other in zip(ours, found) if key in other]) for key in FIGURES}
                       for name, found in runs.items() if name != "receiptd"}}
    return result
