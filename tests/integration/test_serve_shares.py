"""receiptd serve: whatever one caller asks, others are answered. A caller is a token, a link, an organisation of a proxy, or an address without any of them."""

import json
import resource
import secrets
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import psycopg
import pytest
from support import reader
from support.site import Site, bury, operator
from support.wait import wait_for

MESSAGES = 40_000  # of the large campaign: a question that reads all of them takes some hundred milliseconds


@pytest.fixture
def site(receiptd, database):
    made = Site(receiptd, database)
    yield made
    if made.process.running:
        made.process.stop()
    made.drop()


@pytest.fixture
def large(site):
    """The site with a large campaign whose messages expire, so that `pending` reads each of them."""
    site.process.stop()
    site.database.execute("INSERT INTO receiptd.message_inbox (message_id, org_id, campaign_id, status, status_at, updated_at) SELECT 'large-' || n, 'alpha-org',"
                          " 'large', 300, now(), now() FROM generate_series(1, %s) n", MESSAGES)
    site.database.execute("INSERT INTO receiptd.counter_delta (kind, campaign_id, status, messages, events) VALUES ('funnel', '{large}', '{300}', %s, '{0}')", [MESSAGES])
    site.database.execute("ANALYZE receiptd.message_inbox")
    site.receiptd.configure(inbox={"expiry": [{"column": "org_id", "value": f"org-{n}", "after": "1h"} for n in range(8)] + [{"after": "72h"}]},
                            serve={"statement_timeout": "30s"})
    site.process = reader.start(site.receiptd)
    return site


def link_of(site, campaign):
    return site.receiptd.command("serve", "link", campaign).stdout.strip().partition("?link=")[2]


class Flood:
    """Connections that ask one thing after the other, many in one packet, and count what comes back."""

    def __init__(self, site, connections, make, pipelined=1):
        self.ends, self.statuses = threading.Event(), {}
        self.port, self.make, self.pipelined = site.process.port, make, pipelined
        self.threads = [threading.Thread(target=self.run, daemon=True) for _ in range(connections)]
        for thread in self.threads:
            thread.start()

    def run(self):
        while not self.ends.is_set():
            try:
                with socket.create_connection(("127.0.0.1", self.port), 30) as client:
                    while not self.ends.is_set():
                        self.ask(client)
            except OSError:
                self.ends.wait(0.05)

    def ask(self, client):
        requests = []
        for _ in range(self.pipelined):
            path, *headers = self.make()
            requests.append("\r\n".join([f"GET /api/v1{path} HTTP/1.1", f"Host: 127.0.0.1:{self.port}", *headers, "", ""]))
        client.sendall("".join(requests).encode())
        answer = b""
        while answer.count(b"HTTP/1.1 ") < self.pipelined:
            piece = client.recv(65536)
            if not piece:
                raise ConnectionError
            answer += piece
        for part in answer.split(b"HTTP/1.1 ")[1:]:
            self.statuses[int(part[:3])] = self.statuses.get(int(part[:3]), 0) + 1


@contextmanager
def flood(site, connections, make, pipelined=1):
    made = Flood(site, connections, make, pipelined)
    try:
        yield made
    finally:
        made.ends.set()
        for thread in made.threads:
            thread.join()


def everybody_is_answered(site, tokens, paths, times=10):
    """Each of these tokens gets an answer to each of these questions."""
    for _ in range(times):
        for token in tokens:
            for path in paths:
                answer = site.get(path, token)
                assert answer.status == 200, (path, answer)


def garbage():
    return "/me", f"Authorization: Bearer rcpt_{secrets.token_hex(32)}"


# ---- tokens that nobody knows ----------------------------------------------------------------------------------------

