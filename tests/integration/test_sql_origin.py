"""Where a receipt comes from: an alias that lands later leads it to its message, and an organisation that it names guards the message."""
import collections
import dataclasses
import random

import pytest

import test_sql_parts
from sql_batch import TOPIC, Event, apply, drift, expected_funnel, stored_funnel, stored_rows, wake
from sql_fixture import database, sql_server  # noqa: F401
from test_sql_parking import parked, probe
from test_sql_positions import bootstrap

LANES = 4


def add(session, *rows):
    for id, org, campaign in rows:
        session.do("INSERT INTO message_inbox (message_id, org_id, campaign_id) VALUES (%s, %s, %s)", (id, org, campaign))


def alias(session, account, gateway_id, message_id):
    session.do("INSERT INTO message_alias VALUES (%s, %s, %s)"
               " ON CONFLICT (channel_account, gateway_id) DO UPDATE SET message_id = excluded.message_id",
               (account, gateway_id, message_id))


def lane_of(session, id):
    return session.query('SELECT (hashtextextended(%s COLLATE "C", 0) & %s)::int', (id, LANES - 1))[0][0]


def receipt(id, offset, code=600, account="acme", **more):
    return Event(id, code, offset, gateway=account, own=True, **more)


def park(session, *events):
    for event in events:
        apply(session, [event], lane=lane_of(session, event.message_id))


def address(session, lane, limit=1000):
    return int(session.one("lane/address", [TOPIC] * 3, [0, 1, 2], lane, limit)["rows"])


def step(session, limit=1000):
    """What the daemon does after a probe: each lane moves what has an alias, and wakes what has a message. Rows that were handled."""
    return sum(address(session, lane, limit) + wake(session, lane, limit)["rows"] for lane in range(LANES))


def settle(session, limit=1000):
    while step(session, limit):
        pass


def letters(session):
    return session.query('SELECT "offset", index, reason, detail FROM dead_letter ORDER BY 1, 2')


@pytest.fixture
def session(database):
    made = database.session()
    bootstrap(made, lanes=LANES)
    return made


# ---- aliases


@pytest.mark.parametrize("order", ["message, alias", "alias, message"])
def test_a_receipt_before_its_alias_is_applied_once_when_both_are_there(session, order):
    events = [receipt("g1", 0), receipt("g1", 1, 700), receipt("g1", 2, 600)]
    park(session, *events)
    steps = {"message": lambda: add(session, ("ours-1", "o", "c")), "alias": lambda: alias(session, "acme", "g1", "ours-1")}
    for name in order.split(", "):
        assert parked(session) == 3
        steps[name]()
        settle(session)
    assert parked(session) == 0 and stored_rows(session) == {"ours-1": (700, 0)}
    assert stored_funnel(session) == expected_funnel({"ours-1": "c"}, [Event("ours-1", e.code, e.offset) for e in events])
    assert drift(session) == []


def test_a_receipt_that_waits_for_the_message_lies_in_its_lane_with_its_age(session):
    park(session, receipt("g1", 0))
    session.do("UPDATE parked_event SET parked_at = now() - interval '1 hour'")
    before = session.query("SELECT parked_at FROM parked_event")
    alias(session, "acme", "g1", "ours-1")
    settle(session)
    assert session.query("SELECT message_id, lane, gateway_id, parked_at FROM parked_event") == [
        ("ours-1", lane_of(session, "ours-1"), "g1", before[0][0])]
    assert step(session) == 0


def test_two_accounts_with_one_gateway_id_are_two_messages(session):
    park(session, receipt("g1", 0, 600, "acme"), receipt("g1", 1, 700, "bird"), receipt("g1", 2, 800, "none"))
    apply(session, [receipt("g1", 3, 300, "acme"), receipt("g1", 4, 440, "bird")], lane=lane_of(session, "g1"))
    add(session, ("a", "o", "c"), ("b", "o", "c"))
    alias(session, "acme", "g1", "a")
    alias(session, "bird", "g1", "b")
    settle(session)
    assert stored_rows(session) == {"a": (600, 0), "b": (700, 0)}
    assert session.query('SELECT "offset" FROM parked_event') == [(2,)]


