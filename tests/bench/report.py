"""docs/benchmarks.md and docs/plots/ from the raw results in build/bench; parts that were not run keep no section."""

import json
import statistics

import flame
import plots
from lab import OUT, ROOT, say
from report_inbox import section_dimensions, section_dropped, section_mapped, section_recent, section_retention, section_rows, section_rules, section_sizing
from report_page import section_page, section_serve, section_viewers
from report_text import number, spread, table


def stamp(result):
    machine = result["machine"]
    return (f"*{machine['date']}, {result['repeat']} {'run' if result['repeat'] == 1 else 'runs'}{', `--quick`' if result['quick'] else ''}; load average before it "
            f"{machine['load_average'][0]:.1f}; {machine['cores']} × {machine['cpu']}.*\n")


def head(results):
    last = max(results.values(), key=lambda result: result["machine"]["date"])
    machine, versions = last["machine"], last["versions"]
    settings = ", ".join(f"`{key}={value}`" for key, value in versions["postgresql_settings"].items())
    return f"""# Benchmarks

Made by `scripts/bench` (it says what each part does; the code is `tests/bench/`). Raw results: `build/bench/*.json`. Figures are medians,
with the smallest and the largest of the runs behind them. Every ratio is taken inside one run, pair by pair, in alternating order. Below each heading stands when it was
measured; a part that is measured again replaces its section. `--quick` has fewer events. Of the load before a part, the first one's is somebody else's work, the rest is
left from the part before.

| | |
|---|---|
| machine | {machine['cores']} × {machine['cpu']}, {machine['memory_gib']} GiB, kernel {machine['kernel']}, Debian {machine['debian']} |
| versions | PostgreSQL {versions['postgresql']}, Kafka {versions['kafka']}; {'; '.join(versions['receiptd'])} |
| PostgreSQL | `fsync=on`, {settings}, the rest as it comes; lanes commit with `synchronous_commit=off` (docs/architecture.md says why that is safe) |
| Kafka | one broker, KRaft, no compression, 8 partitions |
| together | broker, PostgreSQL, receiptd and the generator share the cores; loopback and unix socket |

Each run starts from a copy of the same database (fillfactor 50, vacuumed, in memory, right after a checkpoint). Ids are random UUIDs as text, events have
about 170 bytes, and, where every message gets one event, they come in no order at all: each touches another page.
"""


def section_limit(result):
    rows = [(name, spread(found["events_per_second"] if name != "full" else found["events_per_second"]),
             spread(found["server_us_per_event"], 1), spread(found["wal_bytes_per_event"]))
            for name, found in result["figures"].items()]
    names = {"full": "`UPDATE` of the whole table, one statement"}
    rows = [(names.get(row[0], row[0]), *row[1:]) for row in rows]
    text = f"""## The limit

The statements of a lane from a bare C program, with the arrays that the daemon would send: `apply` sends batches in two flights, one at a time on a
connection; `update` is the conditional UPDATE alone, encoded before the clock starts: no position, no counters, nothing parked. {number(result['events'])} events, one row each, batches of 4 000.

""" + table(("statement", "rows/s", "µs of the server a row", "WAL bytes a row"), rows)
    return text + keys_table(result["keys"]) if "keys" in result else text


def keys_table(found):
    names = (("events_per_second", 0), ("server_us_per_event", 1), ("wal_bytes_per_event", 0), ("table_mib", 0), ("key_index_mib", 0))
    rows = []
    for statement, kinds in found.items():
        rows += [(f"{statement}, {keys}", *(spread(kinds[keys][name], digits) for name, digits in names)) for keys in ("text", "uuid")]
        rows.append((f"{statement}, uuid by text", *(spread(kinds["ratios"][name], 2) for name, _ in names)))
    return ("\nThe same UUIDs as keys of type `text` and of type `uuid`, two connections, pair by pair, each time in a table written anew:\n\n"
            + table(("statement, keys", "rows/s", "µs of the server a row", "WAL bytes a row", "table, MiB", "index of the key, MiB"), rows))


