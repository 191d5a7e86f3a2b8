"""Pipelines from a receipt to the call of a webhook: what, when, how often, and never two of one person at once."""

import base64
import collections
import hashlib
import hmac
import json
import secrets
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from confluent_kafka.admin import ConfigResource

from oracle import broker
from oracle.ledger import Row
from support.failing import failing
from support.operations import Operations
from support.receiver import Http2Receiver, Receiver
from support.secure import Authority

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
SCRAPE_TOKEN, RUNS_TOKEN = "whoever-reads-the-figures", "whoever-begins-runs-has-this"
TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
LONG = 60.0  # limits are generous: other tests may be running


@pytest.fixture
def receiver():
    receiver = Receiver()
    yield receiver
    receiver.close()


@pytest.fixture
def create_actions(create_world, receiver):
    """create_actions(pipelines, actions={…}) gives a world whose endpoint `crm` is the receiver."""

    def create(pipelines, actions=None, events=None, **settings):
        endpoint = {"name": "crm", "url": receiver.url, "secrets": [SECRET], "timeout": "5s"}
        quick = {"allow_private": True, "endpoints": [endpoint], "poll_interval": "20ms", "lane_lease": "2s", "lease": "20s",
                 "retry_min": "10ms", "retry_max": "1s"}
        return create_world(events, partitions=2, actions=quick | (actions or {}), pipelines=pipelines, **settings)

    return create


def states(world):
    return dict(world.database.query("SELECT status, count(*) FROM receiptd.action GROUP BY status"))


def runs(world):
    return dict(world.database.query("SELECT status, count(*) FROM receiptd.run GROUP BY status"))


def overlaps(world):
    return world.database.value("SELECT count(*) FROM receiptd.action_overlap")


def wait_for_runs(world, process, expected, timeout=LONG):
    world.wait(lambda: runs(world) == expected, process, timeout, f"runs are {expected}",
               details=lambda: f"{runs(world)} {states(world)}")


def receipt(id, status, **extra):
    return {"message_id": id, "status": status, **extra}


def test_a_transition_calls_the_webhook_once_signed_and_with_what_is_known(create_actions, receiver):
    world = create_actions([{"name": "welcome", "on": "DELIVERED", "webhook": "crm"}])
    world.insert({"m": Row("acme", "spring"), "n": Row("acme", "spring")})
    process = world.installation.start()
    world.topic.send(receipt("m", "OPENED"), receipt("m", "DELIVERED"), receipt("n", "SENT"))
    world.wait_until_consumed(process)
    wait_for_runs(world, process, {"done": 1})
    world.topic.send(receipt("m", "CLICKED"), receipt("m", "DELIVERED"))
    world.wait_until_consumed(process)
    process.stop()
    (call,) = receiver.seen()
    assert call.body == {"type": "receiptd.action", "action_id": call.body["action_id"], "run_id": call.body["run_id"],
                         "pipeline": "welcome", "stage": "", "org_id": "acme", "campaign_id": "spring", "message_id": "m",
                         "subject": "m", "status": call.body["status"]}
    key = base64.b64decode(SECRET.removeprefix("whsec_"))
    signed = f"{call.id}.{call.headers['webhook-timestamp']}.".encode() + call.raw
    assert call.headers["webhook-signature"] == "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert "traceparent" not in call.headers and call.id == f"act_{call.body['action_id']}"
    assert overlaps(world) == 0


STAGES = [{"name": "ask", "actions": [{"webhook": "crm"},
                                      {"await": {"status": "OPENED", "within": "1h", "else": "remind"}},
                                      {"webhook": "crm", "unless": ["COMPLAINED"]}]},
          {"name": "remind", "actions": [{"webhook": "crm"}, {"move": "end"}]},
          {"name": "end", "actions": [{"webhook": "crm", "if": "CLICKED"}]}]


def test_a_wait_ends_by_the_transition_or_by_its_deadline_and_conditions_count_when_they_fire(create_actions, receiver):
    world = create_actions([{"name": "drip", "on": {"status": "SENT"}, "stages": STAGES}])
    world.insert({id: Row("o", "c") for id in ("opens", "complains", "never")})
    process = world.installation.start()
    world.topic.send(*[receipt(id, "SENT") for id in ("opens", "complains", "never")])
    awaiting = "SELECT count(*) FROM receiptd.action WHERE status = 'pending' AND awaits IS NOT NULL"
    world.wait(lambda: world.database.value(awaiting) == 3, process, LONG, "all wait")
    world.topic.send(receipt("complains", "COMPLAINED"), receipt("opens", "CLICKED"))
    world.topic.send(receipt("complains", "OPENED"))
    wait_for_runs(world, process, {"done": 2, "active": 1})
    assert sorted((c.body["message_id"], c.body["stage"]) for c in receiver.seen()) == [
        ("complains", "ask"), ("never", "ask"), ("opens", "ask"), ("opens", "ask")]
    world.database.execute("UPDATE receiptd.action SET perform_at = now() WHERE awaits IS NOT NULL AND status = 'pending'")
    wait_for_runs(world, process, {"done": 3})
    assert [c.body["stage"] for c in receiver.seen() if c.body["message_id"] == "never"] == ["ask", "remind"]
    process.stop()


def test_an_await_whose_condition_does_not_hold_is_passed_over_at_once_and_not_by_its_else(create_actions, receiver):
    world = create_actions([{"name": "p", "on": "SENT", "stages": [
        {"name": "ask", "actions": [
            {"await": {"status": "OPENED", "within": "1h", "else": "late"}, "unless": ["COMPLAINED"]},
            {"webhook": "crm"},
            {"await": {"flag": "REPLIED", "within": "1h", "else": "late"}, "if": "CLICKED"}]},
        {"name": "late", "actions": [{"webhook": "crm"}]}]}])
    world.insert_ids("complains", "complains later", "opens", "clicks", "never")
    process = world.installation.start()
    ids = ("complains later", "opens", "clicks", "never")
    world.topic.send(receipt("complains", "COMPLAINED"), *[receipt(id, "SENT") for id in ids])
    wait_for_runs(world, process, {"done": 1, "active": 4})  # who complains waits for nothing
    awaiting = "SELECT count(*) FROM receiptd.action WHERE status = 'pending' AND awaits = {}"
    world.wait(lambda: world.database.value(awaiting.format(700)) == 4, process, LONG, "the others wait")
    world.topic.send(receipt("complains later", "COMPLAINED"), receipt("opens", "OPENED"), receipt("clicks", "CLICKED"))
    wait_for_runs(world, process, {"done": 2, "active": 3})
    world.wait(lambda: world.database.value(awaiting.format(9004)) == 1, process, LONG, "who clicks is asked for more")
    world.database.execute("UPDATE receiptd.action SET perform_at = now() WHERE awaits IS NOT NULL AND status = 'pending'")
    wait_for_runs(world, process, {"done": 5})
    process.stop()
    calls = collections.defaultdict(list)
    for call in receiver.seen():
        calls[call.body["message_id"]].append(call.body["stage"])
    # The condition counts when an await begins: what comes while it lasts does not end it.
    assert calls == {"complains": ["ask"], "complains later": ["late"], "opens": ["ask"], "clicks": ["ask", "late"], "never": ["late"]}


def test_what_is_awaited_does_not_cut_the_wait_before_it_short(create_actions, receiver):
    world = create_actions([{"name": "p", "on": "SENT", "stages": [
        {"name": "a", "actions": [{"wait": "1h"}, {"await": {"status": "OPENED", "within": "1h", "else": "late"}}, {"webhook": "crm"}]},
        {"name": "late", "actions": [{"webhook": "crm"}]}]}])
    world.insert_ids("opens", "opens later")
    process = world.installation.start()
    world.topic.send(*[receipt(id, "SENT") for id in ("opens", "opens later")])
    wait_for_runs(world, process, {"active": 2})
    world.topic.send(receipt("opens", "OPENED"))
    world.wait_until_consumed(process)
    early = "SELECT count(*) FROM receiptd.action WHERE status = 'pending' AND awaits IS NULL AND perform_at > now() + interval '50 minutes'"
    assert world.database.value(early) == 2, "the hour has not passed"
    world.database.execute("UPDATE receiptd.action SET perform_at = now()")
    wait_for_runs(world, process, {"done": 1, "active": 1})  # what was reached before counts, at once
    world.topic.send(receipt("opens later", "OPENED"))
    wait_for_runs(world, process, {"done": 2})
    process.stop()
    assert [call.body["stage"] for call in receiver.seen()] == ["a", "a"]


