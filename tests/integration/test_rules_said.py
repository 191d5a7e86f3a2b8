"""Links and costs (counters.links, counters.cost) in the running daemon: from the gateway's webhook or Kafka to the views, through kills."""
import json
import random
from collections import Counter
from decimal import Decimal

import pytest

from oracle.traffic import Outgoing

ON = {"counters": {"links": True, "cost": True, "rollup_interval": "50ms"}}
LINKS, PRICES = [f"https://d.example/{name}" for name in ("offer", "news", "faq")], ("0.0075", "0.00333", "1.25")


def events_of(rng, ids, now):
    """A person clicks one link; scanners follow some. Both know the person by the query."""
    for n, id in enumerate(ids):
        one = {"message_id": id, "gateway": "acme", "campaign_id": "c", "org_id": "o"}
        price, link = rng.choice(PRICES), rng.choice(LINKS)
        yield one | {"status": "SENT", "at": now - rng.randrange(3_600_000), "event_id": f"{id}s",
                     **({"cost": price, "currency": "EUR"} if n % 3 else {"cost": f"-{price}", "currency": "usd"})}
        if n % 2:
            yield one | {"status": "CLICKED", "at": now - rng.randrange(3_600_000), "event_id": f"{id}c", "link": f"{link}?u={id}"}
        if n % 5 == 0:
            yield one | {"status": "CLICKED", "flags": ["BOT_CLICK"], "at": now - rng.randrange(3_600_000), "event_id": f"{id}b", "link": f"{LINKS[0]}#u{id}"}


def expected(events):
    """Of distinct events: ({link: (first_clicks, clicks, bot_clicks)}, {(currency, status): (amount, receipts)})."""
    clicks = Counter(e["link"].partition("?")[0] for e in events if e["status"] == "CLICKED" and "flags" not in e)
    bots = Counter(e["link"].partition("#")[0] for e in events if "flags" in e)
    amounts, receipts = Counter(), Counter()
    for e in events:
        if "cost" in e:
            amounts[e["currency"].upper(), "SENT"] += abs(Decimal(e["cost"]))
            receipts[e["currency"].upper(), "SENT"] += 1
    return ({link: (clicks[link], clicks[link], bots[link]) for link in clicks | bots}, {key: (amounts[key], receipts[key]) for key in receipts})


def views(world):
    links = {row[0]: row[1:] for row in world.database.query("SELECT link, first_clicks, clicks, bot_clicks FROM receiptd.campaign_link WHERE campaign_id = 'c'")}
    costs = {row[:2]: row[2:] for row in world.database.query("SELECT currency, status_name, amount, receipts FROM receiptd.campaign_cost WHERE campaign_id = 'c'")}
    return links, costs


@pytest.mark.parametrize("dedup", ("0s", "24h"))
@pytest.mark.parametrize("unknown", ("park", "insert"))
def test_clicks_and_costs_are_exact_through_kills(create_world, unknown, dedup):
    world = create_world(unknown=unknown, dedup={"window": dedup}, **ON)
    rng = random.Random(11)
    ids = [f"m{n}" for n in range(2_000)]
    now = world.database.value("SELECT (extract(epoch FROM now()) * 1000)::int8")
    distinct = list(events_of(rng, ids, now))
    events = distinct + (rng.sample(distinct, 1_000) if dedup != "0s" else [])  # without it a gateway's repetition is an event
    rng.shuffle(events)
    records = [Outgoing(n % 8, None, json.dumps(events[at:at + 50]).encode(), [], now) for n, at in enumerate(range(0, len(events), 50))]
    if unknown == "park":
        world.insert_ids(*ids[:1_500])
    process = world.produce_over_kills(records[part:part + 20] for part in range(0, len(records), 20))
    if unknown == "park":
        world.insert_ids(*ids[1_500:])
    world.wait_until_consumed(process)
    world.wait(lambda: world.database.value("SELECT count(*) FROM receiptd.parked_event") == 0, process, 60, "nothing is parked")
    assert views(world) == expected(distinct)
    world.wait(lambda: world.database.value("SELECT count(*) FROM receiptd.counter_delta") == 0, process, 30, "all is rolled up")
    links, costs = expected(distinct)
    assert views(world) == (links, costs)
    shown = json.loads(world.installation.command("funnel", "c", "--by", "link", "--format", "json").stdout)
    found = {key["key"]: {status["name"]: (status["messages"], status["events"]) for status in key["statuses"]} for key in shown["keys"]}
    assert {link: cells.get("CLICKED", (0, 0)) for link, cells in found.items()} == {link: counts[:2] for link, counts in links.items()}
    assert "events by link" in world.installation.command("funnel", "c", "--by", "link").stdout
    audit = world.installation.command("audit")
    assert audit.stdout.endswith(", 0 cells drift\n") and "not compared: counters.links, counters.cost: " in audit.stderr
    process.stop()