def section_loadtest(result):
    rows, costs, responses = [], [], []
    for name, found in result["variants"].items():
        f = found["figures"]
        rows.append((found["text"], f"{number(found['events'])} / {number(found['messages'])}", spread(f["seconds"], 1),
                     spread(f["events_per_second"]), spread(found["share"], 2)))
        costs.append((name, spread(f["daemon_us_per_event"], 2), spread(f["backends_us_per_event"], 1),
                      spread(f["broker_us_per_event"], 1), spread(f["wal_bytes_per_event"]), spread(f["peak_rss_mib"])))
        responses.append((name, spread(f["batches"]), spread(f["records_per_minute"]), spread(f["response_ms"]["mean"]),
                          spread(f["response_ms"]["p50"]), spread(f["response_ms"]["p99"])))
    text = """## The load test

The published reference for this job: 1 000 batches × 1 000 events took 2 hours with a lock per message id, and 4 minutes (300 batches a
minute, about 350 ms each) after the locks were replaced by status priority. Here: 1 000 records × 1 000 events, from the moment of "consuming" to
the last commit. The share is the rate of receiptd by that of the bare statement (the limit), with the same number of connections.

"""
    text += table(("traffic", "events / messages", "seconds", "events/s", "share of the bare statement"), rows) + "\n"
    text += table(("", "daemon, µs an event", "lanes' backends, µs an event", "broker, µs an event", "WAL bytes an event",
                   "peak RSS, MiB"), costs) + "\n"
    text += table(("", "transactions", "records (published batches) a minute", "response ms, mean", "p50", "p99"), responses)
    text += "\nResponse time is from the submission of a transaction (up to 4 000 events) to its answer.\n"
    made = plots.load_test(result["variants"]["single"]["receiptd"][0])
    return text + "".join(f"\n![{caption}](plots/{file})\n" for file, caption in made)


def section_records(result):
    text = f"""## One event a record

Each event is a record of its own, of 105 bytes (an id, a status, a time), beside 1 000 × 1 000. `bare` is the bare statement with its arrays encoded before the clock
starts; the Go consumer keeps no counters, no positions in the transaction, and parks nothing. CPU is that of the process with all its threads, user and system.
RSS "later" is measured {result['rest_seconds']} seconds after the last commit.
"""
    for found in result["shapes"].values():
        rows = []
        for name, figures in found["figures"].items():
            ratios = found["ratios"].get(name, {})
            rows.append((name, spread(figures["events_per_second"]), spread(figures["cpu_us_per_event"], 2), spread(figures["server_us_per_event"], 1),
                         spread(figures["peak_rss_mib"]), spread(figures["later_rss_mib"]), spread(ratios.get("events_per_second"), 2),
                         spread(ratios.get("cpu_us_per_event"), 2)))
        text += f"\n### {found['text']}; {number(found['events'])} events\n\n" + table(
            ("", "events/s", "own CPU, µs an event", "server, µs an event", "peak RSS, MiB", "RSS later, MiB", "receiptd's rate as a multiple",
             "receiptd's CPU as a multiple"), rows)
    return text


def section_latency(result):
    rows = [(number(r["rate"]), r["per_record"], number(r["p50"], 1), number(r["p99"], 1), number(r["p999"], 1), number(r["max"], 1),
             number(r["generator"]["generator_behind_ms"], 1)) for r in result["rates"]]
    text = """## Latency

From the moment at which an event is due at an open-loop generator to its commit, in milliseconds. The commit's time is PostgreSQL's own
(`track_commit_timestamp`), read from every row after the run: nothing is polled and nothing is sampled. The generator's linger of 1 ms, the way to the broker,
and where a record carries several events the wait for its last one are in it. Error: the microseconds between a commit's timestamp and its being visible.

""" + table(("events/s", "events a record", "p50", "p99", "p99.9", "max", "generator late at most"), rows)
    backlog = result["backlog"]
    if backlog["during"]["count"]:
        d = backlog["during"]
        text += (f"\nBeside a backlog of {number(backlog['backlog'])} events on one partition, {number(backlog['rate'])} fresh events/s on the "
                 f"others: p50 {number(d['p50'], 1)}, p99 {number(d['p99'], 1)}, p99.9 {number(d['p999'], 1)} ms while it lasted "
                 f"({number(backlog['backlog_seconds'], 1)} s).\n")
    return text