def test_once_per_person_over_campaigns_batches_and_lanes(create_actions, receiver):
    world = create_actions([{"name": "once", "on": "SENT", "once_per": ["org_id", "campaign_id"], "subject": "campaign_id",
                             "webhook": "crm"}])
    world.insert({f"m{n}": Row("o", f"c{n % 7}") for n in range(700)})
    process = world.installation.start()
    for first in range(0, 700, 50):
        world.topic.send(*[receipt(f"m{n}", "SENT") for n in range(first, first + 50)])
    world.wait_until_consumed(process)
    world.wait(lambda: world.database.value("SELECT count(*) FROM receiptd.run_intent") == 0, process, LONG, "all runs are made")
    wait_for_runs(world, process, {"done": 7})
    process.stop()
    assert sorted(c.subject for c in receiver.seen()) == [f"o/c{n}" for n in range(7)]
    assert world.database.query("SELECT started::int, repeated::int FROM receiptd.pipeline_count") == [(7, 693)]


def test_failures_are_retried_by_class_and_given_up_with_the_last_answer(create_actions, receiver):
    answers = {"flaky": [503, 429, 408, 500, 200], "wrong": [404], "hopeless": [500] * 6}
    receiver.answer = lambda call: (answers[call.body["message_id"]][call.attempt - 1], {}, 0)
    world = create_actions([{"name": "p", "on": "SENT", "webhook": "crm"}],
                           {"max_attempts": 6, "breaker_failures": 1000})
    world.insert_ids(*answers)
    process = world.installation.start()
    world.topic.send(*[receipt(id, "SENT") for id in answers])
    wait_for_runs(world, process, {"done": 1, "dead": 2})
    counts = collections.Counter(c.body["message_id"] for c in receiver.seen())
    assert counts == {"flaky": 5, "wrong": 1, "hopeless": 6}
    receiver.assert_tokens_grow()
    assert world.database.query("SELECT message_id, attempt, class, answer_status, answer FROM receiptd.action"
                                " WHERE status = 'dead' ORDER BY 1") == [
        ("hopeless", 6, "server_error", 500, "answer 500"), ("wrong", 1, "refused", 404, "answer 404")]
    answers.update(hopeless=[500] * 6 + [200], wrong=[200])
    receiver.answer = lambda call: (200, {}, 0)
    (dead,) = world.database.query("SELECT id FROM receiptd.action WHERE message_id = 'wrong'")
    world.installation.command("actions", "retry", str(dead[0]))
    wait_for_runs(world, process, {"done": 2, "dead": 1})
    process.stop()


def test_a_call_that_is_cancelled_on_its_way_changes_nothing_any_more(create_actions, receiver):
    receiver.answer = lambda call: (200, {}, 1.5)
    world = create_actions([{"name": "p", "on": "SENT", "stages": [{"name": "s", "actions": [{"webhook": "crm"}, {"webhook": "crm"}]}]},
                            {"name": "later", "on": "OPENED", "webhook": "crm"}])
    world.insert_ids("m")
    process = world.installation.start()
    world.topic.send(receipt("m", "SENT"))
    world.wait(lambda: len(receiver.seen()) == 1, process, LONG, "the call is on its way")
    (running,) = world.database.query("SELECT id FROM receiptd.action WHERE status = 'running'")
    world.installation.command("actions", "cancel", str(running[0]))
    assert runs(world) == {"cancelled": 1} and states(world) == {"cancelled": 1}
    world.wait(lambda: receiver.seen()[0].ended is not None, process, LONG, "it is answered all the same")
    world.topic.send(receipt("m", "OPENED"))  # the person is free for what comes next
    wait_for_runs(world, process, {"cancelled": 1, "done": 1})
    process.stop()
    assert [call.body["pipeline"] for call in receiver.seen()] == ["p", "later"]
    receiver.assert_tokens_grow()


def test_a_dead_endpoint_costs_only_itself(create_actions, receiver):
    """The circuit opens; what waits for it is held, and goes when it answers again."""
    broken = Receiver(lambda call: (503, {}, 0))
    try:
        endpoints = [{"name": name, "url": each.url, "timeout": "5s"} for name, each in (("crm", receiver), ("broken", broken))]
        world = create_actions([{"name": "good", "on": "SENT", "webhook": "crm"},
                                {"name": "bad", "on": "SENT", "webhook": "broken", "subject": "campaign_id"}],
                               {"endpoints": endpoints, "breaker_failures": 3, "breaker_open": "200ms", "max_attempts": 1000})
        world.insert({f"m{n}": Row("o", f"c{n}") for n in range(300)})
        process = world.installation.start()
        world.topic.send(*[receipt(f"m{n}", "SENT") for n in range(300)])
        world.wait(lambda: len(receiver.seen()) == 300, process, LONG, "the good endpoint has all its calls")
        world.wait(lambda: "held" in states(world), process, LONG, "the rest is held")
        broken.answer = lambda call: (200, {}, 0)
        wait_for_runs(world, process, {"done": 600})
        process.stop()
    finally:
        broken.close()


def test_an_endpoint_that_fails_for_too_long_is_disabled_until_a_reload(create_actions, receiver):
    broken = Receiver(lambda call: (500, {}, 0))
    try:
        endpoints = [{"name": name, "url": each.url, "timeout": "5s"} for name, each in (("crm", receiver), ("broken", broken))]
        world = create_actions([{"name": "good", "on": "SENT", "webhook": "crm"}, {"name": "bad", "on": "OPENED", "webhook": "broken"}],
                               {"endpoints": endpoints, "breaker_failures": 2, "breaker_open": "50ms", "disable_after": "500ms",
                                "max_attempts": 1000}, http={"listen": "127.0.0.1:0"})
        world.insert_ids("a", "b")
        process = world.installation.start()
        world.topic.send(receipt("a", "OPENED"))
        process.wait_for_log("has failed for too long and is disabled until a reload", LONG)
        calls = len(broken.seen())
        figure = "receiptd_endpoints_disabled"
        process.wait_for(lambda: Operations(process).figures().get_one(figure) == 1, LONG, "its figure")
        world.topic.send(receipt("b", "OPENED"), receipt("b", "DELIVERED"))
        world.wait(lambda: len(receiver.seen()) == 2, process, LONG, "the other endpoint is called as ever")  # OPENED has been SENT
        assert len(broken.seen()) == calls  # nobody tries any more
        wait_for_runs(world, process, {"active": 2, "done": 2})
        assert states(world).get("dead", 0) == 0
        broken.answer = lambda call: (200, {}, 0)
        process.signal(signal.SIGHUP)
        wait_for_runs(world, process, {"done": 4})
        process.wait_for(lambda: Operations(process).figures().get_one(figure) == 0, LONG, "its figure")
        process.stop()
    finally:
        broken.close()


def test_the_status_says_until_when_an_endpoint_gets_no_calls(create_actions, receiver, tmp_path):
    broken, socket = Receiver(lambda call: (500, {}, 0)), tmp_path / "control.sock"
    try:
        endpoints = [{"name": name, "url": each.url, "timeout": "5s"} for name, each in (("crm", receiver), ("broken", broken))]
        world = create_actions([{"name": "bad", "on": "OPENED", "webhook": "broken"}],
                               {"endpoints": endpoints, "breaker_failures": 1, "breaker_open": "10m", "max_attempts": 1000},
                               http={"listen": "127.0.0.1:0"}, control={"socket": str(socket)})
        world.insert_ids("a", "b")
        process = world.installation.start()
        world.topic.send(receipt("a", "OPENED"))
        process.wait_for_log("endpoint broken fails and gets no calls for a while", LONG)
        world.topic.send(receipt("b", "OPENED"))
        world.wait(lambda: states(world).get("held", 0) == 2, process, LONG, "both are held")

        def shown():
            return Operations(process).get("/statusz").json["actions"]
        process.wait_for(lambda: shown()["held"] == 2, LONG, "the status counts them")
        fine, failing = sorted(shown()["endpoints"], key=lambda each: each["failures"])
        assert (fine["name"], fine["breaker"], fine["open_until"]) == ("crm", "closed", None)
        assert (failing["name"], failing["breaker"]) == ("broken", "open") and failing["open_until"].endswith("Z")
        text = world.installation.command("ctl", "status").stdout
        assert "actions         running, 0 in flight, 2 held, 0 dead" in text and "endpoints       2, 1 fail" in text
        assert f"broken: open until {failing['open_until'][:16]}" in text
        (because,) = {a["because"] for a in world.installation.json("actions", "list")}
        assert because == "held by endpoint:broken, until a call that tries it succeeds: receiptd ctl status says when it goes out"
        process.stop()
    finally:
        broken.close()