# Three processes, since one of Python does not ask fast enough: each packet has 16 requests with tokens of their own.
GARBAGE = """
import secrets, selectors, socket, sys
port, connections, kind = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
same = secrets.token_hex(32)
def packet():
    line = {"each another one": lambda: "Bearer " + secrets.token_hex(32), "the same": lambda: "Bearer " + same, "another scheme": lambda: "Basic eDp5"}[kind]
    return "".join(f"GET /api/v1/me HTTP/1.1\\r\\nHost: 127.0.0.1:{port}\\r\\nAuthorization: {line()}\\r\\n\\r\\n" for _ in range(16)).encode()
watch, answered, statuses, packets = selectors.DefaultSelector(), 0, set(), [packet() for _ in range(4000)]
for _ in range(connections):
    client = socket.create_connection(("127.0.0.1", port))
    client.setblocking(False)
    watch.register(client, selectors.EVENT_READ, [0])
    client.send(packets.pop())
while True:
    for key, _ in watch.select(1):
        try:
            data = key.fileobj.recv(262144)
        except OSError:
            data = b""
        if not data:
            watch.unregister(key.fileobj)
            key.fileobj.close()
            client = socket.create_connection(("127.0.0.1", port))
            client.setblocking(False)
            watch.register(client, selectors.EVENT_READ, [0])
            client.send(packets.pop() if packets else packet())
            continue
        count = data.count(b"HTTP/1.1 ")
        statuses |= {part[:3].decode() for part in data.split(b"HTTP/1.1 ")[1:]}
        answered += count
        key.data[0] += count
        if key.data[0] >= 16:
            key.data[0] = 0
            key.fileobj.send(packets.pop() if packets else packet())
            if answered > 16000:
                print(answered, *sorted(statuses), flush=True)
                answered = 0
"""