def section_cost(result):
    text = "## Cost\n\n"
    if "profile" in result:
        parts = result["profile"]["parts"]
        text += table(("part of the daemon", "share", "µs an event"),
                      [(name, f"{part['share'] * 100:.0f} %", f"{part['us_per_event']:.2f}") for name, part in parts.items()])
        text += "\nSampled with `perf` (cpu-clock, all threads) on " + number(result["events"]) + " events; sampling itself costs a little.\n"
    a = result["allocations"]
    text += (f"\nAllocations: {a['own_per_event']:.4f} an event by receiptd's own code ({a['own_per_record']:.1f} a record of 1 000), "
             f"{a['libraries_per_event']:.4f} by libraries.\n")
    if "system_calls" in result:
        calls = result["system_calls"]
        most = sorted(calls["calls"].items(), key=lambda item: -item[1])[:6]
        text += (f"System calls: {calls['per_batch']:.0f} a transaction, {calls['per_event']:.3f} an event ("
                 + ", ".join(f"{name} {count}" for name, count in most) + ").\n")
    text += f"WAL: {number(result['wal_bytes_per_event'])} bytes an event, right after a checkpoint.\n"
    if (OUT / "cost.folded").exists():
        flame.draw(OUT / "cost.folded", plots.DIRECTORY / "flame.svg")
        text += "\n![flame graph](plots/flame.svg)\n"
    return text


def section_replaced(result):
    names = {"lock": "a lock per message id", "optimistic": "join on the priorities, IN lists, counters per event"}
    rows = [(text, spread(result["rates"][name]), spread(result["factors"][name], 1) + " ×") for name, text in names.items()]
    rows.append(("receiptd (all events)", spread(result["rates"]["receiptd"]), ""))
    return f"""## What it replaces

On a sample of {number(result['sample'])} events of real traffic (IN_GTW, SENT, DELIVERED; duplicates, disorder), {result['consumers']} consumers in Python that have the
events in memory already, commits not waited for: all in their favour.

""" + table(("", "events/s", "receiptd is faster by"), rows)


def section_rivals(result):
    text = "## Rivals\n\nFrom the same topic into the same server, each at the best settings found, warm.\n"
    for kind, title in (("single", "One event per message"), ("real", "Real traffic: IN_GTW, SENT, DELIVERED, duplicates, disorder")):
        found = result["streams"].get(kind)
        if not found:
            continue
        rows = [(name, spread(f["events_per_second"]), spread(f["cpu_us_per_event"], 2), spread(f["server_us_per_event"], 1),
                 spread(f["peak_rss_mib"]), spread(found["factors"].get(name), 2)) for name, f in found["figures"].items()]
        text += f"\n### {title}\n\n" + table(("", "events/s", "own CPU, µs an event", "server, µs an event", "RSS, MiB",
                                               "receiptd is faster by"), rows)
    return text + "\nWhat each does **not** do:\n\n" + table(("", "lacks"), result["lacks"].items())


def section_growth(result):
    rows = [(case["what"], case["value"], spread(case["figures"]["events_per_second"]),
             spread(case["figures"]["daemon_us_per_event"], 2), spread(case["figures"]["server_us_per_event"], 1),
             spread(case["figures"]["peak_rss_mib"])) for case in result["cases"]]
    return f"## Growth\n\n{number(result['events'])} events, one row each; otherwise as in the load test.\n\n" + \
        table(("what", "value", "events/s", "daemon, µs", "server, µs", "RSS, MiB"), rows)


