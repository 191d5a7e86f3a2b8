"""The real database against the ledger: every difference by name, with a few examples of each.

A difference's name says what went wrong: "lost" and "duplicate" are receipts counted too seldom or too often, "drift"
is counters that do not follow from the rows beside them, the rest names the table. An empty report is the proof.
"""

from oracle.ledger import parse
import json
from collections import defaultdict, namedtuple

from oracle import ladder, retired
from oracle.ledger import WHOLE_RECORD

EXAMPLES = 5
LETTER_BYTES = 65536

Inbox = namedtuple("Inbox", "table message_id org_id campaign_id status flags")
OWN_INBOX = Inbox("receiptd.message_inbox", "message_id", "org_id", "campaign_id", "status", "flags")


class Report:
    """Differences by name. str() is what a failing test prints."""

    def __init__(self):
        self.counts = defaultdict(int)
        self.examples = defaultdict(list)

    def add(self, name, example):
        self.counts[name] += 1
        if len(self.examples[name]) < EXAMPLES:
            self.examples[name].append(example)

    def __bool__(self):
        return bool(self.counts)

    def __str__(self):
        lines = []
        for name, count in sorted(self.counts.items()):
            lines.append(f"{name}: {count}")
            lines.extend(f"    {example}" for example in self.examples[name])
        return "\n".join(lines) or "no difference"


def read_inbox(connection, inbox):
    """(id, org, campaign, status, flags) of every message. One text for all rows: far faster than row by row for hundreds of thousands."""
    id, org, campaign, status, flags = inbox[1:]
    query = f"SELECT json_agg(json_build_array({id}::text, {org}::text, {campaign}::text, {status}, {flags})) FROM {inbox.table}"
    return connection.execute(query).fetchone()[0] or []


def compare_inbox(report, connection, ledger, inbox, may_go):
    """Statuses and flags of every message; returns the (status, flags) found, by campaign. may_go: ids that need no row."""
    found, states = set(), defaultdict(list)
    for id, org, campaign, status, flags in read_inbox(connection, inbox):
        status, flags = int(status), int(flags)
        found.add(id)
        states[campaign].append((status, flags))
        row = ledger.platform.get(id)
        if row is None:
            report.add("extra row", f"{id!r} in campaign {campaign!r}")
            continue
        if (org, campaign) != tuple(row):
            report.add("wrong owner", f"{id!r}: {(org, campaign)}, expected {tuple(row)}")
        if status != ledger.status[id]:
            report.add("wrong status", f"{id!r}: {status}, expected {ledger.status[id]}")
        if flags != ledger.flags.get(id, 0):
            report.add("wrong flag", f"{id!r}: {flags:#x}, expected {ledger.flags.get(id, 0):#x}")
    gone = ledger.platform.keys() - found
    for id in gone - may_go:
        report.add("missing row", repr(id))
    if may_go:
        retired.compare_booked(report, connection, ledger, gone, states)
    return states


def read_funnel(connection, schema):
    query = f"SELECT campaign_id, status, status_name, messages, events, current FROM {schema}.campaign_funnel"
    return {
        (campaign, code): (name, messages, events, current)
        for campaign, code, name, messages, events, current in connection.execute(query)
    }


def compare_funnel(report, connection, ledger, states, schema):
    """The counters against the ledger, and against the present rows."""
    there = read_funnel(connection, schema)
    expected = {
        (campaign or "", code): cell for campaign, codes in ledger.funnel().items() for code, cell in codes.items()
    }
    real = {campaign or "": ladder.funnel(those)[0] for campaign, those in states.items()}
    for key in expected.keys() | there.keys():
        campaign, code = key
        name, messages, events, current = there.get(key, (ladder.NAME.get(code), 0, 0, 0))
        want_messages, want_events, want_current = expected.get(key, (0, 0, 0))
        cell = f"{campaign!r} {name} ({code})"
        if events != want_events:
            name_of_it = "lost" if events < want_events else "duplicate"
            report.add(name_of_it, f"{cell}: {events} events, expected {want_events}")
        if messages != want_messages:
            report.add("wrong counter", f"{cell}: {messages} messages, expected {want_messages}")
        if want_current is not None and current != want_current:
            report.add("wrong current", f"{cell}: {current}, expected {want_current}")
        if messages != real.get(campaign, {}).get(code, 0):
            report.add("drift", f"{cell}: {messages} counted, {real.get(campaign, {}).get(code, 0)} by the rows")
        if name != ladder.NAME.get(code):
            report.add("wrong name", f"{cell}: expected {ladder.NAME.get(code)}")