@pytest.mark.parametrize("kind", ["each another one", "the same", "another scheme"])
def test_tokens_that_nobody_knows_keep_nobody_out(site, kind):
    """Nor one who comes for the first time, from the same address, in the middle of it."""
    floods = [subprocess.Popen([sys.executable, "-c", GARBAGE, str(site.process.port), "130", kind], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    try:
        statuses = {word for flood in floods for word in flood.stdout.readline().split()[1:]}
        everybody_is_answered(site, [site.token], ["/me", "/campaigns", "/campaigns/alpha-campaign/funnel"])
        new = reader.make_token(site.receiptd, "new", "read")
        everybody_is_answered(site, [new], ["/me", "/campaigns"])
        assert statuses and statuses <= {"401", "429"}, statuses
    finally:
        for flood in floods:
            flood.kill()
            flood.communicate()


def test_the_database_is_asked_for_few_of_many_tokens_that_nobody_knows(site):
    """As statements, and as rows that are looked for: those of a source that brings many wait for the tick, one of each connection at a time."""
    questions = lambda: sum(int(float(line.split()[1])) for line in reader.text(site.process).splitlines()  # noqa: E731
                            if line.startswith("receiptd_serve_question_seconds_count"))
    before, begun = questions(), time.monotonic()
    with flood(site, 64, garbage, 16) as attack:
        wait_for(lambda: attack.statuses.get(429, 0) > 3000, 60, what="the flood has begun")
        wait_for(lambda: time.monotonic() > begun + 3, what="three seconds")
    took = time.monotonic() - begun
    assert questions() - before < 20 + 20 * took, "a tick is a tenth of a second, and each may have two"
    assert attack.statuses[401] < 200 + 64 * 11 * took, "of each connection one in a tick"


# ---- questions that take long ----------------------------------------------------------------------------------------

def test_a_link_that_asks_what_takes_long_blocks_nobody(large):
    link, forms = link_of(large, "large"), ("", "&by=reason", "&by=variant", "&by=channel", "&by=gateway", "&by=time_to_deliver", "&by=time_to_open")
    numbers = iter(range(10**9))
    make = lambda: (f"/campaigns/large/funnel?pending=true{forms[next(numbers) % len(forms)]}&link={link}",)  # noqa: E731
    alpha = reader.make_token(large.receiptd, "alpha", "read", "--org", "alpha-org")
    beta = link_of(large, "beta-campaign")
    with flood(large, 30, make) as attack:
        wait_for(lambda: sum(attack.statuses.values()) > 30, 60, what="the flood has begun")
        everybody_is_answered(large, [large.token, alpha], ["/campaigns", "/campaigns/alpha-campaign/funnel", "/me"])
        assert large.get(f"/campaigns/beta-campaign/funnel?link={beta}", None).status == 200
        asked = large.json("/campaigns/large/funnel?pending=true")["pending"]
    assert asked["messages"] == MESSAGES
    assert attack.statuses.get(200, 0) > 30, attack.statuses


SLOW = {
    "lists with a status that few have": "/campaigns/large/recipients?status=CLICKED&format=json",
    "pending": "/campaigns/large/funnel?pending=true",
    "pending of a campaign by its other name": "/campaigns/large?pending=true",
    "searches": "/campaigns?q={n}&sort=problems",
    "letters of a reason that none has": "/dead-letters?reason=r{n}",
    "actions": "/actions?pipeline=p{n}",
    "a customer's or an id's messages": "/messages?q=m{n}",
    "funnels of all names": "/campaigns/c{n}/funnel?by=reason",
}


@pytest.mark.parametrize("kind", SLOW)
def test_a_token_that_asks_what_takes_long_blocks_nobody(large, kind):
    """Each kind of question, on as many connections as it likes."""
    greedy = reader.make_token(large.receiptd, "greedy")
    numbers = iter(range(10**9))
    make = lambda: (SLOW[kind].format(n=next(numbers)), f"Authorization: Bearer {greedy}")  # noqa: E731
    with flood(large, 40, make, 4) as attack:
        wait_for(lambda: sum(attack.statuses.values()) > 40, 60, what="the flood has begun")
        everybody_is_answered(large, [large.token], ["/campaigns/alpha-campaign/funnel", "/me", "/campaigns", "/messages/alpha-m5"], 5)
    assert set(attack.statuses) <= {200, 404, 429, 503}, attack.statuses


def test_a_question_that_stands_still_takes_one_connection_of_two(site):
    """Whatever the reason: here a lock that the funnel's statement waits for, and the others' do not."""
    greedy = reader.make_token(site.receiptd, "greedy")
    with psycopg.connect(site.database.dsn) as holder, ThreadPoolExecutor(8) as pool:
        holder.execute("LOCK TABLE receiptd.message_timeline IN ACCESS EXCLUSIVE MODE")
        stuck = [pool.submit(site.get, f"/messages/alpha-m{n}", greedy) for n in range(8)]
        blocked = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        wait_for(lambda: site.database.value(blocked) >= 1, what="one waits")
        everybody_is_answered(site, [site.token], ["/me", "/campaigns", "/campaigns/alpha-campaign/funnel"])
        assert site.database.value(blocked) <= 1
        holder.rollback()
        assert {one.result().status for one in stuck} <= {200, 503}


def test_a_costly_answer_is_kept_for_those_who_ask_the_same(large):
    """As long as the database answers, and for ten times as long as it took."""
    path = "/campaigns/large/funnel?pending=true"
    first = large.json(path)["pending"]
    large.database.execute("UPDATE receiptd.message_inbox SET status = 600 WHERE message_id = 'large-1'")
    begun, answers = time.monotonic(), []
    for query in ("", "&by=reason", "&by=variant"):
        answers.append(large.json(path + query)["pending"])
    if time.monotonic() - begun < 1:
        assert answers == [first] * 3
    wait_for(lambda: large.json(path)["pending"]["messages"] == MESSAGES - 1, 90, what="it is asked again")
    other = reader.make_token(large.receiptd, "beta", "read", "--org", "beta-org")
    assert large.get(path, other).status == 404, "what is kept is not for other organisations"


# ---- streams, lists, redrives, connections ---------------------------------------------------------------------------

def statuses_of(streams):
    return [stream.buffer.split(b" ", 2)[1] if stream.buffer else None for stream in streams]


@pytest.mark.alone
def test_one_caller_with_all_streams_gives_some_up(site):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard < 4096:
        pytest.skip(f"1500 streams need 4096 descriptors, and the hard limit is {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, hard))
    link = link_of(site, "alpha-campaign")
    greedy = []
    for _ in range(32):
        greedy += [reader.Stream(site.process, f"/stream?link={link}") for _ in range(50)]
        wait_for(lambda: greedy[-1].read() or greedy[-1].buffer, what="it is answered")
    for stream in greedy:
        stream.read(0.01)
    assert statuses_of(greedy).count(b"503") == 100 and statuses_of(greedy).count(b"200") == 1500
    others = [reader.Stream(site.process, token=site.token) for _ in range(20)] + \
        [reader.Stream(site.process, f"/stream?link={link_of(site, 'beta-campaign')}") for _ in range(5)]
    for stream in others:
        wait_for(stream.read, what="it begins")
    assert set(statuses_of(others)) == {b"200"}
    ended = [stream for stream in greedy if stream.read(0.01) is not None and stream.buffer.endswith(b"0\r\n\r\n")]
    assert len(ended) >= len(others), "theirs are ended in order, so that they are opened again"
    assert site.get("/campaigns").status == 200
    for stream in greedy + others:
        stream.close()


def test_one_caller_has_a_share_of_the_lists(site):
    site.database.execute("INSERT INTO receiptd.message_inbox (message_id, org_id, campaign_id) SELECT repeat('x', 900) || n, 'alpha-org', 'wide' FROM"
                          " generate_series(1, 12000) n")
    greedy, lists = reader.make_token(site.receiptd, "greedy"), []
    for _ in range(6):
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", site.process.port))
        client.sendall(f"GET /api/v1/campaigns/wide/recipients HTTP/1.1\r\nHost: 127.0.0.1:{site.process.port}\r\nAuthorization: Bearer {greedy}\r\n\r\n".encode())
        lists.append((client, client.recv(12)))
    assert [head for _, head in lists] == [b"HTTP/1.1 200"] * 4 + [b"HTTP/1.1 429"] * 2
    assert site.get("/campaigns/alpha-campaign/recipients").status == 200
    for client, _ in lists:
        client.close()


def test_one_caller_has_a_share_of_the_redrives(site):
    operator(site)
    bury(site, 20_000, payload='{"message_id":"m%s","status":"SENT"}')
    one, other = [reader.make_token(site.receiptd, name) for name in ("one", "other")]
    ask = lambda token: site.get("/dead-letters/redrive", token, method="POST", body=json.dumps({"reason": "unknown_message"}).encode())  # noqa: E731
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(ask, one)
        wait_for(lambda: site.json("/me")["redrive"] and site.database.value("SELECT count(*) FROM receiptd.parked_event") > 0, 60, what="it is under way")
        second = pool.submit(ask, one)
        assert second.result().status == 503
        assert ask(other).status == 200
        first.result()


@pytest.mark.alone
def test_an_address_with_all_connections_gives_some_up(site):
    """Streams, answers that nobody reads, and heads that do not end, from one address: another one is served."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard < 8192:
        pytest.skip(f"2100 connections need 8192 descriptors, and the hard limit is {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (8192, hard))
    host = f"Host: 127.0.0.1:{site.process.port}\r\n"
    kinds = [f"GET /api/v1/stream HTTP/1.1\r\n{host}Authorization: Bearer {site.token}\r\n\r\n" if n < 1450 else
             f"GET /assets/app.js HTTP/1.1\r\n{host}\r\n" * 16 if n % 2 else "GET / HTTP/1.1\r\n" for n in range(2100)]
    held = []
    for number, text in enumerate(kinds):
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.bind(("127.0.0.9", 0))
        client.connect(("127.0.0.1", site.process.port))
        client.sendall(text.encode())
        held.append(client)
        if number % 50 == 49 and number < 1450:
            client.recv(1)
    for source in ("127.0.0.1", "127.0.0.2"):
        for _ in range(20):
            with socket.create_connection(("127.0.0.1", site.process.port), 30, source_address=(source, 0)) as client:
                client.sendall(f"GET /api/v1/campaigns HTTP/1.1\r\n{host}Authorization: Bearer {site.token}\r\nConnection: close\r\n\r\n".encode())
                assert client.recv(12) == b"HTTP/1.1 200", source
    for client in held:
        client.close()