def test_webhooks_over_tls_go_to_whom_the_authority_certifies(create_actions, tmp_path):
    ours, strange = Authority(tmp_path, "ours"), Authority(tmp_path, "strange")
    known = Receiver(certificate=ours.issue("known", "known", "IP:127.0.0.1"))
    stranger = Receiver(certificate=strange.issue("stranger", "stranger", "IP:127.0.0.1"))
    other = Receiver(certificate=ours.issue("other", "other", "IP:127.0.0.2"))  # another's certificate
    try:
        endpoints = [{"name": name, "url": each.url, "timeout": "5s"}
                     for name, each in (("known", known), ("stranger", stranger), ("other", other))]
        world = create_actions([{"name": each["name"], "on": "SENT", "webhook": each["name"], "subject": "campaign_id"}
                                for each in endpoints], {"endpoints": endpoints, "ca_file": str(ours.path), "max_attempts": 2})
        world.insert({"m": Row("o", "c")})
        process = world.installation.start()
        world.topic.send(receipt("m", "SENT"))
        wait_for_runs(world, process, {"done": 1, "dead": 2})
        process.stop()
        assert len(known.seen()) == 1 and not stranger.seen() and not other.seen()
        assert world.database.query("SELECT p.name, a.attempt, a.class FROM receiptd.action a JOIN receiptd.pipeline p ON p.id = a.pipeline_id"
                                    " WHERE a.status = 'dead' ORDER BY 1") == [("other", 2, "tls"), ("stranger", 2, "tls")]
    finally:
        for each in (known, stranger, other):
            each.close()


def test_calls_share_connections_over_http2(create_actions, tmp_path):
    authority = Authority(tmp_path, "ours")
    receiver = Http2Receiver(authority.issue("known", "known", "IP:127.0.0.1"))
    try:
        world = create_actions([{"name": "p", "on": "SENT", "webhook": "crm"}],
                               {"endpoints": [{"name": "crm", "url": receiver.url, "timeout": "60s"}],
                                "ca_file": str(authority.path), "lease": "150s"})  # long enough that none is called twice
        ids = [f"m{n}" for n in range(200)]
        world.insert_ids(*ids)
        process = world.installation.start()
        world.topic.send(*[receipt(id, "SENT") for id in ids], headers=[("traceparent", TRACEPARENT)])
        wait_for_runs(world, process, {"done": 200})
        process.stop()
        calls = receiver.seen()
        assert sorted(call.body["message_id"] for call in calls) == sorted(ids) and len({call.id for call in calls}) == 200
        assert calls[0].headers[":method"] == "POST" and calls[0].headers["traceparent"] == TRACEPARENT
        assert receiver.connections < 50
    finally:
        receiver.close()


def busiest(times, window):
    """The most that fell into any window of that length."""
    most, first = 0, 0
    for last, time_ in enumerate(times):
        while times[first] <= time_ - window:
            first += 1
        most = max(most, last - first + 1)
    return most


def test_no_organisation_has_more_than_its_rate_in_any_window_over_two_instances(create_actions, receiver):
    world = create_actions([{"name": "p", "on": "SENT", "webhook": "crm"}],
                           {"org_rate": 1200, "org_burst": 5})  # 20 a second
    world.insert({f"m{n}": Row(f"org{n % 2}", "c") for n in range(120)})
    first, second = world.installation.start("a"), world.installation.start("b")
    second.wait_for_log("pipelines are in effect", LONG)
    world.topic.send(*[receipt(f"m{n}", "SENT") for n in range(120)])
    wait_for_runs(world, first, {"done": 120})
    rows = world.database.query("SELECT org_id, (extract(epoch FROM started_at) * 1000000)::int8 FROM receiptd.action ORDER BY 2")
    for org in ("org0", "org1"):
        times = [t for o, t in rows if o == org]
        assert len(times) == 60
        for window_us in (50_000, 200_000, 500_000, 1_000_000, 2_000_000):
            assert busiest(times, window_us) <= window_us // 50_000 + 5
    first.stop()
    second.stop()


def test_one_organisation_with_very_many_does_not_delay_another(create_actions, receiver):
    world = create_actions([{"name": "p", "webhook": "crm"}], {"max_in_flight": 16})
    process = world.installation.start()
    process.wait_for_log("pipelines are in effect", LONG)
    file = world.installation.directory / "many.csv"
    file.write_text("org_id,subject\n" + "".join(f"big,person{n}\n" for n in range(1500)))
    world.installation.command("actions", "import", str(file), "--pipeline", "p")
    file.write_text("org_id,subject,note\nsmall,single,hello\n")
    world.installation.command("actions", "import", str(file), "--pipeline", "p")
    wait_for_runs(world, process, {"done": 1501})
    order = [c.subject for c in receiver.seen()]
    assert order.index("small/single") < 1300  # by age it would be the last
    (call,) = [c for c in receiver.seen() if c.subject == "small/single"]
    assert call.body["data"] == {"note": "hello"}
    process.stop()


API = [{"name": "p", "on": "api", "once_per": ["subject"], "webhook": "crm"}]


def test_a_request_begins_runs_and_is_answered_after_the_commit(create_actions, receiver):
    world = create_actions(API, http={"token": SCRAPE_TOKEN, "runs_token": RUNS_TOKEN})
    process = world.installation.start()
    process.wait_for_log("pipelines are in effect", LONG)
    pages = Operations(process, token=RUNS_TOKEN)

    def begin(body, path="/runs/p", **headers):
        answer = pages.ask(path, body if isinstance(body, bytes) else json.dumps(body).encode(), **headers)
        return answer.status, answer.text.strip()

    assert begin({"subject": "ann", "org_id": "o", "campaign_id": None, "data": {"note": "hello"}}) == (200, '{"taken":1,"began":1}')
    assert world.database.value("SELECT count(*) FROM receiptd.run") == 1
    many = [{"subject": f"person{n}"} for n in range(999)] + [{"subject": "ann", "org_id": "o"}]
    assert begin(many) == (200, '{"taken":1000,"began":999}')
    assert begin(many) == (200, '{"taken":1000,"began":0}')  # asked again, for the answer was lost
    wait_for_runs(world, process, {"done": 1000})
    (call,) = [c for c in receiver.seen() if c.subject == "o/ann"]
    assert call.body["data"] == {"note": "hello"}

    refused = [(b"{", "invalid_json"), (b'{"subject": "\xff"}', "no text in UTF-8"), (b"5", "run 1: is no object"), (b"[]", "an empty list"),
               (json.dumps({"subject": "new", "org_id": "o" * 1001}).encode(), "org_id is longer than 1000 bytes"),
               (b"", "it is empty"), (b'{"subject": "a\x00b"}', "no text in UTF-8"),
               (b'[{"subject": "new"}, {"org_id": "o"}]', "run 2: subject is missing"), (b'{"subject": " "}', "subject is missing"),
               (b'{"subject": "new", "campaing_id": "c"}', 'run 1: has no member "campaing_id": did you mean "campaign_id"?'),
               (b'{"subject": "new", "plan": "pro"}', 'has no member "plan": put your own into "data"'),
               (b'{"subject": {}}', "subject is no text"), (b'{"subject": "new", "data": []}', "data is no object"),
               (b'{"subject": "new\\u0000"}', "subject has a NUL in it"), (b'{"subject": "new", "data": {"a": "\\u0000"}}', "")]
    for body, reason in refused:
        status, text = begin(body)
        assert status == 400 and reason in text, (body, status, text)
    assert begin([{"subject": f"new{n}"} for n in range(1001)]) == (413, "more than 1000 runs: send the rest by itself")
    assert begin(b"x" * (1 << 20) + b"x")[0] == 413
    assert begin({"subject": "new"}, "/runs/q") == (404, "there is no pipeline q")
    assert begin({"subject": "new"}, "/runs")[0] == begin({"subject": "new"}, "/runs/p/q")[0] == 404
    assert begin({"subject": "new"}, Authorization="Bearer wrong")[0] == 401
    assert pages.get("/runs/p").status == 405
    # Two tokens, two rights.
    assert begin({"subject": "new"}, Authorization=f"Bearer {SCRAPE_TOKEN}")[0] == 401
    assert pages.get("/statusz").status == pages.get("/metrics").status == 401
    assert pages.get("/statusz", Authorization=f"Bearer {SCRAPE_TOKEN}").status == 200
    assert world.database.value("SELECT count(*) FROM receiptd.run") == 1000
    process.stop()


def test_no_run_of_an_organisation_gets_hold_of_a_message_of_another(create_actions, create_topic, receiver):
    source = create_topic(1)
    world = create_actions([*API, {"name": "q", "on": {"topic": str(source)}, "webhook": "crm"}],
                           http={"token": SCRAPE_TOKEN, "runs_token": RUNS_TOKEN})
    world.insert({"m1": Row("org1", "c"), "m3": Row("org3", "c")})
    process = world.installation.start()
    process.wait_for_log("actions: assigned 1 partitions", LONG)

    def begin(**body):
        answer = Operations(process, token=RUNS_TOKEN).ask("/runs/p", json.dumps(body).encode())
        return answer.status, answer.text.strip()

    crossing = 'message m3 is not of organisation org1'
    assert begin(subject="a", org_id="org1", message_id="m3") == (400, crossing)
    assert begin(subject="a", org_id="org1", message_id="m1")[0] == begin(subject="b", message_id="m3")[0] == 200
    assert begin(subject="c", org_id="org1", message_id="nobody")[0] == 200
    file = world.installation.directory / "people.csv"
    file.write_text("subject,message_id\nx,m3\n")
    refused = world.installation.command("actions", "import", str(file), "--pipeline", "p", "--org", "org1", check=False)
    assert refused.returncode != 0 and crossing in refused.stderr
    source.send({"subject": "d", "org_id": "org1", "message_id": "m3"}, {"subject": "e", "org_id": "org3", "message_id": "m3"})
    wait_for_runs(world, process, {"done": 4})
    letters = "SELECT reason, detail FROM receiptd.dead_letter"
    world.wait(lambda: world.database.query(letters) == [("not_a_run", crossing)], process, LONG, "the record is a dead letter")
    process.stop()