def section_folding(result):
    rows = [(case["kind"], case["what"], case["value"], spread(case["figures"]["events_per_second"]), spread(case["share"], 2),
             spread(case["figures"]["events_per_row"], 2), number(case["least"], 2), spread(case["figures"]["server_us_per_event"], 1),
             spread(case["figures"]["peak_rss_mib"])) for case in result["cases"]]
    return ("## Folding\n\nReceipts of a message that meet in a batch are one row of the UPDATE; at most as many as the message has.\n\n"
            + table(("traffic", "what", "value", "events/s", "of the first", "receipts a row", "of at most", "server, µs an event", "RSS, MiB"), rows))


def section_snapshot(result):
    rows = [(name, spread(result["rates"][name]), spread(result["server_us_per_event"][name], 1))
            for name in ("without", "with")]
    return (f"## A long open snapshot\n\nTwo databases get {number(result['paced_events'])} receipts of real traffic within "
            f"{result['minutes']:g} minutes; in one of them a snapshot is open all the time. Then bursts of "
            f"{number(result['burst_events'])} receipts at full speed, in turns.\n\n"
            + table(("snapshot", "events/s", "server, µs an event"), rows)
            + f"\nOf the rate without a snapshot: {spread(result['ratio'], 2)}.\n")


def switched(found):
    return f"{number(found['ratio'], 3)} (95 %: {number(found['low'], 3)} … {number(found['high'], 3)}; {found['pairs']} pairs)"


def section_tracing(result):
    scrape, cost = result["scrape"], result["daemon_us_per_event"]
    page, answer = scrape["page_ms"], scrape["answer_ms"]
    return f"""## Tracing

Switched on and off within each run of {number(result['events'])} events at full load; each stretch is compared with a neighbour, over all runs.

| | rate with, of the rate without |
|---|---|
| tracing: {result['sampled']:.0%} of the records in a sampled trace, in every other block of {number(result['block_events'])} events | {switched(result['tracing'])} |
| {scrape['per_second']} scrapes a second, every other second | {switched(scrape)} |

One scrape a second costs a {scrape['per_second']}th of that. A page of {number(scrape['bytes'])} bytes takes the loop {number(page['median'], 2)} ms (p99 {number(page['p99'], 2)}, worst
{number(page['max'], 2)}) and is there after {number(answer['median'], 2)} ms (p99 {number(answer['p99'], 2)}, worst {number(answer['max'], 2)}; {scrape['scrapes']} scrapes). The daemon's CPU: {spread(cost['traced'], 2)} µs an
event while tracing is switched, {spread(cost['scraped'], 2)} µs while scrapes are.
"""


def section_intake(result):
    f = result["figures"]
    names = {"intake": "one receipt a request, acknowledged by Kafka", "nginx": "nginx, one worker, an empty 200"}
    rows = [(text, spread(f[name]["per_second"]), spread(f[name]["per_core"]), spread(f[name]["cpu_us"], 1)) for name, text in names.items()]
    half, attacked, batches = result["half"], result["attacked"], f["batches"]
    where = "On a core of its own (generators and broker on the other)" if result["apart"] else "With generators and broker on the same core"
    return f"""## Intake

Form posts of Twilio's kind over {result['connections']} kept connections (wrk), {result['partitions']} partitions, answered after the acknowledgement. Generator, broker and
intake share the cores, so the rate by core divides by the CPU that the process used, kernel and librdkafka's threads included.

""" + table(("", "requests/s by the clock", "requests/s and core", "µs of CPU a request"), rows) + f"""
Share of nginx's rate: {spread(result['share_by_core'], 2)} by core, {spread(result['share_by_clock'], 2)} by the clock. Batches of 1 000 events of SendGrid's kind:
{spread(batches['per_second'])} events/s by the clock, {spread(batches['per_core'])} by core. Peak RSS {number(result['peak_rss_mib'])} MiB.

{where} the intake acknowledged {number(result['full'])} requests/s; at half of that, {number(half['rate'])} requests/s over {half['connections']} connections:
p50 {number(half['p50'], 1)} ms, p99 {number(half['p99'], 1)} ms, {half['refused']} refused. While 2 000 connections sent heads and bodies a byte at a time (slowhttptest; all of them at the lowest priority, for on their own machines they would take nothing), and
others bodies beyond the limit: p99 {number(attacked['p99'], 1)} ms, {number(result['attack_ratio'], 2)} of the former, {attacked['refused']} refused.
"""


