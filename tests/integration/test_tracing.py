"""Spans of batches and of webhooks, as a collector of OpenTelemetry's own messages reads them."""

import json
import secrets
import time

import pytest

from support import intake as gateways
from support.daemon import binary
from support.operations import Operations
from support.otlp import Collector, Link
from support.receiver import Receiver
from support.wait import wait_for

INTERNAL, SERVER, CLIENT, PRODUCER, CONSUMER = 1, 2, 3, 4, 5
PARTS = {"fetch", "decode", "apply", "commit"}


@pytest.fixture
def collector():
    made = Collector()
    yield made
    made.close()


def traced(world, collector, sample="0", **settings):
    """A world whose daemon sends its spans there."""
    world.installation.configure(tracing={"endpoint": collector.url, "sample": sample, **settings})
    return world


def one_lane(create_world, **postgres):
    return create_world(partitions=1, lanes=1, postgres={"connections": 1, **postgres})


def start(world):
    process = world.installation.start()
    pages = Operations(process)
    pages.wait_until_ready()
    return process, pages


class Parent:
    """What a producer's span would put in its headers."""

    def __init__(self, sampled=True, state=None):
        self.trace, self.span, self.sampled, self.state = secrets.token_hex(16), secrets.token_hex(8), sampled, state

    @property
    def text(self):
        return f"00-{self.trace}-{self.span}-0{int(self.sampled)}"

    @property
    def headers(self):
        return [("traceparent", self.text)] + ([("tracestate", self.state)] if self.state else [])

    @property
    def link(self):
        return Link(self.trace, self.span, self.state or "")


def send(world, parents, prefix="m"):
    """One record, one message and one receipt for each; None: without headers."""
    ids = [f"{prefix}{number}" for number in range(len(parents))]
    world.insert_ids(*ids)
    world.topic.send_records([{"value": {"message_id": id, "status": "SENT"}, "partition": number % world.topic.partitions,
                               "headers": parent and parent.headers} for number, (id, parent) in enumerate(zip(ids, parents))])


def wait_for_spans(process, collector, condition, what, timeout=60):
    return process.wait_for(lambda: condition(collector.spans()), timeout, what)


def links(spans):
    return [link for span in spans for link in span.links]


def test_a_batch_is_a_span_with_links_to_its_records_and_its_parts_below(create_world, collector):
    world = traced(create_world(partitions=2, lanes=2), collector, token="a-secret-token")
    process, pages = start(world)
    parents = [Parent(state=f"vendor=v{number}" if number % 2 else None) for number in range(20)]
    others = [Parent(sampled=False), None] * 5
    began = time.time_ns()
    send(world, parents + others)
    world.wait_until_consumed(process)
    wait_for_spans(process, collector, lambda spans: len(set(links(spans))) >= len(parents), "all records are linked")
    batches = collector.spans("batch apply")
    assert sorted(links(batches)) == sorted(parent.link for parent in parents)
    assert len({span.trace for span in batches}) == len(batches)
    wait_for_spans(process, collector, lambda spans: len(spans) >= 5 * len(batches), "all parts")
    spans = collector.spans()
    assert len({span.id for span in spans}) == len(spans) and collector.tokens == {"Bearer a-secret-token"}
    for batch in batches:
        check_batch(batch, [span for span in spans if span.parent == batch.id], began)
    assert sum(batch.attributes["receiptd.receipts"] for batch in batches) >= len(parents)
    pages.wait_for_figure("receiptd_spans_exported_total", lambda value: value == len(spans))
    assert pages.figures().get_one("receiptd_spans_dropped_total") == 0
    assert "a-secret-token" not in process.log()


