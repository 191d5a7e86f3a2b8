"""The generator's exact ledger against the database."""

from collections import Counter

from demonstration import campaigns
from demonstration.view import number


def compare(connection, ledger, total_messages):
    """Prints one line per comparison; True when all are equal."""
    counters = {(campaign, status): tuple(counts) for campaign, status, *counts in connection.execute(
        "SELECT campaign_id, status, messages, events, current FROM receiptd.campaign_funnel")}
    letters = dict(connection.execute("SELECT reason, count(*) FROM receiptd.dead_letter GROUP BY reason").fetchall())
    parked = connection.execute("SELECT count(*) FROM receiptd.parked_event").fetchone()[0]
    wanted_messages = {campaigns.message_id(value): (status, flags) for value, status, flags
                       in zip(ledger.numbers, ledger.statuses, ledger.flags)}
    wanted_counters = ledger.funnel(total_messages)
    return all([
        _line(f"{len(wanted_counters)} counters: messages, events, current", wanted_counters, counters),
        _line(f"{number(total_messages)} messages: status and flags", wanted_messages, _messages(connection)),
        _line(f"{number(ledger.parked)} receipts parked, their messages are unknown", {"parked": ledger.parked},
              {"parked": parked}),
        _line(f"{sum(ledger.dead_letters.values())} dead letters with their reasons", dict(ledger.dead_letters), letters),
    ])


def _messages(connection):
    """{message id: (status, flags)} of those that any receipt has reached."""
    copy = ("COPY (SELECT message_id, status, flags FROM receiptd.message_inbox WHERE status <> 0 OR flags <> 0)"
            " TO STDOUT")
    with connection.cursor() as cursor, cursor.copy(copy) as source:
        text = b"".join(bytes(block) for block in source).decode()
    rows = (line.split("\t") for line in text.splitlines())
    return {id: (int(status), int(flags)) for id, status, flags in rows}


def _line(what, wanted, found):
    different = [key for key in wanted.keys() | found.keys() if wanted.get(key) != found.get(key)]
    if not different:
        print(f"  equal      {what}")
        return True
    print(f"  DIFFERENT  {what}: {number(len(different))}")
    for key in sorted(different, key=str)[:8]:
        print(f"             {key}: expected {wanted.get(key)}, found {found.get(key)}")
    kinds = Counter("missing" if key not in found else "unexpected" if key not in wanted else "changed"
                    for key in different)
    print(f"             {', '.join(f'{count} {kind}' for kind, count in sorted(kinds.items()))}")
    return False