def test_what_nobody_can_read_is_named_and_the_receipt_counts(create_world):
    world = create_world(partitions=1, **ON)
    world.insert_ids("m")
    one = {"message_id": "m", "status": "CLICKED"}
    texts = [json.dumps(one | more) for more in (
        {"cost": "free", "currency": "EUR"}, {"cost": 1e12}, {"cost": "0,01"}, {"cost": {"amount": "1", "currency": "EUR"}}, {"cost": None}, {"cost": True},
        {"cost": "1e-3", "currency": "EURO"}, {"link": None}, {"link": ["x"]}, {"link": "a\0b"}, {"link": "x" * 4_000}, {"link": "é" * 200})]
    texts.append('{"message_id": "m", "status": "CLICKED", "l\\u0069nk": "b", "c\\u006fst": 2, "currency": "eur"}')
    world.topic.send_records([{"value": text} for text in texts])
    process = world.installation.start()
    world.wait_until_consumed(process)
    links, costs = views(world)
    assert links == {"": (1, 10, 0), "x" * 197 + "…": (0, 1, 0), "é" * 98 + "…": (0, 1, 0), "b": (0, 1, 0)}
    assert costs == {("invalid", "CLICKED"): (0, 3), ("?", "CLICKED"): (Decimal("0.001"), 1), ("EUR", "CLICKED"): (2, 1)}
    assert world.database.value("SELECT count(*) FROM receiptd.dead_letter") == 0
    assert world.database.value("SELECT events FROM receiptd.campaign_funnel WHERE status = 800") == len(texts)
    process.stop()


def test_a_topic_in_the_platforms_own_words_brings_links_and_costs(create_world, create_topic):
    """`gateway: custom` names where link, price and currency stand; a price is a number or a text of one."""
    world, topic = create_world(partitions=1, **ON), create_topic(1)
    entry = {"name": str(topic), "gateway": "custom",
             "custom": {"message_id": "/id", "status": "/state", "statuses": {"sent": "SENT", "click": "CLICKED"},
                        "link": "/what/url", "cost": "/price/amount", "currency": "/price/unit"}}
    world.installation.configure(kafka={"topics": [str(world.topic), entry]})
    world.insert_ids("m1", "m2")
    topic.send({"id": "m1", "state": "sent", "price": {"amount": 0.0075, "unit": "eur"}}, {"id": "m2", "state": "sent", "price": {"amount": "1.25", "unit": "EUR"}},
               {"id": "m1", "state": "click", "what": {"url": "https://d.example/offer?u=m1"}}, {"id": "m2", "state": "click"})
    process = world.installation.start()
    world.wait(lambda: world.database.value("SELECT sum(events) FROM receiptd.campaign_funnel") == 4, process, 30, "all are counted")
    assert world.database.query("SELECT currency, status_name, amount, receipts FROM receiptd.campaign_cost") == [("EUR", "SENT", Decimal("1.2575"), 2)]
    assert world.database.query("SELECT link, first_clicks, clicks FROM receiptd.campaign_link ORDER BY link") == [("", 1, 1), ("https://d.example/offer", 1, 1)]
    process.stop()
