"""Rules in the running daemon: echoes are distinguished from events, the series and reasons add up, through kills and restarts."""
import json
import random

import pytest

from oracle.traffic import Outgoing
from support.services import ROOT

ON = {"dedup": {"window": "24h"}, "counters": {"series": "30d", "reasons": "true", "gateways": "30d", "times": True}}


def sum_of(world, kind, where="true"):
    return world.database.value(f"SELECT COALESCE(sum(events), 0)::int FROM receiptd.campaign_tally WHERE kind = '{kind}' AND {where}")


def events_of(world):
    return {s: int(n) for s, n in world.database.query("SELECT status, sum(events) FROM receiptd.campaign_funnel GROUP BY 1") if n}


@pytest.mark.parametrize("unknown", ("park", "insert"))
def test_copies_of_receipts_count_once_through_kills(create_world, unknown):
    world = create_world(unknown=unknown, **ON)
    rng = random.Random(5)
    ids = [f"m{n}" for n in range(2_000)]
    now = world.database.value("SELECT (extract(epoch FROM now()) * 1000)::int8")
    distinct = [{"message_id": id, "status": status, "at": now - rng.randrange(3_600_000), "gateway": rng.choice(("twilio", "kannel")), "campaign_id": "c",
                 "org_id": "o", **({"event_id": f"e{n}"} if n % 2 else {}), **({"reason_class": "blocked"} if status == "FAILED" else {})}
                for n, (id, status) in enumerate((id, status) for id in ids for status in ("SENT", rng.choice(("DELIVERED", "FAILED"))))]
    copies = distinct + [event for event in distinct for _ in range(rng.randrange(3))]
    rng.shuffle(copies)
    records = [Outgoing(n % 8, None, json.dumps(copies[at:at + 50]).encode(), [], now) for n, at in enumerate(range(0, len(copies), 50))]
    if unknown == "park":
        world.insert_ids(*ids[:1500])
    process = world.produce_over_kills(records[part:part + 40] for part in range(0, len(records), 40))
    if unknown == "park":
        world.insert_ids(*ids[1500:])
    world.wait_until_consumed(process)
    world.wait(lambda: world.database.value("SELECT count(*) FROM receiptd.parked_event") == 0, process, 60, "nothing is parked")
    of = {code: sum(e["status"] == name for e in distinct) for code, name in ((300, "SENT"), (600, "DELIVERED"), (440, "FAILED"))}
    assert events_of(world) == of
    assert sum_of(world, "duplicate") == len(copies) - len(distinct) == sum_of(world, "gateway_duplicate")
    assert sum_of(world, "hour") == len(distinct) == sum_of(world, "gateway")
    assert sum_of(world, "reason", "key = 'blocked' AND status = 440") == of[440]
    shown = {row["gateway"]: row for row in json.loads(world.installation.command("gateways", "--format", "json").stdout)}
    assert sum(int(row["receipts"]) for row in shown.values()) == len(distinct) and set(shown) == {"twilio", "kannel"}
    times = {row[0]: row[1:] for row in world.database.query("SELECT gateway, deliver_p50_ms, deliver_p99_ms FROM receiptd.gateway_time")}
    assert times == {name: (row["deliver_p50_ms"], row["deliver_p99_ms"]) for name, row in shown.items()} and times["twilio"][1] > 0
    hourly = json.loads(world.installation.command("gateways", "--hourly", "--format", "json").stdout)
    assert {row["deliver_p99_ms"] for row in hourly} == {None}
    assert all(0.5 < float(row["coverage"]) <= 1 and float(row["delay_p99_ms"]) > 60_000 for row in shown.values())
    (blocked,) = json.loads(world.installation.command("funnel", "c", "--by", "reason", "--format", "json").stdout)["keys"]
    assert (blocked["key"], blocked["statuses"][0]["events"]) == ("blocked", of[440])
    by_hour = json.loads(world.installation.command("funnel", "c", "--by", "hour", "--format", "json").stdout)["keys"]
    assert sum(s["messages"] for hour in by_hour for s in hour["statuses"] if s["name"] == "SENT") == len(ids)
    assert "events by duplicate" in world.installation.command("funnel", "c", "--by", "duplicate").stdout
    shown = json.loads(world.installation.command("funnel", "c", "--format", "json").stdout)
    assert sum(s["duplicates"] for s in shown["statuses"]) == len(copies) - len(distinct)
    header, *lines = world.installation.command("funnel", "c", "--format", "csv").stdout.splitlines()
    assert header.endswith(",org_id,duplicates") and sum(int(line.rsplit(",", 1)[1]) for line in lines) == len(copies) - len(distinct)
    assert world.installation.command("funnel", "c").stdout.splitlines()[2].split()[-1] == "duplicates"
    timed = json.loads(world.installation.command("funnel", "c", "--by", "time_to_deliver", "--format", "json").stdout)
    assert sum(s["messages"] for bucket in timed["keys"] for s in bucket["statuses"]) == of[600]
    assert {"p50_ms", "p90_ms", "p99_ms"} < set(timed)
    assert "p99: " in world.installation.command("funnel", "c", "--by", "time_to_deliver").stdout
    assert world.installation.command("audit").stdout.endswith(", 0 cells drift\n")
    process.stop()


