"""Caps from end to end: who may begin how many runs, by all doors and over crashes; how often a person is called."""

import collections
import json

import pytest

from oracle.ledger import Row
from support.operations import Operations
from test_actions import API, LONG, RUNS_TOKEN, create_actions, receipt, receiver, runs, wait_for_runs  # noqa: F401

OPEN = "SELECT COALESCE(max(n), 0) FROM (SELECT count(*)::int AS n FROM receiptd.run WHERE status = 'active' GROUP BY org_id) o"


def begin(process, body):
    answer = Operations(process, token=RUNS_TOKEN).ask("/runs/p", json.dumps(body).encode())
    return answer.status, json.loads(answer.text), answer.headers.get("Retry-After")


def people(*names, org="acme"):
    return [{"subject": name, "org_id": org} for name in names]


@pytest.mark.parametrize("mode", ["refuse", "drop", "defer"])
def test_requests_and_imports_keep_to_the_cap_of_their_organisation(create_actions, receiver, tmp_path, mode):
    world = create_actions(API, {"open_runs": 2, "beyond_open_runs": mode}, http={"runs_token": RUNS_TOKEN})
    world.installation.command("ctl", "pipeline", "pause", "p")
    process = world.installation.start()
    process.wait_for_log("pipelines are in effect", LONG)
    assert begin(process, people("a")) == (200, {"taken": 1, "began": 1}, None)
    expected = {"refuse": (429, {"org_id": "acme", "cap": 2, "open": 1, "beyond": 1}, "30"),
                "drop": (200, {"taken": 2, "began": 1, "dropped": 1}, None),
                "defer": (200, {"taken": 2, "began": 1, "waiting": 1}, None)}
    assert begin(process, people("b", "c")) == expected[mode]

    file = tmp_path / "people.csv"
    file.write_text("subject,plan\nd,x\ne,y\nf,z\n")
    done = world.installation.command("actions", "import", str(file), "--pipeline", "p", "--org", "acme", check=False)
    said = {"refuse": "0 lines read, 0 runs began\n", "drop": "3 lines read, 0 runs began, 3 were dropped\n",
            "defer": "3 lines read, 0 runs began, 3 wait for room\n"}
    assert (done.returncode, done.stdout) == (75 if mode == "refuse" else 0, said[mode])
    if mode == "refuse":
        assert "are beyond the cap of open runs" in done.stderr and '"org_id" : "acme"' in done.stderr
    totals = {"refuse": {"active": 1}, "drop": {"active": 2}, "defer": {"active": 2, "waiting": 4}}[mode]
    assert runs(world) == totals

    figure = "receiptd_pipeline_beyond_cap_total"
    count = {"refuse": ("refused", 5), "drop": ("dropped", 4), "defer": ("deferred", 4)}[mode]
    pages = Operations(process)
    pages.wait_for_figure(figure, lambda n: n == count[1], LONG, pipeline="p", outcome=count[0])
    if mode == "defer":
        because = collections.Counter(a["because"] for a in world.installation.json("actions", "list"))
        assert because == {"the pipeline is paused": 6}
    world.installation.command("ctl", "org", "set", "acme", "--open-runs", "1")
    (acme,) = world.installation.json("ctl", "org", "list")
    assert (acme["org_id"], acme["open_runs"], acme["open"], acme["waiting"]) == ("acme", 1, totals["active"], totals.get("waiting", 0))
    refused = world.installation.command("ctl", "org", "set", "*", "--open-runs", "1", check=False)
    assert refused.returncode == 64 and "--open-runs is the cap of one organisation" in refused.stderr
    world.installation.command("ctl", "pipeline", "resume", "p")
    wait_for_runs(world, process, {"done": sum(totals.values())})
    assert [c.subject for c in receiver.seen()][:2] in ([["acme/a", "acme/b"], ["acme/b", "acme/a"]] if mode != "refuse" else [["acme/a"]])
    process.stop()


def most_at_once(calls, org):
    """Runs of an organisation that were open at once, as the receiver saw them: from their first call to their last."""
    spans = collections.defaultdict(list)
    for call in calls:
        if call.body["org_id"] == org:
            spans[call.body["run_id"]].append(call)
    edges = sorted([(min(c.began for c in some), 1) for some in spans.values()]
                   + [(max(c.ended or c.began for c in some), -1) for some in spans.values()])
    most = now = 0
    for _, change in edges:
        now += change
        most = max(most, now)
    return most