def compare_positions(report, connection, ledger, lanes, schema):
    """Every lane of every partition stands at the end of the log; nothing else has a position."""
    query = f'SELECT topic, partition, lane, next_offset FROM {schema}.consumer_progress'
    there = {tuple(key): next_offset for *key, next_offset in connection.execute(query)}
    expected = {(*place, lane): end for place, end in ledger.positions.items() for lane in range(lanes)}
    for key, end in expected.items():
        if key not in there:
            report.add("missing progress", f"{key}: expected {end}")
        elif there[key] != end:
            report.add("wrong position", f"{key}: {there[key]}, expected {end}")
    for key in there.keys() - expected.keys():
        report.add("orphan progress", f"{key}: {there[key]}")


def same_payload(payload, letter, whole):
    """A letter keeps the record's bytes, or the JSON text of the event; of both no more than 64 KiB."""
    if whole:
        return (payload or b"") == (letter.payload or b"")[:LETTER_BYTES]
    if payload is not None and len(payload) == LETTER_BYTES and payload in letter.record:
        return len(json.dumps(letter.payload)) > LETTER_BYTES
    return payload is not None and parse(payload) == letter.payload


def singly(letters):
    """(key, reason, payload) of each receipt: a letter for many has an array of their texts."""
    for topic, partition, offset, index, reason, payload, indexes in letters:
        if indexes is None:
            yield (topic, partition, offset, index), reason, payload
            continue
        elements = parse(payload)
        assert len(elements) == len(indexes) > 1, "as many texts as indexes"
        for at, element in zip(indexes, elements):
            yield (topic, partition, offset, at), reason, json.dumps(element).encode()


def compare_letters(report, connection, ledger, schema):
    query = f'SELECT topic, partition, "offset", index, reason, payload, indexes FROM {schema}.dead_letter WHERE index >= -1'
    there = {}
    for key, reason, payload in singly(connection.execute(query, binary=True)):
        there[key] = reason
        letter = ledger.letters.get(key)
        if letter is None:
            report.add("extra letter", f"{key}: {reason}")
        elif reason != letter.reason:
            report.add("wrong reason", f"{key}: {reason}, expected {letter.reason}")
        elif not same_payload(payload, letter, key[3] == WHOLE_RECORD):
            report.add("wrong payload", f"{key}: {reason}")
    for key in ledger.letters.keys() - there.keys():
        report.add("missing letter", f"{key}: {ledger.letters[key].reason}")


def compare_parked(report, connection, ledger, schema):
    query = f'SELECT topic, partition, "offset", index, message_id FROM {schema}.parked_event'
    there = {tuple(key): id for *key, id in connection.execute(query)}
    for key in there.keys() - ledger.parked.keys():
        report.add("extra parked", f"{key}")
    for key, id in ledger.parked.items():
        if there.get(key) != id:
            report.add("missing parked" if key not in there else "wrong parked", f"{key}")


def compare(connection, ledger, lanes=8, schema="receiptd", inbox=OWN_INBOX, may_go=frozenset()):
    """Compares everything. Concurrent changes are seen in part: the caller first waits until nothing changes."""
    report = Report()
    states = compare_inbox(report, connection, ledger, inbox, may_go)
    compare_funnel(report, connection, ledger, states, schema)
    compare_positions(report, connection, ledger, lanes, schema)
    compare_letters(report, connection, ledger, schema)
    compare_parked(report, connection, ledger, schema)
    return report
