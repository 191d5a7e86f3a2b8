"""The rows of a record (support/records.py) from the raw result of each part of the bench."""

import statistics

from support.records import number

# The figures of a run: column and decimals of each. µs and bytes are those of a receipt.
FIGURES = {
    "seconds": ("seconds", 1), "events_per_second": ("events/s", 0), "records_per_minute": ("records a minute", 0), "batches": ("transactions", 0),
    "events_per_row": ("receipts a row", 2), "daemon_us_per_event": ("daemon µs", 2), "cpu_us_per_event": ("own CPU µs", 2),
    "server_us_per_event": ("server µs", 1), "backends_us_per_event": ("lanes µs", 1), "broker_us_per_event": ("broker µs", 1),
    "wal_bytes_per_event": ("WAL bytes", 0), "peak_rss_mib": ("peak RSS MiB", 0), "later_rss_mib": ("later RSS MiB", 0), "table_mib": ("table MiB", 0),
    "key_index_mib": ("key's index MiB", 0)}
RATIO = 2  # decimals


def rounded(value, digits=0):
    if value is None:
        return None
    return round(value, digits) if digits else round(value)


def spread(found, digits=0, scale=1.0):
    """[median, least, most]; a number alone where there was one run."""
    if not found:
        return None
    values = [rounded(found[point] * scale, digits) for point in ("median", "min", "max")]
    return values[0] if found["runs"] == 1 else values


def ratio(found):
    return spread(found, RATIO)


def columns(found):
    return {column: spread(found[name], digits) for name, (column, digits) in FIGURES.items() if isinstance(found.get(name), dict)}


def milliseconds(found, points=("p50", "p99"), digits=1):
    return {f"{point} ms": rounded(found[point], digits) for point in points}


def limit(result):
    names = {"full": "UPDATE of the whole table, one statement"}
    yield from ({"case": names.get(name, name), **columns(found)} for name, found in result["figures"].items())
    for statement, kinds in result.get("keys", {}).items():
        yield from ({"case": f"{statement}, {keys} keys", **columns(kinds[keys])} for keys in ("text", "uuid"))
        yield {"case": f"{statement}, uuid by text", **{f"{FIGURES[name][0]}, as a multiple": ratio(found) for name, found in kinds["ratios"].items() if name in FIGURES}}


def loadtest(result):
    for name, found in result["variants"].items():
        response = found["figures"]["response_ms"]
        yield {"case": found["text"], "traffic": name, "events": found["events"], "messages": found["messages"], **columns(found["figures"]),
               "of the bare statement": ratio(found["share"]), **{f"response ms, {point}": spread(response[point]) for point in ("mean", "p50", "p99")}}


def records(result):
    for found in result["shapes"].values():
        for name, figures in found["figures"].items():
            ratios = found["ratios"].get(name, {})
            yield {"case": f"{name}, {found['text']}", **columns(figures), "receiptd's rate as a multiple": ratio(ratios.get("events_per_second")),
                   "receiptd's CPU as a multiple": ratio(ratios.get("cpu_us_per_event"))}


def latency(result):
    for found in result["rates"]:
        yield {"case": f"{number(found['rate'])} events/s, {found['per_record']} a record", **milliseconds(found), "p99.9 ms": rounded(found["p999"], 1),
               "max ms": rounded(found["max"], 1), "generator late ms": rounded(found["generator"]["generator_behind_ms"], 1)}
    backlog, during = result["backlog"], result["backlog"]["during"]
    if during["count"]:
        yield {"case": f"{number(backlog['rate'])} fresh events/s beside a backlog of {number(backlog['backlog'])}", **milliseconds(during), "p99.9 ms": rounded(during["p999"], 1),
               "seconds": rounded(backlog["backlog_seconds"], 1)}


def cost(result):
    for name, part in result.get("profile", {}).get("parts", {}).items():
        yield {"case": name, "share %": rounded(100 * part["share"]), "daemon µs": rounded(part["us_per_event"], 2)}
    own, calls = result["allocations"], result.get("system_calls", {})
    yield {"case": "all", "own allocations an event": rounded(own["own_per_event"], 4), "own allocations a record": rounded(own["own_per_record"], 1),
           "allocations of libraries an event": rounded(own["libraries_per_event"], 4), "system calls a transaction": rounded(calls.get("per_batch")),
           "system calls an event": rounded(calls.get("per_event"), 3), "system calls": calls.get("calls"), "WAL bytes": rounded(result["wal_bytes_per_event"])}