def check_batch(batch, children, began):
    assert batch.kind == CONSUMER and batch.parent == "" and not batch.failed
    assert batch.resource["service.name"] == "receiptd" and batch.resource["service.instance.id"]
    assert batch.attributes["messaging.system"] == "kafka" and batch.attributes["messaging.batch.message_count"] > 0
    parts = {span.name: span for span in children}
    assert set(parts) == PARTS and len(children) == len(PARTS)
    for part in children:
        assert part.trace == batch.trace and not part.links
        assert batch.begin <= part.begin <= part.end <= batch.end
    # A record's timestamp in Kafka has whole milliseconds, and the clock of this test is the daemon's.
    assert began - 1_000_000_000 <= batch.begin and batch.end <= time.time_ns() + 1_000_000_000
    assert parts["fetch"].begin <= parts["decode"].begin <= parts["fetch"].end <= parts["decode"].end
    assert parts["decode"].end <= parts["apply"].begin <= parts["apply"].end == parts["commit"].begin
    assert parts["apply"].kind == CLIENT and parts["apply"].attributes == {"db.system": "postgresql"}


def test_the_parents_decision_counts_before_the_ratio(create_world, collector):
    world = traced(one_lane(create_world), collector, sample="0")
    process, pages = start(world)
    send(world, [Parent(sampled=False), None])
    world.wait_until_consumed(process)
    parent = Parent()
    send(world, [parent], prefix="n")
    wait_for_spans(process, collector, lambda spans: parent.link in links(spans), "the one with a sampled parent")
    assert links(collector.spans()) == [parent.link]
    assert len(collector.spans("batch apply")) == 1
    process.stop()


def test_a_ratio_of_one_traces_all_and_a_reload_changes_it(create_world, collector):
    world = traced(one_lane(create_world), collector, sample="1")
    process, pages = start(world)
    send(world, [None])
    wait_for_spans(process, collector,
                   lambda spans: any(span.attributes.get("receiptd.receipts") == 1 for span in spans), "a batch")
    world.installation.configure(tracing={"sample": "0", "queue": "1MiB"})
    process.signal(1)
    process.wait_for_log("reload: applied: tracing.sample")
    process.wait_for_log("reload: needs a restart: tracing.queue")
    process.stop()


def test_many_links_are_bounded_and_the_rest_is_counted(create_world, collector):
    world = traced(one_lane(create_world), collector)
    parents = [Parent() for _ in range(700)]
    world.installation.migrate()
    send(world, parents)  # before the start: they come in large batches
    process, pages = start(world)
    total = lambda spans: sum(len(span.links) + span.message.dropped_links_count for span in spans)  # noqa: E731
    wait_for_spans(process, collector, lambda spans: total(spans) >= len(parents), "all links")
    assert total(collector.spans()) == len(parents)
    most = max(len(span.links) for span in collector.spans())
    assert most == 128 or (most < 128 and "valgrind" in str(binary()))  # where it is slow, batches are small
    assert {link for link in links(collector.spans())} <= {parent.link for parent in parents}


def test_a_transaction_that_fails_is_a_span_that_failed(create_world, collector):
    world = traced(one_lane(create_world, lock_timeout="300ms", zombie_timeout="1m"), collector)
    process, pages = start(world)
    world.insert_ids("m0")
    with world.database.connect() as blocker, blocker.transaction():
        blocker.execute("SELECT FROM receiptd.message_inbox WHERE message_id = 'm0' FOR UPDATE")
        parent = Parent()
        world.topic.send_records([{"value": {"message_id": "m0", "status": "SENT"}, "headers": parent.headers}])
        wait_for_spans(process, collector, lambda spans: any(span.failed for span in spans), "a failed span")
    world.wait_until_consumed(process)
    wait_for_spans(process, collector,
                   lambda spans: any(span.links and not span.failed for span in spans), "one that was committed")
    failed = [span for span in collector.spans() if span.failed]
    assert all(span.attributes["error.type"] == "55P03" and span.links == [parent.link] for span in failed)


