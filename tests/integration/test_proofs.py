"""receiptd maintain recounts campaigns: a hundredth of the clock, each within a day, and what it finds is seen."""
import json

import pytest

from support.operations import Operations
from support.wait import wait_for


@pytest.fixture
def world(create_world):
    world = create_world(partitions=1, http={"listen": "127.0.0.1:0"})
    world.database.execute("INSERT INTO receiptd.message_inbox (message_id, org_id, campaign_id)"
                           " SELECT 'm' || i, 'o', 'c' || i FROM generate_series(1, 10000) i")
    return world


def pass_time(world, hours):
    """As if every recount lay that much further back."""
    world.database.execute("UPDATE receiptd.maintained SET ended_at = ended_at - %s * interval '1 hour' WHERE task = 'proof'", hours)
    world.database.execute("UPDATE receiptd.campaign_proof SET proven_at = proven_at - %s * interval '1 hour'", hours)


def maintain(world):
    return world.installation.command("maintain").stdout


def proofs(world):
    return world.database.query("SELECT count(*)::int, (count(*) FILTER (WHERE drift > 0))::int, (count(*) FILTER (WHERE proven_at > now() - interval '10 minutes'))::int"
                                " FROM receiptd.campaign_proof")[0]


def test_a_planted_difference_in_one_of_ten_thousand_campaigns_is_found(world):
    assert "counters:" not in maintain(world)
    assert proofs(world) == (10_000, 0, 10_000)
    page = Operations(world.installation.start())
    page.wait_for_figure("receiptd_campaigns_drifting", lambda n: n == 0, 60)
    plant = "UPDATE receiptd.campaign_funnel_total SET messages = messages + 1 WHERE campaign_id = 'c4711' AND status = 0 RETURNING 1"
    wait_for(lambda: world.database.query(plant), 60, "the campaign is rolled up")
    pass_time(world, 21)
    assert "c4711" not in maintain(world), "not yet a day"
    pass_time(world, 2)
    said = maintain(world)
    assert "c4711" in said and "receiptd audit --repair" in said
    assert proofs(world) == (10_000, 1, 10_000)
    page.wait_for_figure("receiptd_campaigns_drifting", lambda n: n == 1, 60)
    explained = json.loads(world.installation.command("explain", "m4711", "--format", "json").stdout)["message"]["proven"]
    assert explained.endswith("Z, 1 cells were off")
    assert json.loads(world.installation.command("explain", "m1", "--format", "json").stdout)["message"]["proven"].endswith("Z")
    assert "recounted" in world.installation.command("explain", "m1").stdout
    world.installation.command("audit", "--repair")
    pass_time(world, 1)
    assert "c4711" not in maintain(world)
    assert proofs(world)[:2] == (10_000, 0), "a campaign that was off is recounted at each run"
    page.wait_for_figure("receiptd_campaigns_drifting", lambda n: n == 0, 60)


def test_recounts_take_a_hundredth_of_the_clock(world):
    maintain(world)
    spent = world.database.value("SELECT (extract(epoch FROM ended_at - (now() - interval '1 hour')) * 10)::int FROM receiptd.maintained WHERE task = 'proof'")
    assert 0 < spent <= 36_000, "milliseconds"
    pass_time(world, 23)
    world.database.execute("UPDATE receiptd.maintained SET ended_at = now() + interval '1 second' WHERE task = 'proof'")
    maintain(world)
    assert proofs(world)[2] == 0, "all is spent"
    world.database.execute("UPDATE receiptd.maintained SET ended_at = now() - interval '1 second' WHERE task = 'proof'")
    maintain(world)
    assert proofs(world)[2] == 10_000, "what is begun is ended"
    assert world.database.value("SELECT ended_at > now() FROM receiptd.maintained WHERE task = 'proof'"), "and is paid for later"


def test_a_campaign_that_is_gone_is_forgotten(world):
    maintain(world)
    world.database.execute("INSERT INTO receiptd.campaign_proof VALUES ('gone', now() - interval '31 days', 1)")
    pass_time(world, 23)
    maintain(world)
    assert proofs(world)[:2] == (10_000, 0)
