"""folding: how many receipts of a message meet in a batch, by batch limit and amount fetched ahead."""

from lab import say
from meter import summary
from runs import run_receiptd
from stream import Stream

EVENTS = 500_000
FIGURES = ("events_per_second", "events_per_row", "server_us_per_event", "peak_rss_mib")

# Of each group the runs are in turns; shares are of the first.
GROUPS = [("real", "`batch.catch_up`", {times: {"batch": {"catch_up": times}} for times in (1, 2, 4)})]
GROUPS += [(kind, "fetch budget", {budget: {"kafka": {"fetch_budget": budget}} for budget in ("16MiB", "32MiB", "64MiB")})
           for kind in ("real", "folded")]


def part_folding(lab, options):
    results = []
    for kind, what, cases in GROUPS:
        stream = Stream(kind, min(EVENTS, options.events))
        topic = lab.topic(stream)
        runs = {value: [] for value in cases}
        for number in range(options.repeat):
            for value in list(cases) if number % 2 == 0 else reversed(list(cases)):
                runs[value].append(run_receiptd(lab, stream, topic, settings=cases[value]))
        first = next(iter(runs.values()))
        for value, made in runs.items():
            found = {name: summary([run[name] for run in made]) for name in FIGURES}
            share = summary([run["events_per_second"] / other["events_per_second"] for run, other in zip(made, first)])
            results.append({"kind": kind, "what": what, "value": value, "least": stream.event_count / stream.message_count, "figures": found,
                            "share": share})
            say(f"  {kind}, {what} {value}: {found['events_per_second']['median']:,.0f} events/s, {share['median']:.2f}, "
                f"{found['events_per_row']['median']:.2f} receipts a row, {found['peak_rss_mib']['median']:.0f} MiB")
    return {"cases": results}