def test_maintain_makes_the_partitions_of_remembered_receipts_ahead(create_world):
    world = create_world(partitions=1, lanes=1, dedup={"window": "24h"}, postgres={"connections": 1})
    world.insert_ids("m")
    assert "remembered receipts: 8 partitions made, 0 dropped" in world.installation.command("maintain").stdout
    assert "remembered receipts" not in world.installation.command("maintain").stdout
    process = world.installation.start()
    for _ in range(2):
        world.topic.send({"message_id": "m", "status": "SENT", "event_id": "e", "at": world.database.value("SELECT (extract(epoch FROM date_trunc('day', now(), 'UTC')) * 1000)::int8")})
        world.wait_until_consumed(process)
    process.stop()
    assert world.database.value("SELECT count(*) FROM receiptd.receipt_counted") == 1
    assert world.database.value("SELECT count(*) FROM receiptd.receipt_counted_other") == 0
    assert events_of(world) == {300: 1}


def test_hours_add_up_to_the_funnel_and_after_their_retention_to_what_the_kept_ones_changed(create_world):
    """Sent and delivered 50 h ago, returned 1 h ago: all hours are the funnel. Without those older than 48 h DELIVERED is one less than none, and its event has gone."""
    world = create_world(partitions=1, counters={"series": "48h", "rollup_interval": "50ms"})
    now = world.database.value("SELECT (extract(epoch FROM now()) * 1000)::int8")
    world.insert_ids("m")
    process = world.installation.start()
    for status, hours in (("SENT", 50), ("DELIVERED", 50), ("BOUNCED_HARD_EMAIL", 1)):
        world.topic.send({"message_id": "m", "status": status, "at": now - hours * 3_600_000})
        world.wait_until_consumed(process)
    world.wait(lambda: world.database.value("SELECT count(*) FROM receiptd.counter_delta") == 0, process, what="rolled up")

    def sums(source):
        return {status: (messages, events) for status, messages, events in world.database.query(
            f"SELECT status, sum(messages)::int, sum(events)::int FROM receiptd.{source} AND status <> 0 GROUP BY 1 HAVING sum(messages) <> 0 OR sum(events) <> 0")}

    funnel = {200: (1, 0), 300: (1, 1), 600: (0, 1), 650: (1, 1)}
    text = (ROOT / "sql/control/tally_trim.sql").read_text().replace("$1::int8", str(48 * 3_600_000)).replace("$2::int8", "0").replace("$3::int4", "1000").rstrip("; \n")
    assert sums("campaign_funnel WHERE true") == funnel == sums("campaign_tally WHERE kind = 'hour'")
    world.database.execute(f"SET search_path = receiptd; {text}")
    assert sums("campaign_funnel WHERE true") == funnel
    assert sums("campaign_tally WHERE kind = 'hour'") == {600: (-1, 0), 650: (1, 1)}
    process.stop()