def test_a_chain_of_aliases_is_followed_to_its_end_and_a_ring_is_left(session):
    for account, chain in (("acme", ["g1", "g2", "g3", "ours"]), ("bird", ["r1", "r2", "r1"]), ("bird", ["self", "self"]),
                           ("long", [f"n{n}" for n in range(11)])):
        for step_from, step_to in zip(chain, chain[1:]):
            alias(session, account, step_from, step_to)
    add(session, ("ours", "o", "c"), ("n10", "o", "c"))
    park(session, receipt("g1", 0), receipt("r1", 1, account="bird"), receipt("self", 2, account="bird"), receipt("n0", 3, account="long"),
         receipt("g2", 4, 700))
    settle(session)
    assert stored_rows(session) == {"ours": (700, 0), "n10": (0, 0)}
    assert parked(session) == 3
    assert all(wakes == (False, False, 1) for lane, wakes in probe(session).items()) or step(session) == 0
    session.do("UPDATE parked_event SET parked_at = now() - interval '1 hour'")
    gone = sum(int(session.one("lane/expire", [TOPIC], [0], lane, 10, 60_000)["rows"]) for lane in range(LANES))
    assert gone == 3 and {reason for _, _, reason, _ in letters(session)} == {"aged_out"}


def test_an_alias_ends_at_an_id_that_has_a_message(session):
    alias(session, "acme", "g1", "middle")
    alias(session, "acme", "middle", "end")
    add(session, ("middle", "o", "c"), ("end", "o", "c"))
    park(session, receipt("g1", 0))
    settle(session)
    assert stored_rows(session) == {"middle": (600, 0), "end": (0, 0)}


def test_a_corrected_alias_leads_what_still_waits_to_the_right_message(session):
    park(session, receipt("g1", 0))
    alias(session, "acme", "g1", "wrong")
    settle(session)
    alias(session, "acme", "g1", "right")
    add(session, ("right", "o", "c"))
    settle(session)
    assert stored_rows(session) == {"right": (600, 0)} and parked(session) == 0


@pytest.mark.parametrize("bad", ["", "x" * 256, "x" * 5000])
def test_an_alias_to_what_is_no_message_id_is_left_alone(session, bad):
    park(session, receipt("g1", 0))
    alias(session, "acme", "g1", bad)
    assert step(session) == 0 and parked(session) == 1


def test_an_alias_needs_the_account_that_the_receipt_names(session):
    apply(session, [Event("g1", 600, 0)], lane=lane_of(session, "g1"))
    alias(session, "acme", "g1", "ours")
    alias(session, "", "g1", "ours")
    add(session, ("ours", "o", "c"))
    settle(session)
    assert parked(session) == 1 and stored_rows(session) == {"ours": (0, 0)}


def test_many_aliases_at_once_are_taken_in_bounded_steps_and_counted_exactly(session):
    rng = random.Random(21)
    inbox = {f"m{n}": rng.choice("abc") for n in range(120)}
    events = [receipt(f"g{rng.randrange(140)}", offset, rng.choice([300, 440, 600, 700, 9001])) for offset in range(900)]
    for start in range(0, len(events), 90):
        some = events[start:start + 90]
        for lane in range(LANES):
            apply(session, [e for e in some if lane_of(session, e.message_id) == lane], lane=lane)
    add(session, *((id, "o", campaign) for id, campaign in inbox.items()))
    for n in range(120):
        alias(session, "acme", f"g{n}", f"m{n}")
    assert all(address(session, lane, 7) == 7 for lane in range(LANES))
    settle(session, limit=23)
    applied = [Event(f"m{e.message_id[1:]}", e.code, e.offset) for e in events if int(e.message_id[1:]) < 120]
    assert stored_funnel(session) == expected_funnel(inbox, applied) and drift(session) == []
    assert parked(session) == len(events) - len(applied)