def replaced(result):
    names = {"lock": "a lock per message id", "optimistic": "join on the priorities, IN lists, counters per event"}
    for name, text in names.items():
        yield {"case": text, "events/s": spread(result["rates"][name]), "receiptd's rate as a multiple": spread(result["factors"][name], 1)}
    yield {"case": "receiptd (all events)", "events/s": spread(result["rates"]["receiptd"])}


def rivals(result):
    kinds = {"single": "one event per message", "real": "real traffic"}
    for kind, found in result["streams"].items():
        for name, figures in found["figures"].items():
            yield {"case": f"{name}, {kinds[kind]}", **columns(figures), "receiptd's rate as a multiple": ratio(found["factors"].get(name))}


def growth(result):
    return ({"case": f"{case['what']}: {case['value']}", **columns(case["figures"])} for case in result["cases"])


def folding(result):
    return ({"case": f"{case['kind']}, {case['what']} {case['value']}", **columns(case["figures"]), "of the first": ratio(case["share"]),
             "receipts a row at most": rounded(case["least"], 2)} for case in result["cases"])


def rows(result):
    names = {"after": "right after a checkpoint", "between": "between checkpoints", "packed": f"after a checkpoint, wal_compression={result['compression']}"}
    for case in result["cases"]:
        yield {"case": f"{number(case['rows'])} rows, fillfactor {case['fillfactor']}, {names[case['way']]}", **columns(case), "of the first": ratio(case["ratio"]),
               "table MiB": case["table_mib"], "key's index MiB": case["index_mib"]}


FAMILIES = {"random": "random ids, flat", "mapped": "random ids, a table of the platform's", "ordered": "time-ordered ids, flat",
            "partitions": "time-ordered ids, a partition a day", "default": "time-ordered ids, a partition of 3 days",
            "weeks": "time-ordered ids, a partition a week", "days": "random ids, a table of the platform's"}


def recent(result):
    for case in result["cases"]:
        name = FAMILIES[case["family"]] + (" in a partition a day" if case.get("by_days") else "") + (", recent set" if case["recent_set"] else "")
        yield {"case": f"{name}, {number(case['rows'])} messages", "messages": case["rows"], "days": rounded(case["days"], 0 if case["days"] > 2 else 1), **columns(case), "of the first": ratio(case["share"]),
               "server, of the first": ratio(case["server_share"]), "of the bare": ratio(case["of_bare"]), "bare, of the first": ratio(case["bare_share"])}


def mapped(result):
    for case in result["cases"]:
        indexed = ", index on the status" if case["indexed"] else ""
        yield {"case": f"fillfactor {case['fillfactor']}{indexed}", **columns(case["figures"]), "of the first": ratio(case["share"]),
               "HOT updates %": rounded(100 * case["figures"]["hot"]["median"])}


def dimensions(result):
    return ({"case": f"dimensions: {case['dimensions']}", **columns(case["figures"]), "of the rate without": ratio(case["share"])} for case in result["cases"])


def retention(result):
    names = {"row": "row of the inbox, fillfactor 50", "key": "its entry in the key", "campaign": "its entry in the index of campaigns", "alias": "alias with its key",
             "remembered": "id remembered after its message went", "wal": "WAL of retiring it"}
    yield from ({"case": names[name], "bytes of a message": spread(found)} for name, found in result["bytes"].items())
    yield {"case": "receipts beside receiptd retire", "messages retired/s": spread(result["retired_per_second"]), "of the rate without": ratio(result["share"]),
           "longest batch ms": spread(result["longest_ms"]), "longest batch ms without": spread(result["longest_without_ms"])}


def dropped(result):
    figures = result["figures"]
    yield {"case": f"dropping {number(result['rows'])} messages", "seconds": spread(result["seconds"], 1), "load": spread(result["load"], 1),
           "lock wait ms": spread(result["lock_ms"]), "runs with drift": result["drift"]}
    for case, key in (("a batch beside it", "beside"), ("a batch without it", "calm")):
        yield {"case": case, **{f"{point} ms": spread(figures[f"{key}_{point}"]) for point in ("p50", "p99", "max")}}


