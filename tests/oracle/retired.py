"""What must hold of messages that were deleted, and of the receipts that came after that.

Nobody outside PostgreSQL knows in which order a deletion and a receipt were committed. So the dead letters say which receipts were late,
and the rest must follow: what is booked, counted and remembered; and each claim of a letter must be possible.
"""

from collections import Counter, defaultdict

from oracle import ledger

LETTERS = """SELECT topic, partition, "offset", index, extract(epoch FROM dead_at)::float8 FROM receiptd.dead_letter
    WHERE reason = 'retired_message'"""


def read_late(connection):
    """{key of a receipt: when it was set aside, in seconds} of the letters that say that the message was deleted."""
    return {tuple(key): at for *key, at in connection.execute(LETTERS)}


def check_late(report, records, late, due, parked):
    """A receipt is late only if its message may be gone by then, and so is each one behind it in the same log.

    due: {id: when its retention ends at the earliest}. parked: ids whose receipts may have waited; those are not applied in order."""
    came, left = defaultdict(list), set(late)
    for record in sorted(records, key=lambda record: (record.partition, record.offset)):
        for index, element in enumerate(ledger.decode(record.value)):
            id, key = element["message_id"], (record.topic, record.partition, record.offset, index)
            came[id, record.partition].append(key in late)
            if key in late:
                left.discard(key)
                if not late[key] >= due.get(id, float("inf")):
                    report.add("letter too early", f"{key}: {id!r}")
    for key in left:
        report.add("letter without a receipt", f"{key}")
    for (id, partition), turns in came.items():
        if id not in parked and turns != sorted(turns):
            report.add("counted after a late one", f"{id!r} in partition {partition}")


def compare_booked(report, connection, ledger, gone, states):
    """What is booked and remembered of the deleted messages. What is booked joins the states of the rows that are there."""
    expected = Counter((ledger.platform[id].campaign_id or "", ledger.status[id], ledger.flags.get(id, 0)) for id in gone)
    there = Counter()
    for campaign, status, flags, messages in connection.execute("SELECT campaign_id, status, flags, messages FROM receiptd.campaign_retired"):
        there[campaign, status, flags] += messages
        states[campaign].extend([(status, flags)] * messages)
    for key in expected.keys() | there.keys():
        if expected[key] != there[key]:
            report.add("wrong booking", f"{key}: {there[key]} messages, expected {expected[key]}")
    hashes = connection.execute("SELECT hashtextextended(id, 0) FROM unnest(%s::text[]) AS id", (sorted(gone),))
    remembered = connection.execute("SELECT hash FROM receiptd.retired_message")
    wanted, found = (Counter(hash for (hash,) in rows) for rows in (hashes, remembered))
    if wanted != found:
        report.add("wrong memory", f"{(found - wanted).total()} ids too many, {(wanted - found).total()} missing")