def test_no_organisation_is_above_its_cap_over_two_instances_and_crashes(create_actions, create_topic, receiver, tmp_path):
    source, cap, count = create_topic(2), 4, 40
    receiver.answer = lambda call: (200, {}, 0.02)
    twice = [{"name": "s", "actions": [{"webhook": "crm"}, {"webhook": "crm"}]}]
    world = create_actions([{"name": "p", "on": "SENT", "stages": twice}, {"name": "t", "on": {"topic": str(source)}, "stages": twice},
                            {"name": "i", "on": "api", "once_per": ["subject"], "stages": twice}],
                           {"open_runs": cap, "beyond_open_runs": "defer", "lease": "3s",
                            "endpoints": [{"name": "crm", "url": receiver.url, "timeout": "1s"}]})
    world.insert({f"m{n}": Row("ab"[n % 2], "c") for n in range(count)})
    names = iter("abcdef")
    processes = [world.installation.start(next(names)) for _ in range(2)]
    for process in processes:
        process.wait_for_log("pipelines are in effect", LONG)
    world.topic.send(*[receipt(f"m{n}", "SENT") for n in range(count)])
    source.send(*[{"subject": f"t{n}", "org_id": "ab"[n % 2]} for n in range(count)])
    file = tmp_path / "people.csv"
    file.write_text("subject,org_id\n" + "".join(f"i{n},{'ab'[n % 2]}\n" for n in range(count)))
    for _ in range(2):
        world.installation.command("actions", "import", str(file), "--pipeline", "i")
    most = []

    def reached(calls):
        most.append(world.database.value(OPEN))
        return len(receiver.seen()) >= calls or runs(world) == {"done": 3 * count}

    for turn in range(3):
        world.wait(lambda: reached((turn + 1) * count), None, 2 * LONG, "some calls are made", details=lambda: str(runs(world)))
        processes.pop(0).kill()
        processes.append(world.installation.start(next(names)))
    world.wait(lambda: reached(10 ** 9), None, 3 * LONG, "all runs end", details=lambda: str(runs(world)))
    for process in processes:
        process.stop()
    assert max(most) == cap
    # A call that a killed process had begun may end at the receiver when the run goes on elsewhere.
    assert all(most_at_once(receiver.seen(), org) <= cap for org in "ab")
    assert len({c.id for c in receiver.seen()}) == 6 * count


def test_no_person_is_called_more_often_than_the_cap_over_pipelines_instances_and_crashes(create_actions, receiver):
    """Failed calls do not count; what is beyond passes on, and a call that is no message is made all the same."""
    cap, people_count = 3, 12
    receiver.answer = lambda call: (503 if call.attempt == 1 and call.body["run_id"] % 3 == 0 else 200, {}, 0.01)
    world = create_actions([{"name": name, "on": {"status": status}, "subject": "campaign_id", "stages": [
        {"name": "s", "actions": [{"webhook": "crm"}, {"webhook": "crm"}, {"webhook": "crm", "capped": False}]}]}
        for name, status in (("p", "SENT"), ("q", "DELIVERED"))],
        {"subject_caps": [{"max": cap, "per": "day"}], "beyond_subject_cap": "pass", "zone": "Pacific/Kiritimati", "lease": "3s",
         "breaker_failures": 10_000, "endpoints": [{"name": "crm", "url": receiver.url, "timeout": "1s"}]})
    if world.database.value("SELECT extract(hour FROM now() AT TIME ZONE 'Pacific/Kiritimati')::int") == 23:
        world.installation.configure(actions={"zone": "UTC"})  # the day does not end while the test runs
    world.insert({f"m{n}": Row("o", f"person{n % people_count}") for n in range(2 * people_count)})
    names = iter("abcdef")
    processes = [world.installation.start(next(names)) for _ in range(2)]
    world.topic.send(*[receipt(f"m{n}", "DELIVERED") for n in range(2 * people_count)])
    for turn in range(2):
        world.wait(lambda: len(receiver.seen()) >= (turn + 1) * people_count, None, LONG, "some calls are made")
        processes.pop(0).kill()
        processes.append(world.installation.start(next(names)))
    wait_for_runs(world, None, {"done": 4 * people_count}, 3 * LONG)
    for process in processes:
        process.stop()
    calls = [c for c in receiver.seen() if c.status == 200]
    free = {i for i, in world.database.query("SELECT a.id FROM receiptd.action a JOIN receiptd.pipeline_step s USING (pipeline_id, step)"
                                             " WHERE NOT s.capped")}
    reached = collections.Counter(subject for subject, id in {(c.subject, c.body["action_id"]) for c in calls} if id not in free)
    assert reached == {f"o/person{n}": cap for n in range(people_count)}
    assert len(free) == 4 * people_count and free <= {c.body["action_id"] for c in calls}
    assert world.database.value("SELECT sum(capped)::int FROM receiptd.pipeline_count") == (8 - cap) * people_count
