"""The fault matrix: every cell is run by kinds of this campaign, by a test that is named, or says why not.

scripts/campaign faults --list prints it, with the cycles of the recorded campaigns.
"""

from collections import Counter, defaultdict

from faults import kinds
from faults.campaign import read_lines
from support import records
from support.records import ROOT

CELLS = {
    "F01": "receiptd is killed with SIGKILL",
    "F02": "SIGTERM, twice, during an outage of PostgreSQL",
    "F03": "SIGSTOP and SIGCONT: zombies",
    "F04": "stopped with half a batch in the socket's buffer",
    "F05": "abort, crash, out of memory",
    "F06": "the wall clock jumps",
    "F07": "the log cannot be written",
    "F08": "no descriptors left",
    "F09": "an allocation fails",
    "F10": "PostgreSQL's backends are terminated",
    "F11": "PostgreSQL crashes and loses asynchronous commits",
    "F12": "PostgreSQL restarts, refuses connections",
    "F13": "a lagging replica is promoted, the old primary is still there",
    "F14": "PostgreSQL is restored to an earlier moment",
    "F15": "connections to PostgreSQL break anywhere: was it committed?",
    "F16": "black hole to PostgreSQL, one way or both",
    "F17": "PostgreSQL is slow, locked, frozen",
    "F18": "deadlocks, cancelled statements, lock time-outs",
    "F19": "poison that the database refuses",
    "F20": "schema drift, rights, read-only, disk full",
    "F21": "a connection pooler between receiptd and PostgreSQL",
    "F22": "too many connections, wrong password, expired certificate",
    "F23": "an operator deletes or moves positions",
    "F24": "vacuum, maintenance, long snapshots",
    "F30": "brokers are down, frozen, refuse connections",
    "F31": "leaders move",
    "F32": "error codes in answers to fetches",
    "F33": "retention, offsets out of range",
    "F34": "Kafka is slow",
    "F35": "the group's coordinator moves",
    "F36": "members are expelled, an identity is taken",
    "F37": "members join and leave all the time",
    "F38": "a rebalance while PostgreSQL is away for longer than max.poll.interval.ms",
    "F39": "the loop is blocked",
    "F40": "new partitions, topic deleted or made anew",
    "F41": "tombstones, empty values, huge and odd records",
    "F42": "control records, aborted and open transactions",
    "F43": "duplicate or older records delivered after a seek",
    "F44": "SASL and TLS: expired tokens, unclean ends",
    "F45": "connections to Kafka break, stall, are half-open",
    "F50": "SIGHUP at any moment, a broken file",
    "F51": "two groups on one database by mistake",
    "F52": "another number of lanes",
    "F53": "two versions together in a rolling upgrade",
    "F54": "another librdkafka",
    "F60": "several of these at the same time",
}

# Parts of cells that no kind runs, with the test that shows them instead, or the reason why none does.
REASONS = {
    "F09": "the N-th allocation failing for every N is no matter of processes but of an injected allocator: not here",
    "F19": "each class of refusal alone: tests/integration/test_bad_input.py",
    "F21": "not in a campaign: PgBouncer that dies, or whose server crashes, and one in the wrong mode: tests/integration/test_pooler.py",
    "F22": "expired certificate not run: libpq's check, before a session exists; the same path as a refused connection",
    "F23": "moved by hand without the rows, positions count twice or skip by definition; the fence and the resync"
    " towards both sides are run by F11, F14 and F51",
    "F32": "a real broker does not send them on demand: mock brokers in tests/integration/test_consumer_faults.c",
    "F33": "records taken before they were read: halt or skip in tests/integration/test_kafka_faults.py; not exact by"
    " definition, so not here",
    "F36": "ILLEGAL_GENERATION and UNKNOWN_MEMBER come with F03, F38 and F39; each code alone: mock brokers",
    "F40": "a topic deleted or made anew stops the consumer: tests/integration/test_kafka_faults.py",
    "F41": "in the stream of every cycle (tests/oracle/traffic.py), with broken and oversized records",
    "F43": "follows from rewinds (F11, F13, F14) in librdkafka 2.0.2; every order of delivery: tests/simulation",
    "F44": "not in a campaign: brokers and servers that want TLS and passwords, wrong and missing ones, the exact ledger over them:"
    " tests/integration/test_security.py; expired tokens are inside librdkafka, seen by receiptd as F45",
    "F45": "flipped bytes not run: the header of a record batch is outside its CRC, only TCP's checksum or TLS covers it",
    "F50": "what a reload applies and refuses: tests/integration/test_control.py",
    "F53": "two releases on one database under load, forward and back: tests/integration/test_upgrade.py",
    "F54": "the same command with LD_LIBRARY_PATH set to another librdkafka; not part of a campaign",
}


def check(table):
    """Every cell is run or explained; no kind serves a cell that is not there."""
    served = {cell for kind in table.values() for cell in kind.cells}
    assert served <= CELLS.keys(), f"no such cells: {served - CELLS.keys()}"
    assert REASONS.keys() <= CELLS.keys(), f"no such cells: {REASONS.keys() - CELLS.keys()}"
    missing = CELLS.keys() - served - REASONS.keys()
    assert not missing, f"neither run nor explained: {missing}"


def by_cell(table):
    cells = defaultdict(list)
    for kind in table.values():
        for cell in kind.cells:
            cells[cell].append(kind)
    return cells


def text():
    """For --list."""
    table, runs = kinds.load(), Counter()
    check(table)
    for run in records.read("faults"):
        runs.update(run["kinds"])
    lines, cells = [], by_cell(table)
    for cell, title in CELLS.items():
        lines.append(f"{cell}  {title}")
        lines.extend(f"       {kind.name:28} {runs[kind.name]:4}  {kind.title}" for kind in cells[cell])
        if cell in REASONS:
            lines.append(f"     - {REASONS[cell]}")
    return "\n".join(lines)


def summary(path, lines):
    """The record of a campaign's lines."""
    done = [line for line in lines if "skipped" not in line]
    numbers, anomalous = [line["cycle"] for line in done], [line for line in done if line["anomalies"]]
    return {
        "name": f"{path.parent.name}/{path.stem}", "date": done[0]["at"], "commit": ", ".join(sorted({line["commit"] for line in done})),
        "command": f"scripts/campaign faults --seed {done[0]['seed']}", "minutes": round(sum(line["seconds"] for line in done) / 60, 1),
        "seed": done[0]["seed"], "first": min(numbers), "last": max(numbers), "longest_seconds": max(line["seconds"] for line in done),
        "anomalies": len(anomalous), "figures": {"cycles": len(done), "receipts": sum(line["receipts"] for line in done)},
        "anomalous": [[line["cycle"], line["kind"], sorted(line["anomalies"])] for line in anomalous],
        "kinds": dict(sorted(Counter(line["kind"] for line in done).items())),
    }


def record():
    """Adds the campaigns of this checkout to the records: one that went on since replaces its line."""
    known = {run["name"]: run for run in records.read("faults")}
    for path in sorted((ROOT / "build/faults").glob("seed-*/*.jsonl")):
        lines = read_lines(path)
        if any("skipped" not in line for line in lines):
            run = summary(path, lines)
            known[run["name"]] = {**known.get(run["name"], {}), **run}
    records.write("faults", sorted(known.values(), key=lambda run: run["date"]))
    print("written: tests/records/faults.jsonl, docs/proof.md")
    return 0
