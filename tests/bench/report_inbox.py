"""Sections of the report about the inbox: its rows, ages, partitions and retention."""

import re

from report_text import number, spread, table


def section_rows(result):
    names = {"after": "right after a checkpoint", "between": "between checkpoints",
             "packed": f"after a checkpoint, `wal_compression={result['compression']}`"}
    rows = [(names[case["way"]], number(case["rows"]), case["fillfactor"], number(case["table_mib"]), number(case["index_mib"]),
             spread(case["events_per_second"]), spread(case["ratio"], 2), spread(case["server_us_per_event"], 1),
             spread(case["wal_bytes_per_event"])) for way in names for case in result["cases"] if case["way"] == way]
    return (f"""## Rows in the inbox

{number(result['events'])} receipts, one for each message, whose rows lie anywhere among the others. "Right after a checkpoint" each page is written whole
into WAL at its first change; "between checkpoints" is with `full_page_writes=off` for the length of the run, which gives the WAL of pages that were changed since the last
checkpoint already. Shares are of the fewest rows with the same fillfactor, pair by pair.

""" + table(("when", "rows", "fillfactor", "table, MiB", "index of the key, MiB", "events/s", "of the fewest", "server, µs an event", "WAL bytes an event"), rows))


def section_retention(result):
    names = {"row": "row of the inbox, at fillfactor 50", "key": "its entry in the key", "campaign": "its entry in the index of campaigns",
             "alias": "alias with its key", "remembered": "id that is remembered after its message went", "wal": "WAL of retiring it"}
    rows = [(names[name], spread(found)) for name, found in result["bytes"].items()]
    return (f"""## Retention

{number(result['old'])} messages with random ids that are older than their retention, beside {number(result['events'])} young ones.

""" + table(("of a message", "bytes"), rows) + f"""
`receiptd retire` deleted and booked {spread(result['retired_per_second'])} messages a second. Receipts for the young messages came at {spread(result['share'], 2)} of the rate
without it; the longest batch took {spread(result['longest_ms'])} ms beside it and {spread(result['longest_without_ms'])} ms without.
""")


def section_dropped(result):
    figures = result["figures"]
    rows = [(when, *(spread(figures[f"{key}_{name}"]) for name in ("p50", "p99", "max")))
            for when, key in (("beside it", "beside"), ("without it", "calm"))]
    audit = "`receiptd audit` found no drift afterwards" if not result["drift"] else f"**`receiptd audit` found drift after {result['drift']} runs**"
    return (f"""## Dropping a partition

`receiptd retire` booked and dropped a partition of {number(result['rows'])} messages, beside {number(result['rate'])} receipts/s for messages of today:
{spread(result['seconds'], 1)} s, at a load average of {spread(result['load'], 1)}. Longest wait of a batch for a lock: {spread(result['lock_ms'])} ms (0: less than 10). {audit}.

""" + table(("a batch, from sent to answered", "p50, ms", "p99", "longest"), rows))


FAMILIES = {"random": "random ids, flat", "mapped": "random ids, a table of the platform's", "ordered": "time-ordered ids, flat",
            "partitions": "time-ordered ids, a partition a day",
            "default": "time-ordered ids, a partition of 3 days",
            "weeks": "time-ordered ids, a partition a week",
            "days": "random ids, a table of the platform's"}


def section_recent(result):
    rows = [(FAMILIES[case["family"]] + (" in a partition a day" if case.get("by_days") else "") + (", recent set" if case["recent_set"] else ""), number(case["rows"]), number(case["days"], 0 if case["days"] > 2 else 1),
             spread(case["events_per_second"]), spread(case["share"], 2), spread(case["server_us_per_event"], 1), spread(case["server_share"], 2),
             spread(case["of_bare"], 2), spread(case["bare_share"], 2)) for case in result["cases"]]
    return (f"""## Receipts of the last hours

{number(result['events'])} receipts, one for each message. Messages come evenly, {number(result['per_day'])} a day; the age of one that gets a receipt is exponential with a
half-life of {result['half_life_hours']:g} hours, and one receipt in {number(1 / result['old'])} is for a message older than a week (of any age where the inbox is younger). Spread over more
days, the inbox has as many younger messages, so its half-life is longer. `shared_buffers` is a quarter of the memory, {number(result['buffers_mib'])} MiB; `full_page_writes=off` for the length of
the run, as between two checkpoints. The recent set has {number(result['recent_rows'])} messages. "Of the first" is the first line of the same kind, "bare" the bare statement
with the same receipts; both pair by pair, in turns. A kind of inbox may have been measured by a run of its own.

""" + table(("inbox", "messages", "days", "events/s", "of the first", "server, µs an event", "of the first", "of the bare", "bare, of the first"), rows))


def section_mapped(result):
    rows = [(case["fillfactor"], "yes" if case["indexed"] else "no", spread(case["figures"]["events_per_second"]), spread(case["share"], 2),
             spread(case["figures"]["server_us_per_event"], 1), spread(case["figures"]["wal_bytes_per_event"]),
             f"{100 * case['figures']['hot']['median']:.0f} %") for case in result["cases"]]
    return (f"## A mapped table\n\n{number(result['events'])} receipts, one for each message, of a table of the platform's with a text of 80 bytes in each row.\n\n"
            + table(("fillfactor", "index on the status", "events/s", "of the first", "server, µs an event", "WAL bytes an event", "HOT updates"), rows))


def section_rules(result):
    rows = [(case["rule"], spread(case["figures"]["events_per_second"]), spread(case["share"], 2), spread(case["figures"]["server_us_per_event"], 1),
             spread(case["figures"]["daemon_us_per_event"], 1), spread(case["figures"]["wal_bytes_per_event"])) for case in result["cases"]]
    return (f"## Rules\n\n{number(result['events'])} receipts of the published mix, each with an `event_id` and one in ten with a class of reason; no two are copies.\n\n"
            + table(("rule", "events/s", "of that without", "server, µs an event", "daemon, µs an event", "WAL bytes an event"), rows))


def section_sizing(result):
    small, large = result["batches"]
    rows = [(f"`{case['option']}`" if re.fullmatch(r"[a-z]+\.[a-z]+", case["option"]) else case["option"], spread(case["small"]), spread(case["large"]), number(case["stays"]))
            for case in result["cases"]]
    return (f"## Sizing\n\n{number(result['events'])} receipts of {number(result['messages'])} messages, each a record of its own, in batches of at most {small} and of at most "
            f"{number(large)}; `full_page_writes` is off. What stays is beside the case without options, after `VACUUM FULL`.\n\n"
            + table(("option", f"WAL bytes a receipt, batches of {small}", f"of {number(large)}", "bytes that stay of a message"), rows))


def section_dimensions(result):
    rows = [(case["dimensions"], spread(case["figures"]["events_per_second"]), spread(case["share"], 2), spread(case["figures"]["server_us_per_event"], 1),
             spread(case["figures"]["wal_bytes_per_event"])) for case in result["cases"]]
    return (f"## Dimensions\n\n{number(result['events'])} receipts of the published mix, of {number(result['campaigns'])} campaigns; each column has {result['variants']} values. "
            f"The bar is {result['bar']} of the rate without, for one dimension.\n\n"
            + table(("dimensions", "events/s", "of the first", "server, µs an event", "WAL bytes an event"), rows))