def test_a_request_whose_connection_breaks_is_to_be_sent_again(create_actions, receiver):
    world = create_actions(API, http={"token": SCRAPE_TOKEN, "runs_token": RUNS_TOKEN})
    process = world.installation.start()
    process.wait_for_log("pipelines are in effect", LONG)
    pages = Operations(process, token=RUNS_TOKEN)
    waiting = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%actions_request%'"
    with world.database.connect() as connection, ThreadPoolExecutor(1) as pool:
        connection.execute("BEGIN")
        connection.execute("LOCK TABLE receiptd.run")
        answer = pool.submit(pages.ask, "/runs/p", b'{"subject": "ann"}')
        world.wait(lambda: world.database.query(waiting), process, LONG, "the request waits for the lock")
        world.database.query(f"SELECT pg_terminate_backend(pid) FROM ({waiting}) w")
        refused = answer.result()
        connection.execute("ROLLBACK")
    assert refused.status == 503 and refused.headers["Retry-After"] == "1"
    process.wait_for(lambda: pages.ask("/runs/p", b'{"subject": "ann"}').status == 200, LONG, "it is connected again")
    wait_for_runs(world, process, {"done": 1})
    process.stop()


@pytest.mark.parametrize("http", [{}, {"token": "whoever-knows-this-token"}], ids=["no token", "the token of the pages"])
def test_without_a_token_of_its_own_nobody_begins_runs(create_actions, receiver, http):
    world = create_actions(API, http=http)
    process = world.installation.start()
    process.wait_for_log("pipelines are in effect", LONG)
    answer = Operations(process, token=http.get("token")).ask("/runs/p", b'{"subject": "ann"}')
    assert answer.status == 403 and "set http.runs_token" in answer.text
    assert world.database.value("SELECT count(*) FROM receiptd.run") == 0
    process.stop()


def test_an_import_of_sixteen_thousand_by_a_topic_stops_neither_receipts_nor_other_organisations(create_actions, create_topic, receiver):
    source, count = create_topic(2), 16_000
    world = create_actions([{"name": "bulk", "on": {"topic": str(source)}, "webhook": "crm", "if": "CLICKED"},
                            {"name": "each", "on": "OPENED", "webhook": "crm"}], events=4_000)
    process = world.installation.start()
    process.wait_for_log("actions: assigned 2 partitions", LONG)
    source.send(*[{"org_id": "big", "subject": f"person{n}"} for n in range(count)])
    world.produce()
    world.insert(world.stream.late)
    world.finish(process)
    of = ("SELECT count(*) FROM receiptd.run r JOIN receiptd.pipeline p ON p.id = r.pipeline_id WHERE r.status = 'done' AND p.name = '{}'")
    opened = world.database.value("SELECT sum(messages) FROM receiptd.campaign_funnel WHERE status = 700")
    world.wait(lambda: (world.database.value(of.format("bulk")), world.database.value(of.format("each"))) == (count, opened), process,
               2 * LONG, "all runs end", details=lambda: str(states(world)))
    assert len(receiver.seen()) == opened > 0
    process.stop()


def test_a_zombie_with_a_call_in_flight_changes_nothing_when_it_comes_back(create_actions, receiver):
    world = create_actions([{"name": "p", "on": "SENT", "webhook": "crm"}], {"lease": "2s", "endpoints": [
        {"name": "crm", "url": receiver.url, "timeout": "1s"}]})
    world.insert_ids("m")
    stopped = []
    first = world.installation.start("a")
    first.wait_for_log("pipelines are in effect", LONG)

    def answer(call):
        if not stopped:
            stopped.append(first.pid)
            first.signal(signal.SIGSTOP)
        return 200, {}, 0

    receiver.answer = answer
    world.topic.send(receipt("m", "SENT"))
    world.wait(lambda: stopped, None, LONG, "a call is under way")
    second = world.installation.start("b")
    wait_for_runs(world, second, {"done": 1})
    first.signal(signal.SIGCONT)
    world.wait(lambda: overlaps(world) == 1, first, LONG, "the overlap is counted")
    assert runs(world) == {"done": 1} and [c.attempt for c in receiver.seen()] == [1, 2]
    receiver.assert_tokens_grow()
    first.stop()
    second.stop()


@pytest.mark.parametrize("how", ["kill", "database"])
def test_every_run_ends_once_over_crashes(create_actions, receiver, how):
    count = 150
    receiver.answer = lambda call: (200, {}, 0.01)
    world = create_actions([{"name": "p", "on": "SENT", "subject": "campaign_id", "stages": [
        {"name": "s", "actions": [{"webhook": "crm"}, {"webhook": "crm"}]}]}], {"lease": "3s", "endpoints": [
            {"name": "crm", "url": receiver.url, "timeout": "1s"}]})
    world.insert({f"m{n}": Row("o", f"c{n % 10}") for n in range(count)})
    names = iter("abcdefghij")
    processes = [world.installation.start(next(names)) for _ in range(2)]
    world.topic.send(*[receipt(f"m{n}", "SENT") for n in range(count)])
    for turn in range(2):
        enough = (turn + 1) * count // 3
        world.wait(lambda: len(receiver.seen()) > enough, None, LONG, "some calls are made")
        if how == "kill":
            processes[turn].kill()
            processes.append(world.installation.start(next(names)))
        else:
            world.database.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
                                   " AND application_name LIKE 'receiptd/%'")
    wait_for_runs(world, None, {"done": count}, 2 * LONG)
    for process in processes:
        if process.running:
            process.stop()
    assert states(world) == {"done": 2 * count}
    assert world.database.value("SELECT count(*) FROM receiptd.action WHERE status = 'done' AND attempt = 0") == 0
    receiver.assert_tokens_grow()
    if how == "kill":
        assert overlaps(world) == 0


@pytest.mark.parametrize("limit", ["org_concurrency", "concurrency"])
@pytest.mark.parametrize("how", ["kill", "stop", "database"])
def test_a_process_that_goes_with_the_limit_full_leaves_its_place_to_others(create_actions, receiver, how, limit):
    world = create_actions([{"name": "p", "on": "SENT", "webhook": "crm"}], {limit: 1, "lease": "2s", "endpoints": [
        {"name": "crm", "url": receiver.url, "timeout": "1s"}]})
    world.insert_ids(*(f"m{n}" for n in range(4)))
    first = world.installation.start("a")
    first.wait_for_log("pipelines are in effect", LONG)
    gone = []

    def answer(call):
        if not gone:
            gone.append(call)
            if how == "database":
                world.database.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
                                       " AND application_name LIKE 'receiptd/%'")
            else:
                first.kill() if how == "kill" else first.signal(signal.SIGSTOP)
        return 200, {}, 0

    receiver.answer = answer
    world.topic.send(*(receipt(f"m{n}", "SENT") for n in range(4)))
    world.wait(lambda: gone, None, LONG, "a call is under way")
    if how == "database":
        wait_for_runs(world, first, {"done": 4})
    else:
        second = world.installation.start("b")
        wait_for_runs(world, second, {"done": 4})
        second.stop()
    if how == "stop":
        first.signal(signal.SIGCONT)
    if how != "kill":
        first.stop()


def test_limits_can_be_changed_and_work_be_paused_while_it_runs(create_actions, receiver):
    world = create_actions([{"name": "p", "on": "SENT", "webhook": "crm"}])
    world.insert({f"m{n}": Row(f"org{n % 2}", "c") for n in range(20)})
    world.installation.command("ctl", "org", "pause", "org0")
    process = world.installation.start()
    world.topic.send(*[receipt(f"m{n}", "SENT") for n in range(20)])
    wait_for_runs(world, process, {"done": 10, "active": 10})
    because = world.installation.json("actions", "list")
    assert {a["because"] for a in because} == {"the organisation is paused"} and len(because) == 10
    world.installation.command("ctl", "org", "resume", "org0")
    wait_for_runs(world, process, {"done": 20})
    process.stop()


@pytest.mark.parametrize("whose", ["acme", "*"])
def test_a_raised_limit_counts_at_once(create_actions, receiver, whose):
    world = create_actions([{"name": "p", "on": "SENT", "webhook": "crm"}])
    world.insert({f"m{n}": Row("acme", "c") for n in range(90)})
    ctl = world.installation.command
    ctl("ctl", "org", "set", whose, "--rate", "1", "--burst", "60")
    process = world.installation.start()
    world.topic.send(*[receipt(f"m{n}", "SENT") for n in range(90)])
    wait_for_runs(world, process, {"done": 60, "active": 30})
    ctl("ctl", "org", "set", whose, "--rate", "6000")
    wait_for_runs(world, process, {"done": 90})
    process.stop()