def steady_folds(steady):
    return (f"{steady['groups']} groups that were never quiet for {steady['seconds']} s were published {number(steady['publications'])} times by `max_hold`: "
            f"p50 {number(steady['p50'], 2)} s, at most {number(steady['worst'], 2)} s late.\n")


def section_folds(result):
    rates = "; ".join(f"{number(rate['events_per_second'])} events/s with {number(rate['groups'])} groups" for rate in result["rates"])
    lag = result["lag"]
    shares = "; ".join(f"{spread(share, 2)} with a window of {window}" for window, share in result["cost"]["shares"].items())
    return f"""## Folds

{number(result['cost']['events'])} events, one row each, of 10 000 campaigns, with a rule by campaign, as a share of the rate without a rule: {shares}.
A rule over a topic alone: {rates}.
Beside a million open groups {number(lag['publications'])} publications came p50 {number(lag['p50'], 2)} s, p99 {number(lag['p99'], 2)} s behind their window.
{steady_folds(result['steady']) if 'steady' in result else ''}"""


def actions_beside_receipts(found):
    shares, each = found["shares"], found["each"]
    return f"""
Receipts without pipelines: {spread(found['rates']['none'])} events/s; with a pipeline that begins nothing {spread(shares['idle'], 2)} of that;
with one that begins a run for **each** receipt {spread(shares['each'], 2)}. Of these runs {spread(each['made'], 2)} were made when the last
receipt was committed, the others afterwards: all of both took {spread(each['all_seconds'], 1)} s, {spread(each['all_per_second'])} a second. (In turns, in one run;
`actions.begin_share` is how much of it happens beside receipts.)
"""


def section_actions(result):
    text = "## Actions\n" + (actions_beside_receipts(result["receipts"]) if "receipts" in result else "")
    text += f"""
Webhooks to nginx with an empty 200. At {number(result['rate'])} actions/s, claimed after they were due: p50 {number(result['p50'], 1)} ms, p99 {number(result['p99'], 1)} ms. All due
at once: {spread(result['calls'])} webhooks/s; {spread(result['passed'])} actions/s where a condition passes over them. A round of all lanes without work takes
{number(result['look_empty_ms'], 2)} ms, with {number(result['waiting'])} waiting actions {number(result['look_full_ms'], 2)} ms.
"""
    if "due" in result:
        text += (f"One that finds {result['due']} due ones takes {number(result['claim_empty_ms'], 2)} ms, with the waiting ones"
                 f" {number(result['claim_full_ms'], 2)} ms.\n")
    return text


def section_imports(result):
    rates, heavy = result["rates"], result["rates"]["heavy"]
    rows = [(word, *(number(result[f"{kind}_{when}"][key], 1) for kind in ("receipts", "single") for key in ("p50", "p99")),
             number(result[f"single_{when}"]["worst"], 1))
            for word, when in (("before", "before"), ("while the import runs", "beside"), ("afterwards, with the rest to do", "after"))
            if result[f"single_{when}"] and result[f"receipts_{when}"]["count"]]
    text = f"""## Imports

`receiptd actions import` of {number(result['people'])} people of one organisation, with a webhook (nginx, empty 200) due at once for each, beside {number(result['receipt_rate'])}
receipts/s. Two more organisations have 200 000 calls due at the same time, one of them with weight 3, and a fourth one call every tenth of a second.
The import took {number(result['import_seconds'], 1)} s. Milliseconds: receipts from append to commit, the fourth organisation's calls from due to claimed.

"""
    text += table(("", "receipts p50", "p99", "single calls p50", "p99", "worst"), rows)
    text += f"""
Calls a second while all three had more to do than could be done: {number(heavy)} (the import), {number(rates['even'])} (same weight: {number(rates['even'] / heavy, 2)}),
{number(rates['triple'])} (weight 3: {number(rates['triple'] / heavy, 2)}).
"""
    return text + "".join(f"\n![{caption}](plots/{file})\n" for file, caption in plots.fairness(result["lines"]))