def snapshot(result):
    for name in ("without", "with"):
        yield {"case": f"{name} a snapshot", "events/s": spread(result["rates"][name]), "server µs": spread(result["server_us_per_event"][name], 1),
               "of the rate without": ratio(result["ratio"]) if name == "with" else None}


def tracing(result):
    def switched(found):
        return [rounded(found[name], 3) for name in ("ratio", "low", "high")]

    scrape, used = result["scrape"], result["daemon_us_per_event"]
    yield {"case": f"tracing, {result['sampled']:.0%} of the records sampled", "of the rate without": switched(result["tracing"]), "pairs": result["tracing"]["pairs"],
           "daemon µs": spread(used["traced"], 2)}
    yield {"case": f"{scrape['per_second']} scrapes a second", "of the rate without": switched(scrape), "pairs": scrape["pairs"], "daemon µs": spread(used["scraped"], 2)}
    yield {"case": "a scrape", "scrapes": scrape["scrapes"], "page bytes": scrape["bytes"],
           **{f"{name} ms, {point}": rounded(scrape[f"{name}_ms"][key], 2) for name in ("page", "answer") for point, key in (("p50", "median"), ("p99", "p99"), ("worst", "max"))}}


def intake(result):
    names = {"intake": "one receipt a request, acknowledged by Kafka", "nginx": "nginx, one worker, an empty 200", "batches": "batches of 1 000 events, events/s"}
    for name, text in names.items():
        found = result["figures"][name]
        yield {"case": text, "requests/s": spread(found["per_second"]), "requests/s and core": spread(found["per_core"]), "CPU µs a request": spread(found["cpu_us"], 1)}
    yield {"case": "of nginx's rate", "by core": ratio(result["share_by_core"]), "by the clock": ratio(result["share_by_clock"]), "peak RSS MiB": rounded(result["peak_rss_mib"])}
    half, attacked = result["half"], result["attacked"]
    yield {"case": "acknowledged, on a core of its own" if result["apart"] else "acknowledged, on the generator's core", "requests/s": rounded(result["full"])}
    yield {"case": "half of that rate", "requests/s": rounded(half["rate"]), "connections": half["connections"], **milliseconds(half), "refused": half["refused"]}
    yield {"case": "the same under attack", "p99 ms": rounded(attacked["p99"], 1), "of the p99 without": rounded(result["attack_ratio"], 2), "refused": attacked["refused"]}


def rules(result):
    names = {"none": "no rule", "all": "all rules"}
    return ({"case": names.get(case["rule"], f"rule {case['rule']}"), **columns(case["figures"]), "of the rate without": ratio(case["share"])} for case in result["cases"])


def sizing(result):
    small, large = result["batches"]
    for case in result["cases"]:
        yield {"case": case["option"], f"WAL bytes, batches of {small}": spread(case["small"]), f"WAL bytes, batches of {number(large)}": spread(case["large"]),
               "bytes that stay of a message": rounded(case["stays"])}


def beside(result):
    for case in result["cases"]:
        name = f"dimensions: {case['case']}" if isinstance(case["case"], int) else case["case"]
        yield from ({"case": f"{name}, {build} build", **columns(found), "server µs": spread(found["server_us_per_event"], 2)} for build, found in case["figures"].items())


def actions(result):
    if "receipts" in result:
        found = result["receipts"]
        each = found["each"]
        yield {"case": "no pipeline", "events/s": spread(found["rates"]["none"])}
        yield {"case": "a pipeline that begins nothing", "of the rate without": ratio(found["shares"]["idle"])}
        yield {"case": "a pipeline that begins a run for each receipt", "of the rate without": ratio(found["shares"]["each"]), "runs made meanwhile": ratio(each["made"]),
               "seconds for all": spread(each["all_seconds"], 1), "runs/s": spread(each["all_per_second"])}
    yield {"case": f"{number(result['rate'])} webhooks/s, due to claimed", **milliseconds(result)}
    yield {"case": "all due at once", "webhooks/s": spread(result["calls"]), "actions/s, condition false": spread(result["passed"])}
    yield {"case": "a round without work", "ms": rounded(result["look_empty_ms"], 2), f"ms, {number(result['waiting'])} waiting": rounded(result["look_full_ms"], 2)}
    if "due" in result:
        yield {"case": f"a round with {result['due']} due", "ms": rounded(result["claim_empty_ms"], 2), f"ms, {number(result['waiting'])} waiting": rounded(result["claim_full_ms"], 2)}


