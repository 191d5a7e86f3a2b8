"""Rules that read what receipts say: links and costs (src/core/rules). What they must say is written from the definition."""
import collections
import dataclasses
import random
from decimal import Decimal

import pytest

from sql_batch import Event, add_messages, apply, stored_funnel, wake, wake_all
from sql_fixture import database, sql_server  # noqa: F401
from test_sql_rules import at, batches_of, ruled, without_echoes

CLICKED, BOT_CLICK = 800, 9007
CODES = (300, 600, 700, CLICKED, CLICKED, CLICKED, BOT_CLICK)
LINKS = ("https://d.example/a?to=%s", "https://d.example/b#%s", "https://d.example/a", "", None, "https://d.example/é?x")
# A price and its currency as gateways write them, and the amount; None: it is no amount.
COSTS = (("0.0075", "USD", Decimal("0.0075")), ("-0.00750", "usd", Decimal("0.0075")), (0.0333, "EUR", Decimal("0.0333")), (1.5, None, Decimal("1.5")),
         ("999999999.999999999", "IDR", Decimal("999999999.999999999")), (0, "EUR", Decimal(0)), ("free", "EUR", None), ("1000000000", "EUR", None))
CLEAN = ("TRUNCATE campaign_tally_total, campaign_funnel_total, receipt_counted; DELETE FROM message_inbox;"
         " TRUNCATE campaign_retired, retired_message, counter_delta")


def page(event):
    """The link under which it counts."""
    return (event.link or "").split("?")[0].split("#")[0]


def price(event):
    """(currency, amount) under which it counts; None: it names no cost."""
    found = next((cost for cost in COSTS if cost[:2] == (event.cost, event.currency)), None)
    return found and ("invalid" if found[2] is None else (found[1] or "?").upper(), found[2] or Decimal(0))


def histories(seed, n_messages=40, n_events=400):
    """Receipts and copies of them."""
    rng = random.Random(seed)
    inbox = {f"m{i}": f"c{i % 3}" for i in range(n_messages)}
    distinct = []
    for n in range(n_events):
        link, cost = rng.choice(LINKS), rng.choice(COSTS) if rng.random() < 0.6 else (None, None, None)
        id = f"m{rng.randrange(n_messages)}"
        distinct.append(Event(id, rng.choice(CODES), 0, at=at(rng.randrange(40)), key=1000 + n, link=link and link.replace("%s", id), cost=cost[0], currency=cost[1]))
    events = distinct + [rng.choice(distinct) for _ in range(n_events)]
    rng.shuffle(events)
    return rng, inbox, [dataclasses.replace(event, offset=n) for n, event in enumerate(events)]


def first_clicks(inbox, batches):
    """{(campaign, link): messages} that came to CLICKED by a click on this link: of one batch the earliest click, of equal times the least link."""
    found, reached = collections.Counter(), set()
    for batch in batches:
        clicks = collections.defaultdict(list)
        for event in batch:
            if event.code == CLICKED and event.message_id not in reached:
                clicks[event.message_id].append((event.at, page(event).encode(), page(event)))
        found.update((inbox[id], min(mine)[2]) for id, mine in clicks.items())
        reached |= set(clicks)
    return found


def links_of(session):
    """{(campaign, link): (first_clicks, clicks, bot_clicks)}"""
    return {row[:2]: row[2:] for row in session.query("SELECT * FROM campaign_link")}


def costs_of(session):
    """{(campaign, currency, status): (amount, receipts)}"""
    return {row[:3]: row[3:] for row in session.query("SELECT campaign_id, currency, status, amount, receipts FROM campaign_cost")}


def expected_links(inbox, batches, once):
    clicks = collections.Counter((inbox[e.message_id], page(e)) for e in once if e.code == CLICKED)
    bots = collections.Counter((inbox[e.message_id], page(e)) for e in once if e.code == BOT_CLICK)
    firsts = first_clicks(inbox, batches)
    return {key: (firsts[key], clicks[key], bots[key]) for key in clicks.keys() | bots.keys() | firsts.keys()}


def expected_costs(inbox, once):
    found = {}
    for event in once:
        if price(event) is not None:
            currency, amount = price(event)
            key = inbox[event.message_id], currency, event.code
            found[key] = (found.get(key, (0, 0))[0] + amount, found.get(key, (0, 0))[1] + 1)
    return found


def roll(session, rows):
    return session.one("control/rollup", rows, 0, "rules")["rows"] != "0"


@pytest.mark.parametrize("rules", (("links", "costs"), ("links", "costs", "dedup"), ("links", "costs", "dedup", "series", "reasons", "gateways")))
def test_links_and_costs_are_what_their_definition_says(database, rules):  # noqa: F811
    for seed in range(3):
        rng, inbox, events = histories(seed)
        session = ruled(database, *rules)
        session.do(CLEAN)
        add_messages(session, inbox)
        batches = list(batches_of(rng, events))
        for batch in batches:
            apply(session, batch)
            if rng.random() < 0.5:
                roll(session, rng.randrange(1, 5))
        once = without_echoes(events) if "dedup" in rules else events
        links, costs = expected_links(inbox, batches, once), expected_costs(inbox, once)
        assert links_of(session) == links and costs_of(session) == costs
        while roll(session, 3):
            pass
        assert links_of(session) == links and costs_of(session) == costs, "rolled up they are the same"
        funnel = stored_funnel(session)
        for campaign in set(inbox.values()):
            mine = [counts for (of, _), counts in links.items() if of == campaign]
            assert (sum(m for m, _, _ in mine), sum(e for _, e, _ in mine)) == funnel[campaign, CLICKED], "the sum over all links is the funnel"
            assert sum(b for _, _, b in mine) == funnel[campaign, BOT_CLICK][1]