def test_the_probe_says_what_waits_for_an_alias(session):
    park(session, receipt("g1", 0), receipt("g2", 1), Event("other", 600, 2))

    def figures():
        rows = session.run("control/parked_probe", [TOPIC], [0], 10**9)
        return (any(row["applicable"] == "t" for row in rows), any(row["expired"] == "t" for row in rows),
                sum(int(row["rows"]) for row in rows), sum(int(row["for_alias"]) for row in rows))

    assert figures() == (False, False, 3, 2)
    alias(session, "acme", "g1", "ours")
    assert figures() == (False, True, 3, 1)
    settle(session)
    assert figures() == (False, False, 3, 1)
    add(session, ("ours", "o", "c"))
    assert figures() == (True, False, 3, 1)


def test_what_an_alias_leads_elsewhere_does_not_expire(session):
    park(session, receipt("g1", 0), receipt("g2", 1))
    session.do("UPDATE parked_event SET parked_at = now() - interval '1 hour'")
    alias(session, "acme", "g1", "ours")
    for lane in range(LANES):
        session.one("lane/expire", [TOPIC], [0], lane, 10, 60_000)
    assert [offset for offset, *_ in letters(session)] == [1] and parked(session) == 1


def test_bare_rows_are_made_for_what_waited_long_enough_and_not_for_what_has_an_alias(session):
    park(session, receipt("g1", 0, campaign_id="c1", org="o1"), receipt("g2", 1), receipt("g3", 2))
    alias(session, "acme", "g2", "ours-2")
    session.do("UPDATE parked_event SET parked_at = now() - interval '1 minute' WHERE message_id <> 'g3'")

    def make():
        for lane in range(LANES):
            address(session, lane)
            session.one("lane/insert_parked", [TOPIC], [0], lane, 10, 30_000)

    make()
    make()  # what was moved to a lane that had its turn before
    settle(session)
    assert session.query("SELECT message_id, org_id, campaign_id, status FROM message_inbox ORDER BY 1") == [
        ("g1", "o1", "c1", 600), ("ours-2", None, None, 600)]
    assert session.query("SELECT message_id FROM parked_event") == [("g3",)]


def test_the_timeline_follows_the_receipt_to_its_message(session):
    session.timeline = True
    park(session, receipt("g1", 0))
    assert session.query("SELECT message_id FROM message_timeline") == [("g1",)]
    alias(session, "acme", "g1", "ours")
    settle(session)
    assert session.query("SELECT message_id FROM message_timeline") == [("ours",)]


# ---- organisations


@pytest.fixture
def tenants(session):
    add(session, ("m1", "org1", "c1"), ("m3", "org3", "c3"), ("free", None, "c0"), ("blank", "", "c0"))
    return session


REFUSED = 'the receipt is of organisation "org1", its message of '


@pytest.mark.parametrize("id, theirs", [("m3", '"org3"'), ("free", "none"), ("blank", "none")])
def test_a_receipt_of_another_organisation_changes_nothing_and_becomes_a_dead_letter(tenants, id, theirs):
    before = stored_funnel(tenants)
    crossing = [Event(id, 600, 0, org="org1"), Event(id, 9001, 1, 2, org="org1", gateway="acme")]
    answer = apply(tenants, crossing)
    assert (answer["events_refused"], answer["events_parked"], answer["events_dead"], answer["events_counted"]) == (2, 0, 0, 0)
    assert stored_funnel(tenants) == before and stored_rows(tenants)[id] == (0, 0)
    assert letters(tenants) == [(0, 0, "other_organisation", REFUSED + theirs), (1, 2, "other_organisation", REFUSED + theirs)]


def test_a_receipt_of_the_same_organisation_or_of_none_is_applied(tenants):
    events = [Event("m1", 600, 0, org="org1"), Event("m3", 600, 1, org="org3"), Event("m3", 700, 2), Event("free", 600, 3)]
    assert apply(tenants, events)["events_counted"] == 4
    assert stored_rows(tenants) == {"m1": (600, 0), "m3": (700, 0), "free": (600, 0), "blank": (0, 0)}