def imports(result):
    heavy = result["rates"]["heavy"]
    for word, when in (("before the import", "before"), ("while it runs", "beside"), ("afterwards, with the rest to do", "after")):
        single, receipts = result[f"single_{when}"], result[f"receipts_{when}"]
        if single and receipts["count"]:
            yield {"case": word, **{f"receipts {point} ms": rounded(receipts[point], 1) for point in ("p50", "p99")},
                   **{f"single calls {point} ms": rounded(single[point], 1) for point in ("p50", "p99", "worst")}}
    yield {"case": "the import", "seconds": rounded(result["import_seconds"], 1), "calls/s": rounded(heavy)}
    for name, text in (("even", "an organisation of the same weight"), ("triple", "an organisation of weight 3")):
        yield {"case": text, "calls/s": rounded(result["rates"][name]), "of the import's": rounded(result["rates"][name] / heavy, RATIO)}


def folds(result):
    for window, share in result["cost"]["shares"].items():
        yield {"case": f"a rule by campaign, window {window}", "of the rate without": ratio(share)}
    yield from ({"case": f"a rule over a topic alone, {number(rate['groups'])} groups", "events/s": rounded(rate["events_per_second"])} for rate in result["rates"])
    lag = result["lag"]
    yield {"case": "behind the window, a million open groups", "publications": lag["publications"], "p50 s": rounded(lag["p50"], 2), "p99 s": rounded(lag["p99"], 2)}
    if "steady" in result:
        steady = result["steady"]
        yield {"case": f"late by max_hold, {steady['groups']} groups never quiet for {steady['seconds']} s", "publications": steady["publications"],
               "p50 s": rounded(steady["p50"], 2), "max s": rounded(steady["worst"], 2)}


def stream(result):
    names = {"off": "no stream", "on": "the stream on", "columns": "the stream on, with two columns"}
    yield from ({"case": names[case["case"]], **columns(case["figures"]), "of the rate without": ratio(case["share"]) if case["share"] else None}
                for case in result["cases"])
    yield {"case": "transitions that wait, published alone", "records/s": spread(result["published_per_second"])}
    yield {"case": "backfill, until all is published", "records/s": spread(result["backfilled_per_second"])}


def topics(result):
    yield from ({"case": f"{case['form']}, {case['case']}", **columns(case["figures"]), "of the native rate": ratio(case["share"]) if case["share"] else None}
                for case in result["cases"])
    yield {"case": "announced messages", "records/s": spread(result["announced_per_second"])}


def claims(result):
    return ({"case": case["case"], "ms": spread(case["figures"]["ms"], 2), "as a multiple of the first": ratio(case["share"])} for case in result["cases"])


def commands(result):
    return ({"case": name, "seconds": spread(found["seconds"], 2), "plain statement, seconds": spread(found["plain"], 2), "as a multiple": ratio(found["multiple"])}
            for name, found in result["commands"].items())


def serve(result):
    """A question of one who sees all campaigns, beside that of one organisation."""
    found = {}
    for one in result["questions"]:
        whose = "" if one["whose"] == "all" else ", one organisation"
        found.setdefault(one["question"], {"case": one["question"]}).update(
            {f"p50 ms{whose}": rounded(one["p50_ms"], 1), f"p95 ms{whose}": rounded(one["p95_ms"], 1), f"server ms{whose}": rounded(one["server_ms"], 1)})
    return found.values()


def viewers(result):
    for case in result["cases"]:
        who = f"{number(result['viewers'])} viewers, {case['who']}, by {case['where']}" if case["where"] else "no viewer"
        yield {"case": who, "events/s": spread(case["rate"]), "of the rate without": ratio(case["rate_share"]),
               "core, CPU % more": spread(case["cpu_more"], 1, 100), "serve, % of the core's CPU": spread(case["serve_share"], 1, 100),
               "serve, ms a second": spread(case["serve_ms_per_second"]), "its sessions, ms a second": spread(case["questions_ms_per_second"]),
               "clients, % of the machine": spread(case["clients_share"], 1, 100), "RSS MiB more": spread(case["grown_mib"], 1),
               "events to each": spread(case["events_each"]), "answers to each": spread(case["fetched_each"]), "refused": spread(case["refused"])}


