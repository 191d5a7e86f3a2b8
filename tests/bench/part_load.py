"""limit and loadtest: always side by side in one run, in alternating order."""

from lab import say
from meter import summary
from runs import run_full_update, run_limit, run_receiptd
from stream import Stream

VARIANTS = {
    "single": ("one event per message, 100 campaigns", dict(kind="single")),
    "mix": ("the published mix: 100 SENT, 70 DELIVERED, 20 OPENED, 10 CLICKED", dict(kind="mix")),
    "folded": ("ten events of one message close together", dict(kind="folded")),
    "hot": ("one event per message, one campaign", dict(kind="single", campaigns=1)),
    "campaigns": ("one event per message, 10 000 campaigns", dict(kind="single", campaigns=10_000)),
    "real": ("IN_GTW, SENT, DELIVERED within seconds, 5 % twice, out of order", dict(kind="real")),
}

FIGURES = ("seconds", "events_per_second", "batches_per_minute", "records_per_minute", "daemon_us_per_event", "backends_us_per_event",
           "server_us_per_event", "broker_us_per_event", "wal_bytes_per_event", "peak_rss_mib", "batches")


def figures(runs, names=FIGURES):
    found = {name: summary([run.get(name) for run in runs]) for name in names}
    found = {name: value for name, value in found.items() if value}
    if runs and "response_ms" in runs[0]:
        found["response_ms"] = {key: summary([run["response_ms"][key] for run in runs])
                                for key in runs[0]["response_ms"]}
    return found


def part_limit(lab, options):
    """Rates of the bare statements: the most that the hardware and PostgreSQL allow."""
    stream = Stream("single", options.events)
    cases = [(f"{statement}, {connections} connection{'s' if connections > 1 else ''}", statement, connections)
             for statement in ("apply", "update") for connections in (1, 2)]
    if not options.quick:
        cases.append(("apply, 4 connections", "apply", 4))
    runs = {name: [] for name, _, _ in cases}
    runs["full"] = []
    for repeat in range(options.repeat):
        for name, statement, connections in cases if repeat % 2 == 0 else reversed(cases):
            result = run_limit(lab, stream, statement, connections=connections)
            runs[name].append(result)
            say(f"  {name}: {result['events_per_second']:,.0f} rows/s, {result['server_us_per_event']:.1f} µs of the server")
        result = run_full_update(lab, stream)
        runs["full"].append(result)
        say(f"  full-table UPDATE: {result['rows_per_second']:,.0f} rows/s")
    return {"events": stream.event_count, "runs": runs, "keys": compare_keys(lab, stream, options.repeat),
            "figures": {name: figures(found) for name, found in runs.items()}}


def compare_keys(lab, stream, repeat):
    """Keys of type uuid beside the same UUIDs as text, pair by pair."""
    found = {}
    for statement in ("update",):  # a lane sends ids as texts
        runs = {"text": [], "uuid": []}
        for number in range(max(3, repeat)):
            for keys in list(runs) if number % 2 == 0 else reversed(list(runs)):
                runs[keys].append(run_limit(lab, stream, statement, keys=keys))
                one = runs[keys][-1]
                say(f"  {statement}, {keys} keys: {one['events_per_second']:,.0f} rows/s, {one['server_us_per_event']:.1f} µs of the server, "
                    f"{one['wal_bytes_per_event']:.0f} bytes, index {one['key_index_mib']:.0f} MiB")
        names = ("events_per_second", "server_us_per_event", "wal_bytes_per_event", "table_mib", "key_index_mib")
        found[statement] = {keys: figures(made, names) for keys, made in runs.items()}
        found[statement]["ratios"] = {name: summary([uuid[name] / text[name] for text, uuid in zip(runs["text"], runs["uuid"])])
                                      for name in names}
    return found


def beside_limit(lab, stream, topic, repeat, lanes=8, connections=2):
    """receiptd and the same statements bare, alternating which goes first; the share is taken pair by pair."""
    ours, bare = [], []
    for number in range(repeat):
        order = ("limit", "receiptd") if number % 2 == 0 else ("receiptd", "limit")
        for who in order:
            if who == "limit":
                bare.append(run_limit(lab, stream, "apply", lanes, connections))
                say(f"    bare      {bare[-1]['events_per_second']:>9,.0f} events/s")
            else:
                ours.append(run_receiptd(lab, stream, topic, lanes, connections))
                say(f"    receiptd  {ours[-1]['events_per_second']:>9,.0f} events/s, "
                    f"{ours[-1]['daemon_us_per_event']:.2f} µs daemon, {ours[-1]['server_us_per_event']:.1f} µs server, "
                    f"{ours[-1]['peak_rss_mib']:.0f} MiB")
    shares = [b["seconds"] / o["seconds"] for o, b in zip(ours, bare)]
    return {"receiptd": ours, "limit": bare, "share": summary(shares), "figures": figures(ours),
            "limit_figures": figures(bare)}


def part_loadtest(lab, options):
    results = {}
    for name in ("single",) if options.quick else VARIANTS:
        text, arguments = VARIANTS[name]
        stream = Stream(events=options.events, **arguments)
        topic = lab.topic(stream)
        say(f"  {name}: {text}; {stream.event_count:,} events of {stream.message_count:,} messages")
        results[name] = beside_limit(lab, stream, topic, options.repeat)
        results[name].update(text=text, events=stream.event_count, messages=stream.message_count,
                             records=stream.record_count)
        if name not in ("single", "real"):  # these two are used again by other parts
            lab.drop_topic(stream)
            lab.drop_template(stream)
    return {"variants": results}