@pytest.mark.parametrize("unknown", ["park", "dead-letter"])
def test_of_receipts_that_name_several_organisations_only_the_right_ones_count(tenants, unknown):
    events = [Event("m3", 600, 0, org="org1"), Event("m3", 300, 1, org="org3"), Event("m3", 440, 2), Event("m3", 9002, 3, org="org2"),
              Event("m1", 600, 4, org="org1"), Event("gone", 600, 5, org="org1")]
    answer = apply(tenants, events, unknown=unknown)
    assert (answer["events_counted"], answer["events_parked"], answer["events_dead"]) == ((1, 5, 0) if unknown == "park" else (1, 4, 1))
    answer = wake(tenants)
    assert (answer["rows"], answer["events_refused"]) == (4, 2)
    inbox = {"m1": "c1", "m3": "c3", "free": "c0", "blank": "c0"}
    assert stored_funnel(tenants) == expected_funnel(inbox, [events[1], events[2], events[4]])
    refused = [row for row in letters(tenants) if row[2] == "other_organisation"]
    assert [(offset, detail) for offset, _, _, detail in refused] == [
        (0, REFUSED + '"org3"'), (3, 'the receipt is of organisation "org2", its message of "org3"')]


def test_a_receipt_without_organisation_is_applied_whatever_its_neighbours_name(tenants):
    events = [Event("m3", 600, 0, org="org1"), Event("m3", 300, 1), Event("m1", 600, 2), Event("m1", 300, 3, org="org1")]
    answer = apply(tenants, events)
    assert (answer["events_counted"], answer["events_parked"], answer["events_refused"]) == (2, 1, 1)
    assert wake(tenants)["events_refused"] == 0
    inbox = {"m1": "c1", "m3": "c3", "free": "c0", "blank": "c0"}
    assert stored_funnel(tenants) == expected_funnel(inbox, events[1:]) and len(letters(tenants)) == 1


def test_parked_receipts_are_compared_when_they_wake(tenants):
    apply(tenants, [Event("late", 600, 0, org="org1", gateway="acme"), Event("late", 700, 1, org="org1", gateway="bird")])
    apply(tenants, [Event("late", 300, 2, org="org3")])
    add(tenants, ("late", "org3", "c3"))
    answer = wake(tenants)
    assert (answer["rows"], answer["events_refused"], answer["refused_gateways"]) == (3, 2, {"other": 2})
    assert stored_rows(tenants)["late"] == (300, 0) and drift(tenants) == []
    assert [row[:3] for row in letters(tenants)] == [(0, 0, "other_organisation"), (1, 0, "other_organisation")]


def test_an_alias_does_not_lead_into_another_organisation(tenants):
    park(tenants, receipt("g1", 0, org="org1"))
    alias(tenants, "acme", "g1", "m3")
    settle(tenants)
    assert stored_rows(tenants)["m3"] == (0, 0) and letters(tenants) == [(0, 0, "other_organisation", REFUSED + '"org3"')]


def test_the_timeline_does_not_say_that_a_refused_receipt_found_its_message(tenants):
    tenants.timeline = True
    apply(tenants, [Event("m3", 600, 0, org="org1")])
    assert tenants.query("SELECT old, new FROM message_timeline") == [(None, None)]


def test_the_funnel_says_whose_campaign_it_is(tenants):
    add(tenants, ("shared-1", "org1", "both"), ("shared-3", "org3", "both"))
    owners = dict(tenants.query("SELECT DISTINCT campaign_id, org_id FROM campaign_funnel"))
    assert owners == {"c1": "org1", "c3": "org3", "c0": None, "both": None}
    assert tenants.query("SELECT DISTINCT org_id FROM campaign_kpi WHERE campaign_id = 'c3'") == [("org3",)]


# ---- parts that only the alias names ---------------------------------------------------------------------------------

def key_of(event, part):
    """As src/core/record_event.c: here of what the receipt names, since no event_id tells the parts apart."""
    key = (hash((event.code, event.marks)) ^ (part or 0) << 56) & 0xffffffffffffffff
    return key - (1 << 64) if key >> 63 else key


def under_alias(event):
    """As the gateway reports it: under the part's own id, without part and total."""
    return dataclasses.replace(event, message_id=f"{event.message_id}.{event.part}", part=None, parts=None, own=True, key=key_of(event, None))