def test_limits_of_organisations_and_pipelines_are_set_listed_and_cleared(create_actions, receiver):
    world = create_actions([{"name": "p", "on": "SENT", "webhook": "crm"}, {"name": "q", "on": "FAILED", "webhook": "crm"}])
    world.insert({f"m{n}": Row("acme", "c") for n in range(6)})
    ctl = world.installation.command
    process = world.installation.start()
    process.wait_for_log("pipelines are in effect", LONG)
    ctl("ctl", "pipeline", "pause", "p")
    ctl("ctl", "org", "set", "acme", "--rate", "6000", "--burst", "1", "--concurrency", "1", "--weight", "7")
    world.topic.send(*[receipt(f"m{n}", "SENT") for n in range(6)])
    wait_for_runs(world, process, {"active": 6})
    assert {a["because"] for a in world.installation.json("actions", "list")} == {"the pipeline is paused"}
    pipelines = {p["name"]: p for p in world.installation.json("ctl", "pipeline", "list")}
    assert set(pipelines) == {"p", "q"} and pipelines["p"]["paused"] in (True, "t") and pipelines["q"]["paused"] in (False, "f")
    ctl("ctl", "pipeline", "resume", "p")
    wait_for_runs(world, process, {"done": 6})
    (org,) = world.installation.json("ctl", "org", "list")
    assert (org["org_id"], org["burst"], org["concurrency"], org["weight"], org["granted"]) == ("acme", 1, 1, 7, 6)
    assert float(org["rate_per_minute"]) == 6000
    table = ctl("ctl", "org", "list").stdout
    assert "acme" in table and "weight" in table
    ctl("ctl", "org", "clear", "acme")
    (org,) = world.installation.json("ctl", "org", "list")
    assert (org["burst"], org["concurrency"], org["weight"]) == (None, None, 1)
    for words, says in ((("pipeline", "pause", "typo"), "there is no pipeline typo"), (("pipeline", "resume", "typo"), "there is no pipeline typo"),
                        (("pipeline", "halt", "p"), 'unknown verb "halt"'), (("pipeline", "pause"), "which pipeline?"),
                        (("org", "set", "acme"), "set what?"), (("org", "set", "acme", "--weight", "0"), "weight"),
                        (("org", "set"), "which organisation?"), (("org", "stop", "acme"), 'unknown verb "stop"')):
        refused = ctl("ctl", *words, check=False)
        assert refused.returncode == 64 and says in refused.stderr, (words, refused.returncode, refused.stderr)
    process.stop()


EVERY_RULE = {"dedup": {"window": "7d"}, "counters": {"series": "90d", "reasons": True, "gateways": "90d", "times": True}}


@pytest.mark.parametrize("rules", ({}, EVERY_RULE), ids=("no rules", "every rule"))
def test_what_another_instance_has_stored_is_heard_of_where_nobody_knows_it(create_actions, receiver, rules):
    world = create_actions([{"name": "skipped", "on": "SKIPPED", "webhook": "crm"}], **rules)
    world.database.execute(f"ALTER DATABASE {world.database.name} SET track_functions = 'pl'")
    world.insert_ids("m", "n", *(f"q{n}" for n in range(1000)))
    process = world.installation.start()
    quiet = iter(range(1000))
    sent = "SELECT COALESCE(sum(calls), 0) FROM pg_stat_user_functions WHERE funcname = 'actions_unsubscribed'"

    def is_quiet():
        world.topic.send(receipt(f"q{next(quiet)}", "SENT"))
        return world.database.value(sent) > 0

    world.wait(is_quiet, process, LONG, "batches are sent without what is for pipelines")
    for _ in range(2):
        world.topic.send(receipt("q999", "SENT", gateway="g", event_id="e"))
        world.wait_until_consumed(process)
    world.database.execute("INSERT INTO receiptd.pipeline_trigger (pipeline_id, code, wakes) SELECT id, 600, false FROM receiptd.pipeline")
    world.topic.send(receipt("m", "OPENED"), receipt("n", "SENT"))
    wait_for_runs(world, process, {"done": 1})
    assert [call.body["message_id"] for call in receiver.seen()] == ["m"]
    process.wait_for_log("RD003", LONG)
    world.topic.send(receipt("n", "SKIPPED"))
    world.topic.send(receipt("n", "DELIVERED"))
    wait_for_runs(world, process, {"done": 2})
    world.wait_until_consumed(process)
    process.stop()
    assert overlaps(world) == 0
    world.audit()
    funnel = world.database.query("SELECT status, sum(messages)::int, sum(events)::int FROM receiptd.campaign_funnel WHERE status > 0 GROUP BY 1 ORDER BY 1")
    tally = "SELECT status, sum(messages)::int, sum(events)::int FROM receiptd.campaign_tally WHERE kind = %s GROUP BY 1 ORDER BY 1"
    if rules:
        assert world.database.query(tally, "hour") == funnel and world.database.query(tally, "duplicate") == [(300, 0, 1)]


def test_a_reload_brings_pipelines_and_takes_them_away(create_actions, receiver):
    world = create_actions([])
    world.insert_ids("before", "first", "second", "after")
    process = world.installation.start()
    process.wait_for_log('msg="ready"', LONG)

    def reload(pipelines):
        done = process.log().count("reload: applied")
        world.installation.configure(pipelines=pipelines)
        process.signal(signal.SIGHUP)
        process.wait_for(lambda: process.log().count("reload: applied") > done, LONG, "the reload is over")

    def send(id):
        world.topic.send(receipt(id, "SENT"))
        world.wait_until_consumed(process)

    send("before")
    reload([{"name": "p", "on": "SENT", "webhook": "crm"}])
    process.wait_for_log("1 pipelines are in effect", LONG)
    process.wait_for_log("connections for lanes now", LONG)
    send("first")
    wait_for_runs(world, process, {"done": 1})
    reload([{"name": "p", "on": "SENT", "webhook": "crm"}, {"name": "q", "on": "SENT", "webhook": "crm", "subject": "org_id"}])
    process.wait_for_log("2 pipelines are in effect", LONG)
    send("second")
    wait_for_runs(world, process, {"done": 3})
    reload([])
    process.wait_for(lambda: process.log().count("connections for lanes now") == 2, LONG, "the lanes have been made anew")
    send("after")
    assert runs(world) == {"done": 3}
    process.stop()


def test_a_message_that_leaves_a_status_and_comes_back_is_called_for_once(create_actions, receiver):
    """Also over a reload that changes the pipeline, one that takes it away meanwhile, and a restart."""
    def delivered(wait):
        return [{"name": "p", "on": "DELIVERED", "stages": [{"name": "s", "actions": [{"wait": wait}, {"webhook": "crm"}]}]}]

    world = create_actions(delivered("1ms"), {"retention": "1s"})
    ids = ["at once", "changed", "away", "restarted"]
    world.insert_ids(*ids)
    process = world.installation.start()

    def send(*receipts):
        world.topic.send(*receipts)
        world.wait_until_consumed(process)

    def come_back(id):
        send(receipt(id, "BOUNCED_HARD", channel="email"))
        send(receipt(id, "OPENED"))

    def reload(pipelines):
        done = process.log().count("reload: applied")
        world.installation.configure(pipelines=pipelines)
        process.signal(signal.SIGHUP)
        process.wait_for(lambda: process.log().count("reload: applied") > done, LONG, "the reload is over")

    send(*(receipt(id, "DELIVERED") for id in ids))
    come_back("at once")
    world.wait(lambda: len(receiver.seen()) == len(ids), process, LONG, "a call for each message")
    world.wait(lambda: runs(world) == {}, process, LONG, "the runs are tidied up")
    reload(delivered("2ms"))
    come_back("changed")
    reload([])
    send(receipt("away", "BOUNCED_HARD", channel="email"))
    reload(delivered("2ms"))
    process.wait_for(lambda: process.log().count("pipelines are in effect") >= 3, LONG, "the pipeline is back")
    send(receipt("away", "OPENED"))
    process.stop()
    process = world.installation.start()
    come_back("restarted")
    world.insert_ids("last")
    send(receipt("last", "DELIVERED"))
    world.wait(lambda: [call for call in receiver.seen() if call.body["message_id"] == "last"], process, LONG, "a call of a run that began after all others")
    process.stop()
    assert sorted(call.body["message_id"] for call in receiver.seen()) == sorted([*ids, "last"])


GONE = {"delete": "DELETE FROM crm.messages WHERE message_id = 'm'", "drop": "DROP TABLE crm.old",
        "detach": "ALTER TABLE crm.messages DETACH PARTITION crm.old", "retire": None, "erase": None}


