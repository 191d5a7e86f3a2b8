"""The fault matrix: every cell is run by kinds of this campaign, by a test that is named, or says why not.

docs/proof.md gets its section "Real faults" from here and from the lines of the campaigns (scripts/campaign faults --record).
"""

import json
from collections import Counter, defaultdict

from faults import kinds
from faults.campaign import read_lines
from support.services import ROOT

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

BEGIN, END = "<!-- faults: begin (scripts/campaign faults --record) -->", "<!-- faults: end -->"
PROOF = ROOT / "docs/proof.md"
RECORDED = ROOT / "tests/faults/campaigns.jsonl"


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
    table = kinds.load()
    check(table)
    lines, cells = [], by_cell(table)
    for cell, title in CELLS.items():
        lines.append(f"{cell}  {title}")
        lines.extend(f"       {kind.name:28} {kind.title}" for kind in cells[cell])
        if cell in REASONS:
            lines.append(f"     - {REASONS[cell]}")
    return "\n".join(lines)


def summary(path, lines):
    """The summary of a campaign's lines that is kept."""
    done = [line for line in lines if "skipped" not in line]
    numbers = [line["cycle"] for line in done]
    return {
        "name": f"{path.parent.name}/{path.stem}", "began": done[0]["at"], "seed": done[0]["seed"],
        "commits": sorted({line["commit"] for line in done}), "cycles": len(done), "first": min(numbers),
        "last": max(numbers), "seconds": round(sum(line["seconds"] for line in done), 1),
        "longest": max(line["seconds"] for line in done), "receipts": sum(line["receipts"] for line in done),
        "anomalous": [[line["cycle"], line["kind"], sorted(line["anomalies"])] for line in done if line["anomalies"]],
        "kinds": dict(sorted(Counter(line["kind"] for line in done).items())),
    }


def campaigns():
    """All recorded campaigns and those of this checkout, in the order of their beginning."""
    known = {one["name"]: one for one in read_lines(RECORDED)}
    for path in (ROOT / "build/faults").glob("seed-*/*.jsonl"):
        lines = read_lines(path)
        if any("skipped" not in line for line in lines):
            one = summary(path, lines)
            known[one["name"]] = one
    return sorted(known.values(), key=lambda one: one["began"])


def campaign_rows(found):
    rows = ["| began (UTC) | commit | seed | cycles | kinds | minutes | longest cycle | receipts | anomalies |",
            "|---|---|---|---|---|---|---|---|---|"]
    for one in found:
        anomalies = "; ".join(f"{cycle} {kind}: {', '.join(names)}" for cycle, kind, names in one["anomalous"])
        rows.append(f"| {one['began'][:16].replace('T', ' ')} | {', '.join(one['commits'])} | {one['seed']}"
                    f" | {one['cycles']} ({one['first']}…{one['last']}) | {len(one['kinds'])}"
                    f" | {one['seconds'] / 60:.1f} | {one['longest']:.1f} s | {one['receipts']} | {anomalies or 0} |")
    return rows


def cell_rows(table, found):
    runs, cells = Counter(), by_cell(table)
    for one in found:
        runs.update(one["kinds"])
    rows = ["| cell | fault | cycles | how, or why not |", "|---|---|---|---|"]
    for cell, title in CELLS.items():
        total = sum(runs[kind.name] for kind in cells[cell])
        ways = [f"{kind.title} ({runs[kind.name]})" for kind in cells[cell]]
        ways += [REASONS[cell]] if cell in REASONS else []
        rows.append(f"| {cell} | {title} | {total or '–'} | {'; '.join(ways)} |")
    return rows


def section(found):
    table = kinds.load()
    check(table)
    cycles, seconds = sum(one["cycles"] for one in found), sum(one["seconds"] for one in found)
    anomalous = sum(len(one["anomalous"]) for one in found)
    return "\n".join([
        f"{cycles} cycles over {len({kind for one in found for kind in one['kinds']})} kinds,"
        f" {sum(one['receipts'] for one in found)} receipts; {anomalous} cycles with anomalies"
        f"{' (what they found stands above)' if anomalous else ''}; {seconds / max(cycles, 1):.1f} s a cycle.", "",
        *campaign_rows(found), "", *cell_rows(table, found)])


def record():
    """Keeps a summary of each campaign and writes the tables between their markers; makes the section where there is none."""
    found = campaigns()
    RECORDED.write_text("".join(json.dumps(one) + "\n" for one in found))
    text = PROOF.read_text() if PROOF.exists() else "# Proof\n"
    if BEGIN not in text:
        text = text.rstrip() + f"\n\n## Real faults\n\n{BEGIN}\n{END}\n"
    head, _, rest = text.partition(BEGIN)
    PROOF.write_text(head + BEGIN + "\n" + section(found) + "\n" + END + rest.partition(END)[2])
    print(f"written: {PROOF}")
    return 0