@pytest.mark.parametrize("rules", ((), ("dedup",)))
def test_parts_that_only_aliases_name_count_as_those_that_receipts_name(database, rules):
    """Whether the intake knew the alias (it then writes part and total), or the receipt was parked and the alias landed later."""
    for seed in range(4):
        rng = random.Random(seed)
        session = database.session()
        session.rules = rules
        session.do("TRUNCATE message_alias, message_part, parked_event, receipt_counted; DELETE FROM message_inbox;"
                   " TRUNCATE campaign_retired, retired_message, counter_delta, campaign_funnel_total")
        if seed == 0:
            bootstrap(session, lanes=LANES)
        at = session.query("SELECT date_trunc('day', now())::text")[0][0]
        inbox, events = test_sql_parts.histories(rng, 60)
        totals = {}
        for event in events:
            if event.part is not None:
                totals.setdefault((event.message_id, event.part), event.parts)
        events = [dataclasses.replace(e, at=at, gateway="acme", parts=totals.get((e.message_id, e.part))) for e in events]
        aliases, messages = list(totals.items()), list(inbox.items())
        rng.shuffle(aliases)
        rng.shuffle(messages)
        known = set()
        for start in range(0, len(events), 20):
            for (message, part), parts in aliases[:rng.randrange(12)]:
                session.do("INSERT INTO message_alias (channel_account, gateway_id, message_id, part, parts) VALUES ('acme', %s, %s, %s, %s)",
                           (f"{message}.{part}", message, part, parts))
                known.add((message, part))
            aliases = [alias for alias in aliases if alias[0] not in known]
            add(session, *((id, "o", campaign) for id, campaign in messages[:4]))
            messages = messages[4:]
            lanes = collections.defaultdict(list)
            for event in events[start:start + 20]:
                direct = event.part is None or (event.message_id, event.part) in known and rng.random() < 0.7
                event = dataclasses.replace(event, key=key_of(event, event.part)) if direct else under_alias(event)
                lanes[lane_of(session, event.message_id)].append(event)
            for lane, batch in lanes.items():
                apply(session, batch, lane=lane)
            if rng.random() < 0.5:
                step(session, rng.choice((1, 5, 1000)))
        for (message, part), parts in aliases:
            session.do("INSERT INTO message_alias (channel_account, gateway_id, message_id, part, parts) VALUES ('acme', %s, %s, %s, %s)",
                       (f"{message}.{part}", message, part, parts))
        add(session, *((id, "o", campaign) for id, campaign in messages))
        settle(session)
        distinct = {(e.message_id, e.part, e.code, e.marks): e for e in events} if rules else dict(enumerate(events))
        rows, funnel = test_sql_parts.expected(inbox, distinct.values())
        assert stored_rows(session) == rows and parked(session) == 0
        assert stored_funnel(session) == funnel
        assert drift(session) == []


def test_a_receipt_s_own_total_counts_before_the_alias_s(database):
    session = database.session()
    bootstrap(session, lanes=LANES)
    add(session, ("m", "o", "c"))
    apply(session, [receipt("g.1", 0, part=1, parts=3)], lane=lane_of(session, "g.1"))
    apply(session, [receipt("g.2", 1)], lane=lane_of(session, "g.2"))
    for part in (1, 2):
        session.do("INSERT INTO message_alias (channel_account, gateway_id, message_id, part, parts) VALUES ('acme', %s, 'm', %s, 3)", (f"g.{part}", part))
    settle(session)
    assert session.query("SELECT parts, delivered FROM message_part") == [(3, [1, 2])]
    assert stored_rows(session)["m"] == (300, 0)
    for part, parts in ((0, 2), (3, 2), (1, 256), (1, None), (None, 2)):
        with pytest.raises(Exception, match="message_alias_part|out of range"):
            session.do("INSERT INTO message_alias (channel_account, gateway_id, message_id, part, parts) VALUES ('acme', 'x', 'm', %s, %s)", (part, parts))


def test_an_alias_of_one_part_says_nothing(database):
    session = database.session()
    bootstrap(session, lanes=LANES)
    add(session, ("m", "o", "c"))
    apply(session, [receipt("g", 0)], lane=lane_of(session, "g"))
    session.do("INSERT INTO message_alias (channel_account, gateway_id, message_id, part, parts) VALUES ('acme', 'g', 'm', 1, 1)")
    settle(session)
    assert stored_rows(session)["m"] == (600, 0) and session.query("SELECT * FROM message_part") == []