@pytest.mark.parametrize("how", GONE)
def test_a_waiting_run_makes_no_call_for_a_message_that_is_gone(create_actions, receiver, how):
    pipelines = [{"name": "p", "on": "SENT", "subject": "campaign_id", "stages": [
        {"name": "s", "actions": [{"await": {"status": "OPENED", "within": "1h"}}, {"webhook": "crm"}]}]}]
    world = create_actions(pipelines, migrate=False, inbox={"table": "crm.messages", "retention": "300d", "columns": {"created_at": "created_at"}})
    world.database.execute("""
        CREATE SCHEMA crm;
        CREATE TABLE crm.messages (message_id text, org_id text, campaign_id text, created_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (message_id, created_at))
            PARTITION BY RANGE (created_at);
        CREATE TABLE crm.old PARTITION OF crm.messages FOR VALUES FROM (MINVALUE) TO ('2020-01-01');
        CREATE TABLE crm.new PARTITION OF crm.messages FOR VALUES FROM ('2020-01-01') TO (MAXVALUE)""")
    world.installation.migrate()
    world.database.execute("INSERT INTO crm.messages VALUES ('m', 'o', 'old', '2019-01-01'), ('n', 'o', 'new', now())")
    process = world.installation.start()
    world.topic.send(receipt("m", "SENT"), receipt("n", "SENT"))
    world.wait_until_consumed(process)
    world.wait(lambda: runs(world) == {"active": 2}, process, LONG, "both wait")
    if GONE[how]:
        world.database.execute(GONE[how])
    else:
        world.installation.command(*(["retire"] if how == "retire" else ["erase", "--message", "m"]))
    world.database.execute("UPDATE receiptd.action SET perform_at = now()")
    expected = {"done": 1} | ({} if how == "erase" else {"cancelled": 1})
    wait_for_runs(world, process, expected)
    process.stop()
    assert [call.body["message_id"] for call in receiver.seen()] == ["n"]
    if how != "erase":
        (action,) = world.installation.json("actions", "list", "--status", "cancelled")
        assert action["because"] == "its message was deleted"


def test_a_column_that_the_inbox_does_not_have_is_refused(create_actions, receiver):
    """It would be empty in each run, and with once_per one run would begin, ever."""
    wrong = {"name": "p", "on": "SENT", "webhook": "crm", "once_per": ["org_id", "custmer_id"]}
    world = create_actions([wrong])
    world.insert_ids("a", "b")
    process = world.installation.start()
    assert process.wait(LONG) == 78
    assert "pipelines: the inbox has no such column: p: custmer_id" in process.log()

    world.installation.configure(pipelines=[wrong | {"once_per": ["message_id", "subject"]}])
    process = world.installation.start("b")
    process.wait_for_log("1 pipelines are in effect", LONG)
    world.topic.send(receipt("a", "SENT"))
    wait_for_runs(world, process, {"done": 1})
    world.installation.configure(pipelines=[wrong])
    process.signal(signal.SIGHUP)
    process.wait_for_log("no such column: p: custmer_id; no action begins until that is mended", LONG)
    world.topic.send(receipt("b", "SENT"))
    world.wait_until_consumed(process)
    world.installation.configure(pipelines=[wrong | {"once_per": ["message_id"]}])
    process.signal(signal.SIGHUP)
    wait_for_runs(world, process, {"done": 2})
    process.stop()


def test_records_go_to_a_topic_with_their_key(create_actions, create_topic, receiver):
    target = create_topic(1)
    world = create_actions([{"name": "p", "on": "SENT", "produce": {"topic": str(target), "key": "subject"}}])
    world.insert_ids("m")
    process = world.installation.start()
    world.topic.send(receipt("m", "SENT"))
    wait_for_runs(world, process, {"done": 1})
    process.stop()
    assert sum(high - low for low, high in target.watermarks().values()) == 1


def told(world, *columns):
    """What became of each action, by message."""
    return world.database.query(f"SELECT message_id, status, class, {', '.join(columns) or 'attempt'} FROM receiptd.action ORDER BY 1, id")


def test_a_topic_that_does_not_exist_is_named_and_its_records_go_out_when_it_does(create_actions, create_topic, receiver):
    target, source = f"target-{secrets.token_hex(6)}", f"source-{secrets.token_hex(6)}"
    world = create_actions([{"name": "p", "on": "SENT", "produce": {"topic": target, "key": "subject"}},
                            {"name": "q", "on": {"topic": source}, "webhook": "crm"}], {"lease": "3s", "max_attempts": 1000, "endpoints": [
                                {"name": "crm", "url": receiver.url, "timeout": "1s"}]})
    world.insert_ids("m")
    process = world.installation.start()
    process.wait_for_log(f"level=warn .*topic {target}, which pipelines produce to, does not exist", LONG)
    process.wait_for_log(f"level=warn .*actions: there is no topic {source} yet", LONG)
    world.topic.send(receipt("m", "SENT"))
    world.wait(lambda: [row[2] for row in told(world)] == ["kafka"], process, LONG, "it is tried in vain")
    ((_, _, _, answer),) = told(world, "answer")
    assert target in answer, answer
    pages = Operations(process)
    assert pages.figures().get_one("receiptd_action_attempts_total", target=target, **{"class": "kafka"}) >= 1
    made, begins = create_topic(1, name=target), create_topic(1, name=source)
    wait_for_runs(world, process, {"done": 1})
    begins.send({"org_id": "o", "subject": "ann"}, None, {"org_id": "o", "subject": "bob"})  # a tombstone begins nothing
    wait_for_runs(world, process, {"done": 3})
    assert sum(high - low for low, high in made.watermarks().values()) == 1
    assert sorted(call.subject for call in receiver.seen()) == ["o/ann", "o/bob"]
    process.stop()


def test_a_record_that_kafka_refuses_is_given_up_with_the_reason_and_its_neighbours_land(create_actions, create_topic, receiver):
    """A broker refuses the batch, and with it the records that were sent together."""
    small = create_topic(1, max_message_bytes=1000)
    world = create_actions([{"name": "p", "produce": {"topic": str(small), "key": "subject"}}], {"max_attempts": 8})
    process = world.installation.start()
    process.wait_for_log("pipelines are in effect", LONG)
    file = world.installation.directory / "people.csv"
    file.write_text(f"org_id,subject,note\no,small,hello\no,large,{secrets.token_hex(4000)}\n")
    world.installation.command("actions", "import", str(file), "--pipeline", "p")
    wait_for_runs(world, process, {"done": 1, "dead": 1})
    (dead,) = world.installation.json("actions", "list", "--status", "dead")
    (shown,) = world.installation.json("actions", "show", str(dead["id"]))
    assert (shown["subject"], shown["target"], shown["attempt"]) == ("large", str(small), 8)
    assert str(small) in shown["answer"] and "too large" in shown["answer"].lower(), shown
    Operations(process).wait_for_figure("receiptd_actions", lambda value: value == 1, status="dead")
    broker_takes = ConfigResource(ConfigResource.Type.TOPIC, str(small), set_config={"max.message.bytes": "100000"})
    small.services.admin.alter_configs([broker_takes])[broker_takes].result(30)
    assert "1 actions will be tried again" in world.installation.command("actions", "retry", str(dead["id"])).stdout
    wait_for_runs(world, process, {"done": 2})
    process.stop()


def test_a_property_that_no_record_can_be_sent_with_is_said_at_a_start_and_at_a_reload(create_actions, create_topic, receiver):
    produces = [{"name": "p", "on": "SENT", "produce": {"topic": str(create_topic(1)), "key": "subject"}}]
    calls = [{"name": "p", "on": "SENT", "webhook": "crm"}]
    world = create_actions(produces, kafka={"properties": {"acks": "1"}})
    process = world.installation.start("a")
    assert process.wait(LONG) == 78 and "kafka property acks cannot be set" in process.log(), process.log_tail()
    world.installation.configure(pipelines=calls)
    world.insert_ids("m")
    process = world.installation.start("b")
    process.wait_for_log("1 pipelines are in effect", LONG)
    world.installation.configure(pipelines=produces)
    process.signal(signal.SIGHUP)
    process.wait_for_log('level=error .*reload: actions cannot be carried out: kafka property acks cannot be set', LONG)
    assert "the configuration stays as it was" not in process.log()  # it is in effect but for them
    assert Operations(process).figures().get_one("receiptd_reloads_total", result="refused") == 1
    world.installation.configure(pipelines=calls)
    process.signal(signal.SIGHUP)
    process.wait_for(lambda: process.log().count("1 pipelines are in effect") == 2, LONG, "what can be carried out is again")
    world.topic.send(receipt("m", "SENT"))
    wait_for_runs(world, process, {"done": 1})
    process.stop()