def test_a_collector_that_does_not_answer_costs_spans_and_nothing_else(create_world, collector):
    collector.held.set()
    world = traced(create_world(30_000, seed=5, batch={"max_events": 20}), collector, sample="1", queue="64KiB")
    world.insert(world.stream.late)
    process, pages = start(world)
    world.feed(per_second=20_000).join()
    world.finish(process)  # exact, as ever
    pages.wait_for_figure("receiptd_spans_dropped_total", lambda value: value > 0, reason="full")
    began = time.monotonic()
    process.stop(timeout=60)  # its end does not wait for the collector, whose request has 10 s
    assert "took longer than shutdown.deadline" not in process.log()
    assert collector.requests >= 1 and time.monotonic() - began < 60


def test_spans_wait_for_a_collector_that_comes_later(create_world, collector):
    world = traced(one_lane(create_world), collector)
    port = collector.port
    collector.close()
    world.installation.configure(tracing={"endpoint": f"{collector.url}?api_key=hunter2", "sample": "1"})
    process, pages = start(world)
    parent = Parent()
    send(world, [parent])
    process.wait_for_log(r"spans cannot be sent to \S+/v1/traces: ")
    shown = pages.get("/statusz").text + world.installation.command("check-config", "--print").stdout
    assert "hunter2" not in process.log() + shown
    later = Collector(port)
    try:
        wait_for_spans(process, later, lambda spans: parent.link in links(spans), "the span of before", timeout=90)
        process.wait_for_log("spans are taken again")
    finally:
        later.close()


def test_what_the_collector_refuses_is_not_sent_again(create_world, collector):
    collector.status = 400
    world = traced(one_lane(create_world), collector)
    process, pages = start(world)
    send(world, [Parent()])
    pages.wait_for_figure("receiptd_spans_dropped_total", lambda value: value >= 5, reason="refused")
    assert "HINT: tracing.endpoint needs the whole path" in process.log()
    collector.status = 200
    parent = Parent()
    send(world, [parent], prefix="n")
    wait_for_spans(process, collector, lambda spans: parent.link in links(spans), "the next span")
    process.stop()


def test_a_webhooks_trace_goes_on_through_kafka_into_the_batch(create_world, collector, create_topic):
    world = traced(one_lane(create_world), collector)
    letters = create_topic(1)
    world.installation.configure(intake={
        "enabled": True, "listen": "127.0.0.1:0", "topic": str(world.topic), "dead_letter_topic": str(letters),
        "alias": "off", "accounts": gateways.ACCOUNTS})
    process, pages = start(world)
    port = int(process.wait_for_log(gateways.LISTENS).group(1))
    world.insert_ids("m0", "m1")
    parent, unsampled = Parent(state="congo=t61rcWkgMzE"), Parent(sampled=False, state="a=b")
    with gateways.Client(port) as client:
        for id, given in (("m0", parent), ("m1", unsampled)):
            headers = ["Content-Type: application/x-www-form-urlencoded",
                       *(f"{name}: {value}" for name, value in given.headers)]
            answer = client.request("POST", f"/dlr/acme?mid={id}", b"MessageSid=SM1&MessageStatus=sent", headers)
            assert answer.status // 100 == 2, answer
    wait_for_spans(process, collector, lambda spans: links(spans), "a batch with a link")
    server, = collector.spans("webhook")
    assert server.kind == SERVER and (server.trace, server.parent) == (parent.trace, parent.span)
    assert server.attributes["http.response.status_code"] // 100 == 2 and server.attributes["receiptd.account"] == "acme"
    assert server.attributes["receiptd.receipts"] == 1 and not server.failed
    assert set(links(collector.spans("batch apply"))) == {Link(parent.trace, server.id, parent.state)}
    found = {json.loads(value)[0]["message_id"]: headers for value, headers in gateways.read_topic(world.topic)}
    assert found["m0"]["traceparent"] == f"00-{parent.trace}-{server.id}-01" and found["m0"]["tracestate"] == parent.state
    # Who is not traced is passed on as it came.
    assert found["m1"]["traceparent"] == unsampled.text and found["m1"]["tracestate"] == "a=b"
    process.stop()


