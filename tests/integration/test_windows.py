"""Calls begin inside of their windows, over kills and locks, and runs enter at a stage by every door."""

import json
import time

from support.operations import Operations
from test_actions import API, LONG, RUNS_TOKEN, SCRAPE_TOKEN, create_actions, receiver, states, wait_for_runs  # noqa: F401


def clock(at):
    return time.strftime("%H:%M:%S", time.gmtime(at))


def arrivals(receiver):
    """Wall-clock times of the calls."""
    ahead = time.time() - time.monotonic()
    return [call.began + ahead for call in receiver.seen()]


def test_no_call_arrives_outside_of_its_window_over_kills_and_nobody_is_forgotten(create_actions, receiver):
    count, opens = 3000, int(time.time()) + 15
    closes = opens + 14
    receiver.answer = lambda call: (503 if call.attempt == 1 and call.token % 3 == 0 else 200, {}, 0.1)
    world = create_actions([{"name": "p", "on": "api", "once_per": ["subject"], "webhook": "crm",
                             "between": {"hours": f"{clock(opens)}-{clock(closes)}", "smooth": "4s"}}],
                           {"lease": "3s", "max_in_flight": 4, "endpoints": [{"name": "crm", "url": receiver.url, "timeout": "1s"}]})
    processes = [world.installation.start(name) for name in "ab"]
    file = world.installation.directory / "people.csv"
    file.write_text("subject\n" + "".join(f"person{n}\n" for n in range(count)))
    world.installation.command("actions", "import", str(file), "--pipeline", "p")
    waiting = "SELECT count(*) FROM receiptd.action WHERE status = 'pending' AND held_by = 'window' AND perform_at > now()"
    world.wait(lambda: world.database.value(waiting) == count, None, LONG, "all wait for the opening")
    assert time.time() < opens and receiver.seen() == []
    for turn, name in enumerate("cd"):
        world.wait(lambda: len(receiver.seen()) > 60 * (turn + 1), None, LONG, "some calls are made")
        processes[turn].kill()
        processes.append(world.installation.start(name))
    world.wait(lambda: time.time() > closes + 1 and world.database.value(waiting) + world.database.value(
        "SELECT count(*) FROM receiptd.action WHERE status = 'done'") == count, None, LONG, "the window has closed on the rest", details=lambda: str(states(world)))
    calls = arrivals(receiver)
    assert opens <= min(calls) and max(calls) < closes
    assert world.database.value(waiting) > 0
    # A day later, as it were: everybody has their turn.
    world.database.execute("UPDATE receiptd.pipeline_step SET from_second = 0, till_second = 86400 WHERE from_second IS NOT NULL")
    world.database.execute("UPDATE receiptd.action SET perform_at = now() WHERE held_by = 'window'")
    receiver.answer = lambda call: (200, {}, 0)
    wait_for_runs(world, None, {"done": count}, 2 * LONG)
    assert len({call.subject for call in receiver.seen()}) == count
    receiver.assert_tokens_grow()
    for process in processes:
        if process.running:
            process.stop()


def test_a_claim_that_took_until_after_the_closing_calls_nobody(create_actions, receiver):
    """The round begins while the window is open, waits for a lock, and ends when it has closed."""
    closes = int(time.time()) + 15
    world = create_actions([{"name": "p", "on": "api", "webhook": "crm", "between": f"{clock(closes - 3600)}-{clock(closes)}"}],
                           {"lease": "60s", "lane_lease": "60s"}, postgres={"lock_timeout": "60s"}, http={"token": SCRAPE_TOKEN, "runs_token": RUNS_TOKEN})
    process = world.installation.start()
    process.wait_for_log("pipelines are in effect", LONG)
    world.wait(lambda: world.database.value("SELECT count(owner) FROM receiptd.action_lane") == 16, process, LONG, "it owns all shards")
    with world.database.connect() as holder:
        holder.execute("BEGIN")
        holder.execute("SELECT FROM receiptd.action_lane FOR UPDATE")
        Operations(process, token=RUNS_TOKEN).ask("/runs/p", b'{"subject": "ann"}')
        claims = ("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%actions_claim%'")
        world.wait(lambda: world.database.value(claims) == 1, process, LONG, "the claim waits")
        assert time.time() < closes - 2
        world.wait(lambda: time.time() > closes, process, LONG, "the window closes")
    postponed = [("pending", "window", 0)]
    state = "SELECT status, held_by, attempt FROM receiptd.action"
    world.wait(lambda: world.database.query(state) == postponed, process, LONG, "it waits for the next opening", details=lambda: str(world.database.query(state)))
    assert world.database.value("SELECT token FROM receiptd.action") is not None  # it had been claimed
    assert receiver.seen() == []
    process.stop()


def test_a_zone_that_nobody_knows_is_refused(create_actions):
    world = create_actions(API, {"zone": "Mars/Base"})
    check = world.installation.command("check-config", "--connect", check=False)
    assert check.returncode == 78 and "actions.zone: PostgreSQL knows no zone Mars/Base" in check.stderr
    process = world.installation.start()
    assert process.wait() == 78 and "actions.zone: PostgreSQL knows no zone Mars/Base" in process.log()


def test_check_config_says_when_calls_begin(create_actions):
    world = create_actions([{"name": "p", "between": "09:00-20:00", "stages": [{"name": "s", "actions": [
        {"webhook": "crm"}, {"webhook": "crm", "between": {"hours": "22:00-06:00", "days": ["fri", "sat"], "smooth": "30m", "hour_field": "best"}}]}]}],
        {"zone": "Europe/Berlin", "zone_field": "time_zone"})
    notes = world.installation.command("check-config").stderr
    assert "note: pipelines.p.between: calls of crm begin 09:00:00-20:00:00 in the zone time_zone or Europe/Berlin, spread over 0 s\n" in notes
    assert ("note: pipelines.p.between: calls of crm begin 22:00:00-06:00:00 fri sat in the zone time_zone or Europe/Berlin, "
            "not before the hour in best, spread over 1800 s\n") in notes