def page(result):
    for name, found in result["paint"].items():
        yield from ({"case": f"{text}: {name}", **milliseconds(found[when], ("least", "p50", "p95"), 0)}
                    for when, text in (("first_paint_ms", "page, first paint"), ("drawn_ms", "page, drawn")))
    scroll = result["scroll"]
    yield {"case": "scrolling at 6 000 pixels a second", "frames/s": rounded(scroll["frames_per_second"], 1), "CPU ms a frame": spread(scroll["work_ms"], 1),
           "rows drawn": rounded(scroll["rows"]), **{f"frame ms, {point}": rounded(scroll[f"{point}_ms"], 1) for point in ("p50", "p95", "p99")}}


def soak(result):
    samples, end = result["samples"], result["seconds"] / 60
    early, last = min(5.0, end / 2), end - 0.5

    def around(minute, value):
        """The median of a minute's samples: single ones jump."""
        return statistics.median(value(sample) for sample in samples if minute - 0.5 <= sample["at"] / 60 <= minute + 0.5)

    def row(case, value, digits=0):
        most = max(value(sample) for sample in samples if sample["at"] / 60 >= early)
        return {"case": case, "after 5 minutes": rounded(around(early, value), digits), "at the end": rounded(around(last, value), digits), "most": rounded(most, digits)}

    def inbox(key, scale=1.0):
        return lambda sample: sample["tables"]["message_inbox"][key] / scale

    def others(*keys, scale=1.0):
        return lambda sample: sum(table[key] for name, table in sample["tables"].items() if name != "message_inbox" for key in keys) / scale

    def calm(first, after):
        """RSS while no more than a second's receipts wait: with a backlog it is the backlog's memory."""
        return [sample["rss_mib"] for sample in samples if first <= sample["at"] / 60 <= after and sample["lag"] < result["rate"]]

    yield {"case": "RSS MiB, no backlog", "after 5 minutes": rounded(statistics.median(calm(early - 0.5, early + 0.5)), 1),
           "at the end": rounded(statistics.median(calm(end - 10, end + 1)), 1), "most": rounded(max(calm(early, end + 1)), 1)}
    yield row("RSS MiB", lambda sample: sample["rss_mib"], 1)
    yield row("peak RSS MiB", lambda sample: sample["peak_rss_mib"], 1)
    yield row("file descriptors", lambda sample: sample["fds"])
    yield row("threads", lambda sample: sample["threads"])
    yield row("inbox: table MiB", inbox("table", 1 << 20))
    yield row("inbox: indexes MiB", inbox("index", 1 << 20))
    yield row("inbox: dead rows, thousands", inbox("dead", 1e3))
    yield row("other tables with indexes MiB", others("table", "index", scale=1 << 20), 1)
    yield row("other tables: dead rows, thousands", others("dead", scale=1e3), 1)
    yield row("receipts sent, not yet committed", lambda sample: sample["lag"])
    yield row("parked receipts", lambda sample: sample["parked"])
    wal = samples[-1]["wal"] - samples[0]["wal"]
    yield {"case": "all", **{f"{name}, cores": rounded(cores, 2) for name, cores in result["cores"].items()}, "WAL bytes": rounded(wal / result["events"]),
           "WAL GiB": rounded(wal / 2 ** 30, 1), "generator late ms": rounded(result["behind_ms"]), "warnings": result["log"].get("warn", 0), "errors": result["log"].get("error", 0)}


# Settings of a part: the record gives its value and unit.
SETTINGS = {
    "limit": "events", "records": "rest_seconds", "cost": "events", "replaced": "sample consumers", "growth": "events", "rows": "events", "retention": "old events",
    "dropped": "rows rate", "recent": "events recent_rows half_life_hours per_day old buffers_mib", "mapped": "events", "dimensions": "events campaigns variants bar",
    "snapshot": "minutes paced_events burst_events", "tracing": "events block_events", "intake": "connections partitions", "rules": "events", "stream": "events", "topics": "events", "claims": "due",
    "sizing": "events messages", "beside": "events", "imports": "people receipt_rate", "commands": "campaigns messages", "serve": "campaigns requests",
    "viewers": "events viewers cores", "page": "campaigns visits seconds", "soak": "rate seconds events messages deleted"}


def rows_of(part, result):
    """`part` names one of the functions above."""
    return [{column: value for column, value in row.items() if value is not None} for row in globals()[part](result)]


def setting_of(part, result):
    return {name: result[name] for name in SETTINGS.get(part, "").split() if name in result}