def section_commands(result):
    rows = [(f"`{name}`", spread(found["seconds"], 2), spread(found["plain"], 2), spread(found["multiple"], 2)) for name, found in result["commands"].items()]
    return (f"""## Commands

All of {number(result['campaigns'])} campaigns with {number(result['messages'])} messages that lie among each other, output to a file. Beside `audit` one statement that groups the messages by
campaign, status and flags, beside `funnel` one that reads the view `campaign_funnel` in order; both in psql.

""" + table(("command", "seconds", "plain statement, seconds", "as a multiple"), rows))


def _around(samples, minute, value):
    """The median of a minute's samples: single ones jump."""
    found = [value(sample) for sample in samples if minute - 0.5 <= sample["at"] / 60 <= minute + 0.5]
    return statistics.median(found)


def section_soak(result):
    samples, end = result["samples"], result["seconds"] / 60
    early, last = min(5.0, end / 2), end - 0.5

    def row(what, value, digits=0):
        found = [value(sample) for sample in samples if sample["at"] / 60 >= early]
        return (what, number(_around(samples, early, value), digits), number(_around(samples, last, value), digits), number(max(found), digits))

    def inbox(key, scale=1.0):
        return lambda sample: sample["tables"]["message_inbox"][key] / scale

    def others(*keys, scale=1.0):
        return lambda sample: sum(table[key] for name, table in sample["tables"].items() if name != "message_inbox" for key in keys) / scale

    def calm(first, after):
        """RSS while no more than a second's receipts wait: with a backlog it is the backlog's memory."""
        return [sample["rss_mib"] for sample in samples if first <= sample["at"] / 60 <= after and sample["lag"] < result["rate"]]

    first, tenth = calm(early - 0.5, early + 0.5), calm(end - 10, end + 1)
    rows = [("RSS of receiptd while no more than a second's receipts wait, MiB: medians of a minute and of the last ten",
             number(statistics.median(first), 1), number(statistics.median(tenth), 1), number(max(calm(early, end + 1)), 1)),
            row("RSS, whatever waits, MiB", lambda s: s["rss_mib"], 1), row("its peak RSS, MiB", lambda s: s["peak_rss_mib"], 1),
            row("its file descriptors", lambda s: s["fds"]), row("its threads", lambda s: s["threads"]),
            row("inbox: table, MiB", inbox("table", 1 << 20)), row("inbox: indexes, MiB", inbox("index", 1 << 20)),
            row("inbox: dead rows, thousands", inbox("dead", 1e3)),
            row("other tables with their indexes, MiB", others("table", "index", scale=1 << 20), 1),
            row("other tables: dead rows, thousands", others("dead", scale=1e3), 1),
            row("receipts sent, not yet committed", lambda s: s["lag"]), row("parked receipts", lambda s: s["parked"])]
    cores, wal = result["cores"], samples[-1]["wal"] - samples[0]["wal"]
    text = f"""## Soak

{number(end)} minutes of real traffic, {number(result['rate'])} receipts/s from an open-loop generator (late by {number(result['behind_ms'])} ms at most): messages inserted by COPY three seconds before their
first receipt may come, deleted by `receiptd retire` five minutes after it, {number(result['messages'])} in all ({number(result['deleted'])} deleted), of ever new campaigns; autovacuum and
checkpoints as they come. The daemon is started when
a minute's receipts wait for it, and is stopped for twenty seconds in the middle. All processes together used {number(sum(cores.values()), 2)} cores: server
{number(cores['server'], 2)} (inserts and deletions included), broker {number(cores['broker'], 2)}, receiptd {number(cores['daemon'], 2)}, generator {number(cores['generator'], 2)}. Of the {number(result['events'])} receipts each was counted once,
nothing is parked, no dead letters, no drift; {result['log'].get('warn', 0)} warnings and {result['log'].get('error', 0)} errors in the log. WAL: {number(wal / result['events'])} bytes a receipt, inserts and deletions included ({number(wal / 2 ** 30, 1)} GiB).

"""
    text += table(("", f"after {number(early)} minutes", "at the end", f"most, from minute {number(early)} on"), rows)
    return text + "".join(f"\n![{caption}](plots/{file})\n" for file, caption in plots.soak(samples))