def test_an_import_waits_for_a_pipeline_that_is_configured_and_not_stored_yet(create_actions, receiver, tmp_path):
    """Before a start, right after it, and after a reload that brings the pipeline."""
    world = create_actions(API)
    (tmp_path / "people.csv").write_text("subject\nann\nbob\n")

    def imported(name):
        return world.installation.command("actions", "import", str(tmp_path / "people.csv"), "--pipeline", name)

    assert runs(world) == {}  # the database is there
    with ThreadPoolExecutor() as pool:
        early = pool.submit(imported, "p")
        sessions = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%%FROM pipeline p%%' AND pid <> pg_backend_pid()"
        world.wait(lambda: world.database.value(sessions) > 0, None, LONG, "the import asks for its pipeline")
        process = world.installation.start()
        done = early.result(timeout=LONG)
    assert done.stdout == "2 lines read, 2 runs began\n" and "no instance of receiptd run has stored pipeline p yet" in done.stderr
    wait_for_runs(world, process, {"done": 2})
    world.installation.configure(pipelines=[*API, {**API[0], "name": "second"}])
    process.signal(signal.SIGHUP)
    assert imported("second").stdout == "2 lines read, 2 runs began\n"
    wait_for_runs(world, process, {"done": 4})
    process.stop()


def test_a_pipeline_can_be_paused_before_the_first_start(create_actions, receiver, tmp_path):
    world = create_actions(API)
    (tmp_path / "people.csv").write_text("subject\nann\n")
    assert "there is no pipeline typo" in world.installation.command("ctl", "pipeline", "pause", "typo", check=False).stderr
    world.installation.command("ctl", "pipeline", "pause", "p")
    process = world.installation.start()
    world.installation.command("actions", "import", str(tmp_path / "people.csv"), "--pipeline", "p")
    world.wait(lambda: states(world) == {"held": 1}, process, LONG, "the action is held")
    world.installation.command("ctl", "pipeline", "resume", "p")
    wait_for_runs(world, process, {"done": 1})
    process.stop()


def test_an_import_that_ends_in_the_middle_says_how_far_it_came(create_actions, receiver):
    world = create_actions([{"name": "p", "on": "api", "once_per": ["subject"], "webhook": "crm"}])
    process = world.installation.start()
    process.wait_for_log("pipelines are in effect", LONG)
    file = world.installation.directory / "people.csv"
    people = "".join(f"person{n},note {n}\n" for n in range(1500))
    file.write_text("subject,note\n" + people + "person,too,many\n")
    ended = world.installation.command("actions", "import", str(file), "--pipeline", "p", check=False)
    assert ended.returncode == 65 and ended.stdout == "1000 lines read, 1000 runs began\n"
    assert "line 1502: has not as many fields" in ended.stderr
    assert "HINT: lines up to there are in; with once_per they may be imported again" in ended.stderr
    file.write_text("subject,note\n" + people)
    assert world.installation.command("actions", "import", str(file), "--pipeline", "p").stdout == "1500 lines read, 500 runs began\n"
    wait_for_runs(world, process, {"done": 1500})
    assert len({call.subject for call in receiver.seen()}) == 1500
    process.stop()


def test_actions_are_listed_and_shown_in_every_format(create_actions, receiver):
    receiver.answer = lambda call: (404, {}, 0)
    world = create_actions([{"name": "p", "on": "SENT", "webhook": "crm"}])
    world.insert_ids("m", "n")
    process = world.installation.start()
    world.topic.send(receipt("m", "SENT"), receipt("n", "SENT"))
    wait_for_runs(world, process, {"dead": 2})
    process.stop()
    listed = world.installation.command("actions", "list", "--status", "dead").stdout.splitlines()
    assert len(listed) >= 3 and listed[0].split()[:3] == ["id", "run_id", "pipeline"] and "answer 404" not in "".join(listed)
    rows = world.installation.command("actions", "list", "--format", "csv").stdout.splitlines()
    assert len(rows) == 3 and rows[0].startswith("id,run_id,pipeline,")
    (one, _) = world.installation.json("actions", "list")
    shown = world.installation.command("actions", "show", str(one["id"])).stdout
    assert "answer 404" in shown and "crm" in shown and world.installation.json("actions", "list", "--limit", "1") == [one]


def test_more_requests_than_the_database_takes_are_turned_away_at_once(create_actions, receiver):
    world = create_actions(API, http={"runs_token": RUNS_TOKEN}, postgres={"lock_timeout": "30s"})
    process = world.installation.start()
    process.wait_for_log("pipelines are in effect", LONG)
    pages = Operations(process, token=RUNS_TOKEN)

    def begin(number):
        return pages.ask("/runs/p", json.dumps({"subject": f"person{number}"}).encode())

    with world.database.connect() as operator, ThreadPoolExecutor(20) as pool:
        operator.execute("BEGIN")
        operator.execute("LOCK TABLE receiptd.run")
        asked = [pool.submit(begin, number) for number in range(20)]
        process.wait_for(lambda: sum(each.done() for each in asked) == 4, LONG, "four are turned away")
        for each in asked:
            if each.done():
                assert each.result().status == 503 and "too many requests wait for the database" in each.result().text
        operator.execute("ROLLBACK")
        codes = collections.Counter(each.result().status for each in asked)
    assert codes == {200: 16, 503: 4}
    wait_for_runs(world, process, {"done": 16})
    process.stop()


def test_an_answer_in_whatever_bytes_is_kept_as_far_as_it_is_text(create_actions, receiver):
    receiver.answer = lambda call: (404, {}, 0)
    receiver.body = lambda status: b"no \xff\x00 caf\xe9"
    world = create_actions([{"name": "p", "on": "SENT", "webhook": "crm"}])
    world.insert_ids("m")
    process = world.installation.start()
    world.topic.send(receipt("m", "SENT"))
    wait_for_runs(world, process, {"dead": 1})
    assert told(world, "answer_status", "answer") == [("m", "dead", "refused", 404, "no ?? caf?")]
    process.stop()


def test_what_waits_for_an_endpoint_or_topic_that_was_taken_away_is_given_up_and_can_be_retried(create_actions, create_topic, receiver):
    """Runs go on under the wording with which they began."""
    target, other = create_topic(1), create_topic(1)
    crm = {"name": "crm", "url": receiver.url, "secrets": [SECRET], "timeout": "5s"}
    stage = [{"await": {"status": "CLICKED", "within": "1h"}}]
    old = [{"name": "call", "on": "SENT", "stages": [{"name": "s", "actions": [*stage, {"webhook": "crm"}]}]},
           {"name": "tell", "on": "SENT", "subject": "campaign_id", "stages": [
               {"name": "s", "actions": [*stage, {"produce": {"topic": str(target), "key": "subject"}}]}]}]
    new = [{"name": "call", "on": "SENT", "webhook": "other"},
           {"name": "tell", "on": "SENT", "subject": "campaign_id", "produce": {"topic": str(other), "key": "subject"}}]
    world = create_actions(old, {"max_attempts": 2})
    world.insert_ids("m")
    process = world.installation.start()
    world.topic.send(receipt("m", "SENT"))
    awaiting = "SELECT count(*) FROM receiptd.action WHERE status = 'pending' AND awaits IS NOT NULL"
    world.wait(lambda: world.database.value(awaiting) == 2, process, LONG, "both wait")

    def reload(pipelines, endpoints):
        done = process.log().count("2 pipelines are in effect")
        world.installation.configure(pipelines=pipelines, actions={"endpoints": endpoints})
        process.signal(signal.SIGHUP)
        process.wait_for(lambda: process.log().count("2 pipelines are in effect") > done, LONG, "the reload is over")

    reload(new, [crm | {"name": "other"}])
    world.topic.send(receipt("m", "CLICKED"))
    wait_for_runs(world, process, {"dead": 2})
    found = world.database.query("SELECT p.name, a.class, a.attempt FROM receiptd.action a JOIN receiptd.pipeline p ON p.id = a.pipeline_id"
                                 " WHERE a.status = 'dead' ORDER BY 1")
    assert found == [("call", "no_endpoint", 2), ("tell", "no_topic", 2)]
    assert receiver.seen() == [] and all(high == low for low, high in target.watermarks().values())
    told_why = {action["target"]: action for action in world.installation.json("actions", "list", "--status", "dead")}
    assert set(told_why) == {"crm", str(target)}

    reload(old, [crm])
    assert "2 actions will be tried again" in world.installation.command("actions", "retry", "all").stdout
    wait_for_runs(world, process, {"done": 2})
    assert len(receiver.seen()) == 1 and sum(high - low for low, high in target.watermarks().values()) == 1
    process.stop()


def test_an_operator_who_locks_the_tables_of_actions_delays_them_only(create_actions, create_topic, receiver):
    source = create_topic(1)
    world = create_actions([{"name": "p", "on": "SENT", "webhook": "crm"}, {"name": "q", "on": {"topic": str(source)}, "webhook": "crm"}],
                           postgres={"zombie_timeout": "5m"})
    world.insert_ids("a", "b")
    begun = []

    def answer(call):
        begun.append(call)
        return 200, {}, 1.0

    receiver.answer = answer
    process = world.installation.start()
    process.wait_for_log("actions: assigned 1 partitions", LONG)
    world.topic.send(receipt("a", "SENT"))
    world.wait(lambda: begun, process, LONG, "a call is on its way")
    with world.database.connect() as operator, operator.transaction():
        for table in ("pipeline", "run", "action", "action_lane", "action_progress"):
            operator.execute(f"LOCK TABLE receiptd.{table}")
        world.topic.send(receipt("b", "SENT"))
        source.send({"org_id": "o", "subject": "ann"})
        # one line for the cause, by the statement that meets it first
        process.wait_for_log("level=warn component=actions .* failed, will be tried again: .*lock timeout.*HINT: the lock is held by "
                             f"backend {operator.info.backend_pid} ", LONG)
        process.wait_for_log('level=warn .*(runs of topics|reading positions of topics) failed, will be tried again: .*lock timeout', LONG)
    receiver.answer = lambda call: (200, {}, 0)
    wait_for_runs(world, process, {"done": 3})
    process.stop()
    assert sorted({call.subject for call in receiver.seen()}) == ["o/a", "o/ann", "o/b"]
    receiver.assert_tokens_grow()