def test_a_webhook_without_a_trace_begins_one_and_the_last_spans_are_sent_at_the_end(create_receiptd, database, topic,
                                                                                      create_topic, collector):
    installation = create_receiptd(database, topic)
    installation.configure(tracing={"endpoint": collector.url, "sample": "1"},
                           intake={"listen": "127.0.0.1:0", "alias": "off", "dead_letter_topic": str(create_topic(1)),
                                   "accounts": gateways.ACCOUNTS})
    process = gateways.start(installation)
    with gateways.Client(process.port) as client:
        client.send(b"".join(gateways.twilio(f"t{number}") for number in range(50)))
        assert all(client.answer().status // 100 == 2 for _ in range(50))
    process.stop()
    spans = collector.spans("webhook")
    assert len(spans) == 50 and len({span.trace for span in spans}) == 50 and not any(span.parent for span in spans)
    contexts = {f"00-{span.trace}-{span.id}-01" for span in spans}
    assert {headers["traceparent"] for _, headers in gateways.read_topic(topic)} <= contexts
    wait_for(lambda: not process.running, 60, "the end")


# ---- pipelines: the trace goes on from what begins a run to its calls


@pytest.fixture
def receiver():
    made = Receiver()
    yield made
    made.close()


def with_pipelines(create_world, receiver, *pipelines, **settings):
    actions = {"allow_private": True, "endpoints": [{"name": "crm", "url": receiver.url, "timeout": "10s"}], "poll_interval": "20ms",
               "lane_lease": "2s", "retry_min": "10ms", "retry_max": "1s"}
    return create_world(partitions=1, lanes=1, postgres={"connections": 1}, actions=actions, pipelines=list(pipelines), **settings)


def wait_for_runs(world, process, count, status="done"):
    ended = "SELECT count(*) FROM receiptd.run WHERE status = %s"
    world.wait(lambda: world.database.value(ended, status) == count, process, 60, f"{count} runs are {status}")


def given(calls, key="message_id"):
    """The traceparents of the calls, by what they are for."""
    found = {}
    for call in calls:
        found.setdefault(call.body[key], []).append(call.headers.get("traceparent"))
    return found


def test_the_trace_of_a_receipt_goes_on_through_its_run_into_every_attempt(create_world, create_topic, collector, receiver):
    target = create_topic(1)
    stages = [{"name": "s", "actions": [{"webhook": "crm"}, {"await": {"status": "OPENED", "within": "1h", "else": "late"}},
                                        {"produce": {"topic": str(target), "key": "subject"}}]},
              {"name": "late", "actions": [{"webhook": "crm"}]}]
    receiver.answer = lambda call: (503 if call.attempt == 1 else 200, {}, 0)
    world = traced(with_pipelines(create_world, receiver, {"name": "p", "on": "SENT", "stages": stages}), collector)
    process, pages = start(world)
    parent, unsampled, opener = Parent(), Parent(sampled=False), Parent()
    send(world, [parent, unsampled, None])
    awaiting = "SELECT count(*) FROM receiptd.action WHERE awaits IS NOT NULL AND status = 'pending'"
    world.wait(lambda: world.database.value(awaiting) == 3, process, 60, "all wait")
    world.topic.send_records([{"value": {"message_id": f"m{number}", "status": "OPENED"}, "headers": opener.headers} for number in range(3)])
    wait_for_runs(world, process, 3)
    process.stop()
    calls = given(receiver.seen())
    assert calls["m1"] == calls["m2"] == [None, None]  # nobody sampled these, and no parent is made up
    first, second = collector.spans("action webhook")
    assert calls["m0"] == [f"00-{parent.trace}-{span.id}-01" for span in (first, second)]
    assert all((span.trace, span.parent, span.kind) == (parent.trace, parent.span, CLIENT) for span in (first, second))
    assert first.failed and first.attributes["error.type"] == "server_error" and not second.failed
    for number, span in enumerate((first, second), 1):
        assert span.attributes["receiptd.attempt"] == number and span.attributes["receiptd.target"] == "crm"
        assert span.attributes["http.response.status_code"] == (503, 200)[number - 1] and span.attributes["receiptd.run"] > 0
        assert span.end > span.begin
    (record,) = collector.spans("action produce")  # whoever wakes a run does not change its trace
    assert (record.trace, record.parent, record.kind, record.failed) == (parent.trace, parent.span, PRODUCER, False)
    sent = {json.loads(value)["message_id"]: headers.get("traceparent") for value, headers in gateways.read_topic(target)}
    assert sent == {"m0": f"00-{parent.trace}-{record.id}-01", "m1": None, "m2": None}


def test_requests_and_records_that_begin_runs_hand_their_trace_on(create_world, create_topic, collector, receiver):
    source = create_topic(1)
    world = traced(with_pipelines(create_world, receiver, {"name": "asked", "on": "api", "webhook": "crm"},
                                  {"name": "read", "on": {"topic": str(source)}, "webhook": "crm"},
                                  http={"listen": "127.0.0.1:0", "runs_token": "whoever-begins-runs-has-this"}), collector)
    process, _ = start(world)
    process.wait_for_log("pipelines are in effect", 60)
    pages = Operations(process, token="whoever-begins-runs-has-this")
    parents = {name: Parent(sampled=not name.startswith("unsampled")) for name in ("asked", "unsampled", "read", "unsampled read")}

    def ask(subjects, **headers):
        answer = pages.ask("/runs/asked", json.dumps([{"subject": subject} for subject in subjects]).encode(), **headers)
        assert answer.status == 200, answer

    ask(["asked", "with it"], traceparent=parents["asked"].text)
    ask(["unsampled"], traceparent=parents["unsampled"].text)
    ask(["wrong"], traceparent=parents["asked"].text[:-1])
    ask(["none"])
    source.send_records([{"value": {"subject": name}, "headers": parents[name].headers} for name in ("read", "unsampled read")]
                        + [{"value": {"subject": "bare"}}])
    wait_for_runs(world, process, 8)
    process.stop()
    spans = {span.id: span for span in collector.spans("action webhook")}
    assert len(spans) == 3
    for subject, (text,) in given(receiver.seen(), "subject").items():
        if subject not in ("asked", "with it", "read"):
            assert text is None, subject
            continue
        parent, span = parents[subject if subject == "read" else "asked"], spans[text[36:52]]
        assert (span.trace, span.parent) == (parent.trace, parent.span) and text == f"00-{parent.trace}-{span.id}-01"


def test_a_daemon_without_a_collector_passes_the_trace_on_as_it_came(create_world, receiver):
    world = with_pipelines(create_world, receiver, {"name": "p", "on": "SENT", "webhook": "crm"})
    process, pages = start(world)
    parent = Parent()
    send(world, [parent, Parent(sampled=False)])
    wait_for_runs(world, process, 2)
    process.stop()
    assert given(receiver.seen()) == {"m0": [parent.text], "m1": [None]}


def test_calls_of_runs_without_a_trace_are_traced_by_ratio(create_world, collector, receiver):
    world = traced(with_pipelines(create_world, receiver, {"name": "p", "on": "SENT", "webhook": "crm"}), collector, sample="1")
    process, pages = start(world)
    send(world, [None, Parent(sampled=False), Parent()])
    wait_for_runs(world, process, 3)
    process.stop()
    spans = {f"00-{span.trace}-{span.id}-01": span for span in collector.spans("action webhook")}
    assert len(spans) == 3 and {texts[0] for texts in given(receiver.seen()).values()} == set(spans)
    assert sorted(bool(span.parent) for span in spans.values()) == [False, False, True]
