"""What rules count beside the funnel, as far as a ledger knows it: dimensions, groups and the series. Times and what they count are left to `receiptd audit`.

The platform's columns follow from the message's id, so that a ledger needs no more than ids.
"""

import functools
import zlib
from collections import Counter

from oracle import ladder

DIMENSIONS = ("variant", "channel", "gateway")
COLUMNS = (*DIMENSIONS, "customer_id", "logical_id")
# Rules that a ledger can judge. What depends on the times of receipts (dedup.window) has an oracle in tests/campaigns/rules.
SETTINGS = {
    "counters": {"series": "90d", "reasons": True, "gateways": "90d", "times": True, "by": list(DIMENSIONS), "groups": ["customer", "logical"]},
    "inbox": {"columns": {"recipient": "recipient"}},
}


@functools.lru_cache(1 << 18)
def facets_of(id):
    """(variant, channel, gateway, customer, logical) of a message: four share a customer, some are attempts at one logical message."""
    draw = zlib.crc32(id.encode())
    return ("ab"[draw % 2], ("sms", "email", None)[draw // 2 % 3], f"g{draw // 6 % 4}", f"p{draw // 24 % 2000}" if draw % 11 else None,
            f"l{draw // 7 % 3000}" if draw % 5 == 0 else None)


@functools.cache
def codes_of(state):
    """What a message, or a group of messages, with this (status, flags) is counted in."""
    return tuple(ladder.funnel([state])[0])


def expected(ledger):
    """{(kind, campaign, key, code): messages or events}"""
    counts, cells, groups = Counter(), Counter(), {}
    for id, row in ledger.platform.items():
        state = (ledger.status[id], ledger.flags.get(id, 0))
        *values, customer, logical = facets_of(id)
        cells[row.campaign_id, state, tuple(values)] += 1
        for kind, key in (("customer", customer), ("logical", logical or id)):
            if key is not None:
                best, flags = groups.get((kind, row.campaign_id, key), (state[0], 0))
                groups[kind, row.campaign_id, key] = max(best, state[0], key=ladder.BEST.get), flags | state[1]
    for (campaign, state, values), messages in cells.items():
        for code in codes_of(state):
            counts["hour", campaign, "", code] += messages if code != ladder.ROOT else 0
            for name, value in zip(DIMENSIONS, values):
                counts[f"by_{name}", campaign, value or "", code] += messages
    for (kind, campaign, _), state in groups.items():
        for code in codes_of(state):
            counts[kind, campaign, "", code] += 1
    for (campaign, code), events in ledger.events.items():
        for kind in ("hour", *(f"by_{name}" for name in DIMENSIONS)):
            counts[f"{kind} events", campaign, "", code] += events
    return +counts


def stored(connection, schema):
    tally = f"FROM {schema}.campaign_tally WHERE kind"
    query = (f"SELECT kind, campaign_id, key, status, sum(messages)::int8 {tally} LIKE 'by_%' OR kind = 'hour' GROUP BY 1, 2, 3, 4"
             f" UNION ALL SELECT kind || ' events', campaign_id, '', status, sum(events)::int8 {tally} LIKE 'by_%' OR kind = 'hour' GROUP BY 1, 2, 4"
             f" UNION ALL SELECT kind, campaign_id, '', status, groups FROM {schema}.group_funnel")
    return Counter({tuple(key): number for *key, number in connection.execute(query)})


def compare_rules(report, connection, ledger, schema="receiptd"):
    there, expectation = stored(connection, schema), expected(ledger)
    for key in there.keys() | expectation.keys():
        if there[key] != expectation[key]:
            report.add(f"wrong {key[0]}", f"{key[1:]}: {there[key]}, expected {expectation[key]}")