# ---- enter at a stage ----

STAGES = [{"name": "s", "on": "api", "once_per": ["subject"], "stages": [
    {"name": "first", "actions": [{"wait": "1d"}, {"webhook": "crm"}, {"move": "second"}]},
    {"name": "second", "actions": [{"webhook": "crm"}, {"move": "the end"}]},
    {"name": "the end", "actions": [{"wait": "2h"}, {"produce": "elsewhere"}]}]}]
FAULT = "pipeline s has no stage {}: it has first, second, the end"


def entered(world):
    return dict(world.database.query("SELECT r.subject, s.stage || CASE WHEN a.perform_at > now() + interval '1 minute' THEN ' later' ELSE '' END"
                                     " FROM receiptd.run r JOIN receiptd.action a ON a.run_id = r.id JOIN receiptd.pipeline_step s"
                                     " ON s.pipeline_id = a.pipeline_id AND s.step = a.step WHERE a.attempt = 0 OR s.stage = 'second'"))


def test_runs_enter_at_a_stage_by_request_import_and_topic(create_actions, create_topic, receiver):
    source = create_topic(1)
    pipelines = [STAGES[0] | {"on": {"topic": str(source), "match": {"org": "a"}}},
                 {"name": "other", "on": {"topic": str(source), "match": {"org": "b"}}, "stages": [{"name": "own", "actions": [{"webhook": "crm"}]}]}]
    world = create_actions(pipelines, http={"token": SCRAPE_TOKEN, "runs_token": RUNS_TOKEN})
    world.database.execute("INSERT INTO receiptd.pipeline_pause (name) VALUES ('s')")  # nobody goes on
    process = world.installation.start()
    process.wait_for_log("actions: assigned 1 partitions", LONG)

    def begin(path, body):
        answer = Operations(process, token=RUNS_TOKEN).ask(path, json.dumps(body).encode())
        return answer.status, answer.text.strip()

    one = (200, '{"taken":1,"began":1}')
    assert begin("/runs/s", {"subject": "a1"}) == begin("/runs/s?stage=second", {"subject": "a2"}) == one
    assert begin("/runs/s?stage=the%20end", [{"subject": "a3"}, {"subject": "a4", "stage": "second"}]) == (200, '{"taken":2,"began":2}')
    assert begin("/runs/s?stage=the+end", {"subject": "a5", "stage": None}) == one
    assert begin("/runs/s?stage=second", {"subject": "a1"}) == (200, '{"taken":1,"began":0}')  # once_per holds over stages
    assert begin("/runs/s?stage=third", {"subject": "no"}) == begin("/runs/s", [{"subject": "n"}, {"subject": "no", "stage": "third"}]) == (400, FAULT.format("third"))
    for query in ("stge=second", "stage=", "stage=second&x=1", "stage=%zz", "stage=%ff", "stage=" + "x" * 300):
        assert begin(f"/runs/s?{query}", {"subject": "no"})[0] == 400, query
    assert begin("/runs/other?stage=second", {"subject": "no"}) == (400, "pipeline other has no stage second: it has own")

    file = world.installation.directory / "people.csv"
    file.write_text("subject,stage,plan\nb1,,x\nb2,first,x\nb3,second,x\n")
    done = world.installation.command("actions", "import", str(file), "--pipeline", "s", "--stage", "the end")
    assert done.stdout == "3 lines read, 3 runs began\n" and "data" not in done.stderr
    file.write_text("subject,stage\nb9,\nb8,third\n")
    refused = world.installation.command("actions", "import", str(file), "--pipeline", "s", check=False)
    assert refused.returncode != 0 and FAULT.format("third") in refused.stderr

    source.send(*[{"org_id": "a"} | one for one in (
        {"subject": "c1"}, {"subject": "c2", "stage": "second", "plan": "x"}, {"subject": "c3", "stage": "third"}, {"subject": "c4", "stage": ""})],
                {"subject": "c5", "org_id": "b", "stage": "own"}, {"subject": "c6", "org_id": "b", "stage": "second"},
                {"subject": "c7", "org_id": "a", "stage": {"name": "second"}})
    letters = "SELECT detail FROM receiptd.dead_letter WHERE reason = 'not_a_run' ORDER BY \"offset\""
    expected = [(FAULT.format("third"),), ("pipeline other has no stage second: it has own",), (FAULT.format('{"name": "second"}'),)]
    world.wait(lambda: world.database.query(letters) == expected, process, LONG, "three are dead letters", details=lambda: str(world.database.query(letters)))
    first, later = "first later", "the end later"
    assert {name: stage for name, stage in entered(world).items() if stage != "own"} == {
        "a1": first, "a2": "second", "a3": later, "a4": "second", "a5": later, "b1": later, "b2": first, "b3": "second",
        "c1": first, "c2": "second", "c4": first}
    assert world.database.query("SELECT data FROM receiptd.run WHERE subject = 'c2'") == [({"plan": "x"},)]
    world.wait(lambda: [c.subject for c in receiver.seen()] == ["b/c5"], process, LONG, "the other pipeline's run is over")
    world.installation.command("ctl", "pipeline", "resume", "s")
    world.wait(lambda: sorted(c.body["subject"] for c in receiver.seen() if c.body["pipeline"] == "s") == ["a2", "a4", "b3", "c2"], process, LONG, "they go on")
    process.stop()