SECTIONS = {
    "limit": ("The limit", section_limit), "loadtest": ("The load test", section_loadtest),
    "records": ("One event a record", section_records), "latency": ("Latency", section_latency),
    "cost": ("Cost", section_cost), "replaced": ("What it replaces", section_replaced), "rivals": ("Rivals", section_rivals),
    "growth": ("Growth", section_growth), "folding": ("Folding", section_folding), "rows": ("Rows in the inbox", section_rows),
    "retention": ("Retention", section_retention), "dropped": ("Dropping a partition", section_dropped),
    "recent": ("Receipts of the last hours", section_recent),
    "mapped": ("A mapped table", section_mapped), "dimensions": ("Dimensions", section_dimensions),
    "snapshot": ("A long open snapshot", section_snapshot), "tracing": ("Tracing", section_tracing), "intake": ("Intake", section_intake),
    "rules": ("Rules", section_rules), "sizing": ("Sizing", section_sizing), "actions": ("Actions", section_actions), "imports": ("Imports", section_imports), "folds": ("Folds", section_folds),
    "commands": ("Commands", section_commands), "serve": ("The interface for readers", section_serve), "viewers": ("Viewers", section_viewers), "page": ("The page", section_page), "soak": ("Soak", section_soak)}


def kept_sections(path):
    """Sections of a report that was written before, by title."""
    if not path.exists():
        return {}
    found = path.read_text().split("\n## ")[1:]
    return {text.split("\n", 1)[0]: "## " + text.rstrip("\n") + "\n" for text in found}


def section(name, result):
    title, write_section = SECTIONS[name]
    heading, text = write_section(result).split("\n", 1)
    assert heading == f"## {title}", heading
    return f"{heading}\n\n{stamp(result)}{text}"


def readme_figures(results):
    """The lines that the README shows."""
    if "loadtest" not in results:
        return
    found = results["loadtest"]["variants"]["single"]
    f = found["figures"]
    print(f"\n{number(found['events'])} events, one row each, Kafka to committed: {spread(f['seconds'], 1)} s\n"
          f"events/s:                    {spread(f['events_per_second'])}\n"
          f"share of the bare statement: {spread(found['share'], 2)}\n"
          f"daemon CPU, µs an event:     {spread(f['daemon_us_per_event'], 2)}\n"
          f"peak RSS, MiB:               {spread(f['peak_rss_mib'])}", flush=True)


def write(quick):
    results = {}
    for name in SECTIONS:
        for path in [OUT / f"quick-{name}.json"] if quick else [OUT / f"{name}.json", OUT / f"quick-{name}.json"]:
            if name not in results and path.exists():
                results[name] = json.loads(path.read_text())
    if not results:
        return
    target = OUT / "quick.md" if quick else ROOT / "docs/benchmarks.md"
    plots.DIRECTORY = OUT / "plots" if quick else ROOT / "docs/plots"
    kept = {} if quick else kept_sections(target)
    parts = [section(name, results[name]) if name in results else kept.get(title) for name, (title, _) in SECTIONS.items()]
    target.write_text("\n".join([head(results)] + [part for part in parts if part]))
    readme_figures(results)
    say(f"report: {target.relative_to(ROOT)}")