def test_any_order_and_any_copies_lead_to_the_same_clicks_and_costs(database):  # noqa: F811
    rng, inbox, events = histories(7)
    found = []
    for again in (1, 1, 3):
        session = ruled(database, "links", "costs", "dedup")
        session.do(CLEAN)
        add_messages(session, inbox)
        mine = events * again
        rng.shuffle(mine)
        for batch in batches_of(rng, [dataclasses.replace(e, offset=n) for n, e in enumerate(mine)]):
            apply(session, batch)
        found.append(({key: counts[1:] for key, counts in links_of(session).items() if counts[1:] != (0, 0)}, costs_of(session)))
    assert found[0] == found[1] == found[2]


def test_a_parked_receipt_counts_its_link_and_cost_when_it_is_woken(database):  # noqa: F811
    session = ruled(database, "links", "costs", "dedup")
    late = Event("late", CLICKED, 0, at=at(1), key=5, link="https://d.example/\"é\"?to=late", cost="0.25", currency="EUR")
    apply(session, [late, dataclasses.replace(late, offset=1), Event("late", CLICKED, 2, at=at(2), key=6, link="https://d.example/b", cost="0.5", currency="EUR")])
    assert links_of(session) == {} and costs_of(session) == {}
    add_messages(session, {"late": "c"})
    wake(session)
    apply(session, [dataclasses.replace(late, offset=3)])
    assert links_of(session) == {("c", "https://d.example/b"): (1, 1, 0), ("c", "https://d.example/\"é\""): (0, 1, 0)}
    assert costs_of(session) == {("c", "EUR", CLICKED): (Decimal("0.75"), 2)}


@pytest.mark.parametrize("parked", (False, True))
def test_a_text_above_16_kib_has_no_link_and_no_cost_parked_or_not(database, parked):  # noqa: F811
    session = ruled(database, "links", "costs")
    short, long = (Event("m", CLICKED, n, at=at(5 - n), link="https://d.example/a", cost="1", currency="EUR", reason="x" * size)
                   for n, size in enumerate((16_000, 16_384)))
    assert len(short.payload) <= 16_384 < len(long.payload)
    if not parked:
        add_messages(session, {"m": "c"})
    apply(session, [short, long])
    if parked:
        add_messages(session, {"m": "c"})
        wake_all(session)
    assert links_of(session) == {("c", "https://d.example/a"): (1, 1, 0), ("c", ""): (0, 1, 0)} and costs_of(session) == {("c", "EUR", CLICKED): (1, 1)}


def test_a_wake_without_these_rules_reads_no_payload(database):  # noqa: F811
    session = ruled(database, "reasons")
    apply(session, [Event("late", CLICKED, 0, link="https://d.example/a", cost="0.25", currency="EUR")])
    add_messages(session, {"late": "c"})
    wake_all(session)
    assert stored_funnel(session)["c", CLICKED] == (1, 1) and links_of(session) == {} and costs_of(session) == {}


def test_a_campaign_has_a_thousand_links_and_others(database):  # noqa: F811
    session = ruled(database, "links")
    add_messages(session, {f"m{n}": "c" for n in range(1100)})
    for first in range(0, 1100, 100):
        apply(session, [Event(f"m{n}", CLICKED, n, link=f"https://d.example/{n:04}") for n in range(first, first + 100)])
    named = {("c", f"https://d.example/{n:04}"): (1, 1, 0) for n in range(1000)}
    assert links_of(session) == named | {("c", "other"): (100, 100, 0)}
    while roll(session, 4):
        pass
    apply(session, [Event("m5", CLICKED, 2000, link="https://d.example/0005"), Event("m6", CLICKED, 2001, link="https://d.example/new")])
    named["c", "https://d.example/0005"] = (1, 2, 0)
    assert links_of(session) == named | {("c", "other"): (100, 101, 0)}


def test_sums_of_the_largest_amounts_stay_exact(database):  # noqa: F811
    session = ruled(database, "costs")
    add_messages(session, {"m": "c"})
    for batch in range(20):
        apply(session, [Event("m", 300, batch * 500 + n, cost="999999999.999999999", currency="IDR") for n in range(500)])
        roll(session, 100)
    assert costs_of(session) == {("c", "IDR", 300): (Decimal("999999999.999999999") * 10_000, 10_000)}
    # As after nine thousand million of them: the last cell that fits.
    session.do("UPDATE campaign_tally_total SET messages = messages * 920000, events = events * 920000 WHERE kind = 'cost_amount'")
    apply(session, [Event("m", 300, 20_000, cost="0.000000001", currency="IDR")])
    roll(session, 100)
    assert costs_of(session)["c", "IDR", 300] == (Decimal("999999999.999999999") * 9_200_000_000 + Decimal("0.000000001"), 10_001)
