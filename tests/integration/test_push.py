"""Pushes end to end: a list is split, the better mail decided, and the rest gets it: nobody twice, nobody forgotten."""

import random
import threading

import pytest

from support import pushes
from support.pushes import PUSH, import_list, members, pipeline, reached, row, split, waiting
from test_actions import create_actions, receipt, receiver, runs, wait_for_runs  # noqa: F401

LONG = 60.0
MACHINES = {"opens": "flag", "clicks": "flag"}
CLICKS = {"kpi": "clicked_per_delivered", "campaign": "c"}


def bring_forward(world, column):
    """The hour is over: as if it had begun an hour ago."""
    world.database.execute(f"UPDATE receiptd.push SET {column} = now()")


def wait_until(world, process, condition, what):
    world.wait(condition, process, LONG, what, details=lambda: f"{row(world.database)} {runs(world)}")


def gathered(world, count):
    return lambda: world.database.value("SELECT count(*) FROM receiptd.action WHERE held_by = %s", f"deal:{PUSH}") == count


@pytest.mark.parametrize("seed", (1, 2))
def test_a_list_is_split_and_decided_over_kills_nobody_twice_nobody_forgotten(create_actions, receiver, tmp_path, seed):
    """The published scenario, a fiftieth of it: two pipelines get lists that overlap, and the platform sends to some itself."""
    chance = random.Random(seed)
    receiver.answer = lambda call: (503, {}, 0) if chance.random() < 0.05 else (200, {}, chance.random() / 50)
    action = split({"mail-a": 200, "mail-b": 200}, gather="1h")
    world = create_actions([pipeline("first", action), pipeline("second", action)],
                           {"lease": "2s", "lane_lease": "1s", "max_in_flight": 32, "max_attempts": 1000, "breaker_failures": 1000,
                            "endpoints": [{"name": "crm", "url": receiver.url, "timeout": "700ms"}]})
    subjects = [f"person{n}" for n in range(2100)]
    own = set(subjects[2000:])
    processes = [world.installation.start(name) for name in "ab"]
    for process in processes:
        process.wait_for_log("pipelines are in effect", LONG)
    names = iter(range(100))

    def kill():
        index = chance.randrange(2)
        processes[index].kill()
        processes[index] = world.installation.start(str(next(names)))

    # The platform claims its hundred before the lists come, and tries everybody afterwards.
    claim = "SELECT count(*) FILTER (WHERE receiptd.claim_push(%s, s)) FROM unnest(%s::text[]) s"
    assert world.database.value(claim, PUSH, sorted(own)) == 100
    first, second = subjects[:1300], subjects[900:]
    threads = [threading.Thread(target=import_list, args=(world.installation, pushes.write_list(tmp_path / f"{name}.csv", some), name))
               for name, some in (("first", first), ("second", second))]
    [thread.start() for thread in threads]
    kill()
    [thread.join(60) for thread in threads]
    wait_until(world, processes[0], gathered(world, 2000), "all gather")
    assert world.database.value(claim, PUSH, subjects) == 0
    assert receiver.seen() == []
    bring_forward(world, "deal_at")
    for count in (50, 200):
        wait_until(world, processes[0], lambda count=count: len(receiver.seen()) >= count, f"{count} are called")
        kill()
    wait_until(world, processes[0], lambda: runs(world).get("done") == 400 + 100 and waiting(world.database) == 1600, "the rest waits")
    dealt = members(world.database)
    assert {stage: len(group) for stage, group in dealt.items()} == {"mail-a": 200, "mail-b": 200}
    pushes.assert_nobody_twice_nobody_forgotten(receiver.seen(), subjects, dealt, None)
    kill()
    assert world.installation.command("push", "decide", PUSH, "mail-b", "--by", "ann").stdout == f"push {PUSH}: the remainder gets mail-b\n"
    for count in (500, 1000, 1500):
        wait_until(world, processes[0], lambda count=count: len(receiver.seen()) >= count, f"{count} are called")
        kill()
    wait_until(world, processes[0], lambda: runs(world) == {"done": 2100}, "all runs end")
    assert members(world.database) == dealt
    pushes.assert_nobody_twice_nobody_forgotten(receiver.seen(), set(subjects) - own, dealt, "mail-b")
    for process in processes:
        process.stop()