TABLES = ("run", "action", "action_lane", "action_instance", "action_progress", "org_limit", "pipeline_delta", "run_intent")


def test_every_run_ends_once_however_often_statements_fail(create_actions, create_topic, receiver):
    source, count = create_topic(1), 300
    world = create_actions([{"name": "p", "on": "SENT", "stages": [{"name": "s", "actions": [
                                {"webhook": "crm"}, {"await": {"status": "OPENED", "within": "1s", "else": "s2"}}]},
                                {"name": "s2", "actions": [{"webhook": "crm"}]}]},
                            {"name": "q", "on": {"topic": str(source)}, "webhook": "crm"}], {"lease": "10s"})
    world.insert({f"m{n}": Row(f"org{n % 3}", "c") for n in range(count)})
    process = world.installation.start()
    process.wait_for_log("actions: assigned 1 partitions", LONG)
    with failing(world.database, TABLES, 0.05):
        for first in range(0, count, 30):
            world.topic.send(*[receipt(f"m{n}", "SENT") for n in range(first, first + 30)])
            source.send(*[{"org_id": "o", "subject": f"s{n}"} for n in range(first, first + 30)])
        world.wait_until_consumed(process)
        wait_for_runs(world, process, {"done": 2 * count}, 3 * LONG)
    process.stop()
    assert world.database.query("SELECT name, started::int, repeated::int FROM receiptd.pipeline_count ORDER BY 1") == [
        ("p", count, 0), ("q", count, 0)]
    receiver.assert_tokens_grow()
    assert overlaps(world) == 0
    assert "refused by the test" in process.log()
    assert process.log().count("writing results of actions failed") < 200


def test_without_pipelines_requests_are_told_so(create_actions, receiver):
    world = create_actions([], http={"runs_token": RUNS_TOKEN})
    process = world.installation.start()
    answer = Operations(process, token=RUNS_TOKEN).ask("/runs/p", b'{"subject": "ann"}')
    assert (answer.status, answer.text) == (404, "no pipelines are configured\n")
    process.stop()


def test_a_topic_that_lost_records_or_was_made_anew_is_said_and_a_lost_session_loses_nothing(create_actions, create_topic, receiver):
    source = create_topic(1, retention_ms=-1)
    world = create_actions([{"name": "p", "on": {"topic": str(source)}, "webhook": "crm"}])

    def send(*names):
        source.send(*[{"org_id": "o", "subject": name} for name in names])

    process = world.installation.start("a")
    process.wait_for_log("actions: assigned 1 partitions", LONG)
    send("a", "b", "c")
    wait_for_runs(world, process, {"done": 3})
    for turn in range(5):  # sessions of the topics' reader are lost while it reads
        send(*[f"s{turn}-{n}" for n in range(200)])
        world.database.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
                             " AND application_name LIKE '%actions-topics%'")
    wait_for_runs(world, process, {"done": 1003})
    process.stop()

    send("gone1", "gone2", "kept")
    broker.delete_records(world.brokers, str(source), {0: 1005})
    process = world.installation.start("b")
    process.wait_for_log("retention has deleted records 1003…1004 before they were read, going on behind them", LONG)
    wait_for_runs(world, process, {"done": 1004})
    send("later")
    wait_for_runs(world, process, {"done": 1005})
    process.stop()
    subjects = [subject for subject, in world.database.query("SELECT subject FROM receiptd.run")]
    assert len(subjects) == len(set(subjects)) and {"kept", "later"} < set(subjects) and not {"gone1", "gone2"} & set(subjects)

    world.database.execute("UPDATE receiptd.action_progress SET next_offset = 5000")
    process = world.installation.start("c")
    said = process.wait_for_log("ends at 1007, but 5000 was read already.*HINT: receiptd (positions set .* --reader actions)", LONG)
    world.installation.command(*said.group(1).split())
    wait_for_runs(world, process, {"done": 1007})  # what is still there begins again: kept and later
    process.stop()


def test_records_of_a_topic_begin_runs_exactly_once_over_crashes(create_actions, create_topic, receiver):
    """An import by a topic: what cannot begin a run is a dead letter, what does not match is passed over."""
    source, count = create_topic(2), 3000
    world = create_actions([{"name": "p", "on": {"topic": str(source), "match": {"org": ["a", "b"]}}, "webhook": "crm",
                             "once_per": ["org_id", "subject"]},
                            {"name": "q", "on": {"topic": str(source), "match": {"campaign": "special"}}, "webhook": "crm"}],
                           {"max_in_flight": 8, "lease": "3s", "endpoints": [{"name": "crm", "url": receiver.url, "timeout": "1s"}]})
    process = world.installation.start("a")
    process.wait_for_log("actions: assigned 2 partitions", LONG)
    source.send({"org_id": "a", "subject": "special", "campaign_id": "special", "tier": 3}, {"org_id": "c", "subject": "no match"})
    wait_for_runs(world, process, {"done": 2})
    assert {(c.body["pipeline"], c.subject, str(c.body["data"])) for c in receiver.seen()} == {
        ("p", "a/special", "{'tier': 3}"), ("q", "a/special", "{'tier': 3}")}
    source.send(*[{"org_id": "ab"[n % 2], "subject": f"person{n % 2000}"} for n in range(count)])
    source.send(b"no json", b"\xff", b"[]", {"org_id": "a"}, {"subject": "\0", "org_id": "a"},
                b"[" + b" " * 100_000 + b"]", b" " * (8 * 1024 * 1024 + 1))
    packed = source.producer(compression_type="gzip", message_max_bytes=100_000_000)
    packed.produce(str(source), b" " * 40_000_000)  # beyond kafka.batch_limit
    assert packed.flush(30) == 0
    for name in "bc":
        world.wait(lambda: world.database.value("SELECT count(*) FROM receiptd.run") > 2, process, LONG, "some begin")
        process.kill()
        process = world.installation.start(name)
    ends = {p: high for p, (_, high) in source.watermarks().items()}
    read = "SELECT partition, next_offset FROM receiptd.action_progress WHERE topic = %s"
    world.wait(lambda: dict(world.database.query(read, str(source))) == ends, process, 2 * LONG, "the topic is read")
    assert world.database.value("SELECT count(*) FROM receiptd.run") == 2000 + 2
    assert world.database.value("SELECT count(*) FROM receiptd.dead_letter WHERE topic = %s AND reason = 'not_a_run'", str(source)) == 8
    cut = "SELECT octet_length(payload), detail FROM receiptd.dead_letter WHERE octet_length(payload) > 1000"
    [(size, detail)] = world.database.query(cut)
    assert size == 65536 and detail.endswith("; the first of 100002 bytes")
    assert world.database.query("SELECT name, started::int, repeated::int FROM receiptd.pipeline_count ORDER BY 1") == [
        ("p", 2001, 1000), ("q", 1, 0)]
    process.stop()


def test_an_instance_without_a_partition_of_the_topic_takes_over_when_the_other_is_gone(create_actions, create_topic, receiver):
    source = create_topic(1)
    world = create_actions([{"name": "p", "on": {"topic": str(source)}, "webhook": "crm"}])
    first = world.installation.start("a")
    first.wait_for_log("actions: assigned 1 partitions", LONG)
    second = world.installation.start("b")
    second.wait_for_log('msg="ready"', LONG)
    source.send({"org_id": "o", "subject": "ann"})
    wait_for_runs(world, second, {"done": 1})
    first.kill()
    source.send({"org_id": "o", "subject": "bob"})
    wait_for_runs(world, second, {"done": 2})
    assert [call.subject for call in receiver.seen()] == ["o/ann", "o/bob"]
    second.stop()


def test_counters_stay_exact_with_pipelines_on(create_actions, receiver):
    world = create_actions([{"name": "p", "on": "DELIVERED", "once_per": ["campaign_id"], "webhook": "crm"},
                            {"name": "w", "on": "SENT", "stages": [{"name": "s", "actions": [
                                {"await": {"status": "CLICKED", "within": "1h"}}]}]}],
                           events=8_000, traffic={"late": 0.1})
    process = world.installation.start()
    world.produce()
    world.wait_until_consumed(process)
    world.insert(world.stream.late)
    world.finish(process)
    process.stop()