def test_the_rule_decides_by_receipts_and_not_by_machines(create_actions, receiver, tmp_path):
    action = split({"mail-a": 20, "mail-b": 20}, gather="1h", **CLICKS)
    world = create_actions([pipeline("p", action)], counters={"by": ["variant"], "rollup_interval": "1h"}, machine=MACHINES)
    process = world.installation.start()
    import_list(world.installation, pushes.write_list(tmp_path / "list.csv", [f"s{n}" for n in range(100)]), "p")
    wait_until(world, process, gathered(world, 100), "all gather")
    bring_forward(world, "deal_at")
    wait_until(world, process, lambda: runs(world).get("done") == 40 and waiting(world.database) == 60, "the rest waits")
    dealt = members(world.database)
    # The platform's sender, told by the webhook: a message for each, with the variant in its row.
    world.database.execute("INSERT INTO receiptd.message_inbox (message_id, org_id, campaign_id, variant) SELECT 'm-' || s, 'acme', 'c', v"
                           " FROM unnest(%s::text[], %s::text[]) AS w (s, v)", [s for group in dealt.values() for s in group],
                           [stage for stage, group in dealt.items() for _ in group])
    a, b = sorted(dealt["mail-a"]), sorted(dealt["mail-b"])
    world.topic.send(*[receipt(f"m-{s}", "DELIVERED") for s in (*a, *b)], *[receipt(f"m-{s}", "CLICKED") for s in (*a[:6], *b[:5])],
                     *[receipt(f"m-{s}", "CLICKED", flags=["BOT_CLICK"]) for s in b[5:]])
    world.wait_until_consumed(process)
    assert row(world.database)["decided_at"] is None
    bring_forward(world, "decide_at")
    wait_for_runs(world, process, {"done": 100})
    decided = row(world.database)
    assert (decided["winner"], decided["decided_by"]) == ("mail-a", "rule")
    assert decided["figures"] == [{"stage": "mail-a", "numerator": 6, "denominator": 20}, {"stage": "mail-b", "numerator": 5, "denominator": 20}]
    pushes.assert_nobody_twice_nobody_forgotten(receiver.seen(), [f"s{n}" for n in range(100)], dealt, "mail-a")
    shown = {one["stage"]: one for one in world.installation.json("push", "show", PUSH)}
    assert shown["mail-a"] == {"stage": "mail-a", "part": "20", "dealt": 20, "waiting": None, "numerator": 6, "denominator": 20, "rate": 0.3,
                               "then_numerator": 6, "then_denominator": 20, "wins": "rule"}
    assert shown["remainder"]["waiting"] == 0
    process.stop()


def test_shares_gather_nobody_and_the_timer_decides(create_actions, receiver, tmp_path):
    """With nothing brought forward: the clock alone."""
    world = create_actions([pipeline("p", split({"mail-a": "20%", "mail-b": "20%"}, after="2s", otherwise="mail-b"))])
    process = world.installation.start()
    subjects = [f"s{n}" for n in range(200)]
    import_list(world.installation, pushes.write_list(tmp_path / "list.csv", subjects), "p")
    wait_for_runs(world, process, {"done": 200})
    assert row(world.database)["decided_by"] == "otherwise"
    dealt = members(world.database)
    assert 60 <= sum(len(group) for group in dealt.values()) <= 100
    pushes.assert_nobody_twice_nobody_forgotten(receiver.seen(), subjects, dealt, "mail-b")
    import_list(world.installation, pushes.write_list(tmp_path / "late.csv", ["late", "s1"]), "p")
    wait_for_runs(world, process, {"done": 201})
    assert len(reached(receiver.seen())["late"]) == 1
    process.stop()


def test_sizes_are_dealt_and_decided_by_the_clock_alone(create_actions, receiver, tmp_path):
    world = create_actions([pipeline("p", split({"mail-a": 20, "mail-b": 20}, gather="2s", after="1s", otherwise="nobody"))])
    process = world.installation.start()
    import_list(world.installation, pushes.write_list(tmp_path / "list.csv", [f"s{n}" for n in range(100)]), "p")
    wait_for_runs(world, process, {"done": 40, "cancelled": 60})
    assert {stage: len(group) for stage, group in members(world.database).items()} == {"mail-a": 20, "mail-b": 20}
    process.stop()


def test_the_command_lists_shows_and_decides_once(create_actions, receiver, tmp_path):
    world = create_actions([pipeline("p", split({"mail-a": 5, "mail-b": 5}, gather="1h"))])
    command, process = world.installation.command, world.installation.start()
    process.wait_for_log("pipelines are in effect", LONG)
    assert [(one["push"], one["state"]) for one in world.installation.json("push")] == [(PUSH, "not begun")]
    import_list(world.installation, pushes.write_list(tmp_path / "list.csv", [f"s{n}" for n in range(30)]), "p")
    wait_until(world, process, gathered(world, 30), "all gather")
    assert "gathers until push spring is dealt" in command("actions", "list").stdout
    bring_forward(world, "deal_at")
    wait_until(world, process, lambda: waiting(world.database) == 20, "the rest waits")
    refused = command("push", "decide", PUSH, "mail-c", check=False)
    assert refused.returncode == 64 and 'push spring has no stage "mail-c"' in refused.stderr and "one of mail-a, mail-b, or nobody" in refused.stderr
    refused = command("push", "decide", "summer", "mail-a", check=False)
    assert refused.returncode == 66 and 'there is no push "summer"' in refused.stderr
    assert command("push", "show", "summer", check=False).returncode == 66
    command("push", "decide", PUSH, "nobody", "--by", "ann")
    refused = command("push", "decide", PUSH, "mail-a", check=False)
    assert refused.returncode == 1 and "push spring is decided: nobody by ann at 20" in refused.stderr
    (listed,) = world.installation.json("push", "list")
    assert (listed["state"], listed["winner"], listed["decided_by"]) == ("decided", "nobody", "ann")
    wait_for_runs(world, process, {"done": 10, "cancelled": 20})
    process.stop()


def test_check_config_says_over_what_once_per_counts(create_actions):
    world = create_actions([pipeline("p", split({"mail-a": 5}))])
    said = world.installation.command("check-config").stderr
    assert "note: pipelines.p.once_per: one run for each message_id, for ever, over all of push spring: pipelines and claim_push()" in said
