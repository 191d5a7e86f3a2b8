"""What somebody who has signed nothing can cost the intake: memory, processor, places in a queue. The bound is the configuration's, and the
accounts of others go on being answered."""

import base64
import gzip
import json
import random
import re
import socket
import threading
import time
from pathlib import Path

import pytest

from support import intake
from support.intake import ACCOUNTS, Client, request, sendgrid, twilio
from support.operations import Operations
from support.wait import wait_for
from test_intake import site  # noqa: F401 - a fixture
from test_sns import MAY, amazon, delivery, post  # noqa: F401 - fixtures

MIB = 1 << 20
ARN = "arn:aws:sns:{region}:123456789012:ses"
OTHERS = 40 * MIB  # of the process: libraries, librdkafka, what is kept for the next request


def sns_account(name, region="eu-west-1"):
    return {"name": name, "gateway": "ses_sns", "org_id": "o1", "verify": "required", "topic_arn": ARN.format(region=region)}


def memory(process, key):
    """VmHWM is the most that was ever resident, VmRSS what is now."""
    return int(re.search(rf"^{key}:\s*(\d+) kB", Path(f"/proc/{process.pid}/status").read_text(), re.MULTILINE).group(1)) * 1024


def envelope(number=0, region="eu-west-1", **members):
    return {"Type": "Notification", "MessageId": "1", "TopicArn": ARN.format(region=region), "Timestamp": "2026-11-22T10:00:00.000Z",
            "Message": "hello", "SignatureVersion": "2", "Signature": base64.b64encode(bytes(256)).decode(),
            "SigningCertURL": f"https://sns.{region}.amazonaws.com/SimpleNotificationService-{number:032x}.pem", **members}


def bomb():
    """Nearly half a million nodes of JSON around an envelope, packed well, but not more than a hundred times."""
    digits = random.Random(1)
    text = ",".join(str(digits.randrange(10)) if place % 16 == 0 else "1" for place in range(450_000))
    body = json.dumps(envelope(x=[])).replace("[]", f"[{text}]").encode()
    packed = gzip.compress(body, 9)
    assert len(body) < MIB and len(packed) * 100 > len(body)
    return packed


def sns(account, body, packed=False):
    return request("POST", f"/dlr/{account}", body, ["Content-Type: text/plain"] + ["Content-Encoding: gzip"] * packed)


class Proxy:
    """In place of the way to Amazon: says nothing, or hangs up after a while."""

    def __init__(self, after=None, only=""):
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.after, self.only, self.asked, self.kept = after, only, [], []
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        while True:
            try:
                client = self.socket.accept()[0]
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        host = client.recv(4096).split()[1].decode()
        self.asked.append(host)
        if self.after is not None and self.only in host:
            time.sleep(self.after)
            client.close()
        else:
            self.kept.append(client)

    def use(self, monkeypatch):
        for name in ("https_proxy", "HTTPS_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{self.socket.getsockname()[1]}")
        for name in ("no_proxy", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)

    def close(self):
        self.socket.close()
        for client in self.kept:
            client.close()


@pytest.fixture
def proxy(monkeypatch):
    proxies = []

    def make(*arguments, **options):
        proxies.append(Proxy(*arguments, **options))
        proxies[-1].use(monkeypatch)
        return proxies[-1]

    yield make
    for each in proxies:
        each.close()


def answered(clients, within):
    """Codes of those that were answered by then."""
    codes, deadline = [], time.monotonic() + within
    for client in clients:
        client.socket.settimeout(max(0.001, deadline - time.monotonic()))
        try:
            codes.append(client.answer().status)
        except OSError:
            codes.append(None)
    return codes


# ---- memory


@pytest.mark.parametrize("how", ["hangs", "fails"])
def test_requests_that_wait_for_a_certificate_stay_within_the_memory(site, proxy, how):  # noqa: F811
    """Each is 13 KB on the wire and 40 MB when it is read."""
    proxy() if how == "hangs" else proxy(after=0.2)
    process = site.start(memory="64MiB", accounts=[sns_account("ses"), *ACCOUNTS])
    clients = [Client(process.port) for _ in range(60)]
    packed = sns("ses", bomb(), packed=True)
    for client in clients:
        client.send(packed)
    with Client(process.port, timeout=60) as neighbour:
        for number in range(20):
            neighbour.send(twilio(f"m{number}"))
            assert neighbour.answer().status // 100 == 2
    answered(clients, 30)
    assert memory(process, "VmHWM") < 64 * MIB + OTHERS
    process.wait_for(lambda: memory(process, "VmRSS") < 24 * MIB + OTHERS, what="memory is given back")
    for client in clients:
        client.close()
    process.stop()


def test_what_waits_for_aliases_stays_within_the_memory(site, database):  # noqa: F811
    process = site.start(memory="16MiB", alias_timeout="1m")
    before = memory(process, "VmRSS")
    clients = [Client(process.port) for _ in range(70)]
    with database.connect() as operator, operator.transaction():
        operator.execute("LOCK TABLE receiptd.message_alias")
        for number, client in enumerate(clients):
            client.send(sendgrid([{"event": "delivered", "sg_message_id": f"{number}-{each}", "sg_event_id": f"e{each}"} for each in range(1200)]))
        refused = [client for client in clients[10:] if answered([client], 0.2) == [503]]
        assert len(refused) > 30
        assert memory(process, "VmHWM") < before + 16 * MIB + 8 * MIB
    codes = answered([client for client in clients if client not in refused], 120)
    assert set(codes) <= {200, 503} and codes.count(200) >= 3
    for client in clients:
        client.close()
    with Client(process.port) as client:  # there is room again
        client.send(sendgrid([{"event": "delivered", "sg_message_id": f"again-{each}", "sg_event_id": f"e{each}"} for each in range(1200)]))
        assert client.answer().status == 200
    process.stop()


def test_a_single_request_is_taken_whatever_it_needs(site):  # noqa: F811
    """It could never be delivered otherwise."""
    process = site.start(memory="4MiB")
    events = [{"event": "delivered", "sg_message_id": f"s{each}", "sg_event_id": f"e{each}", "message_id": f"m{each}"} for each in range(10_000)]
    with Client(process.port) as client:
        client.send(sendgrid(events))
        assert client.answer().status == 200
    assert len(intake.read_events(site.events)) == 10_000
    process.stop()


def test_values_that_multiply_are_given_up(site):  # noqa: F811
    """A few bytes of the URL come again in each event: as much as the memory is enough."""
    process = site.start(memory="4MiB", accounts=[{"name": "mail", "gateway": "sendgrid", "org_id": "o1", "verify": "off", "campaign_id": "?c"}])
    before = memory(process, "VmRSS")
    body = json.dumps([{"event": "delivered", "sg_message_id": f"{each}"} for each in range(18_000)]).encode()
    assert len(body) < MIB
    with Client(process.port) as client:
        assert client.request("POST", "/dlr/mail?c=" + "x" * 12_000, body, ["Content-Type: application/json"]).status == 503
    assert memory(process, "VmHWM") < before + 64 * MIB
    process.stop()


# ---- certificates


def test_so_many_requests_wait_for_a_certificate_and_no_more(site, proxy):  # noqa: F811
    proxy()
    process = site.start(accounts=[sns_account("ses")])
    clients = [Client(process.port) for _ in range(40)]
    for client in clients:
        client.send(sns("ses", json.dumps(envelope()).encode()))
    pages = Operations(process)
    process.wait_for(lambda: pages.figures().get_one("receiptd_intake_answers_total", account="ses", code="503") == 8, 4, what="eight are refused")
    assert pages.figures().get_one("receiptd_intake_waiting_requests") == 32
    assert answered(clients, 15) == [503] * 40
    for client in clients:
        client.close()
    process.stop()


def test_an_account_that_keeps_fetching_leaves_the_others_their_turn(site, proxy):  # noqa: F811
    way = proxy(after=0, only="eu-central-1")
    process = site.start(accounts=[sns_account("bad"), sns_account("good", "eu-central-1")])
    clients = [Client(process.port) for _ in range(10)]
    for number, client in enumerate(clients):
        client.send(sns("bad", json.dumps(envelope(number)).encode()))
    wait_for(lambda: way.asked, 10, "the first is fetched")
    with Client(process.port) as client:
        client.send(sns("good", json.dumps(envelope(region="eu-central-1")).encode()))
        assert client.answer().status == 503
    assert "sns.eu-central-1.amazonaws.com:443" in way.asked
    assert way.asked.count("sns.eu-west-1.amazonaws.com:443") == 1
    for client in clients:
        client.close()
    process.stop()


@pytest.mark.skipif(not MAY, reason="names and authorities are replaced in a mount namespace, which wants root")
def test_certificates_that_cannot_be_had_displace_no_good_one(post, amazon):  # noqa: F811
    url = "https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-{:032x}.pem"
    assert post(delivery(amazon, 1, SigningCertURL=url.format(0))) // 100 == 2
    amazon.broken = True
    for number in range(1, 21):
        assert post(delivery(amazon, 1, SigningCertURL=url.format(number))) == 503
    assert len(amazon.asked) == 21
    assert post(delivery(amazon, 2, SigningCertURL=url.format(0))) // 100 == 2
    assert len(amazon.asked) == 21


# ---- rates


def postmark(user, source, number):
    credentials = base64.b64encode(user.encode()).decode()
    body = json.dumps({"RecordType": "Delivery", "MessageID": f"p{number}", "DeliveredAt": "2026-11-22T10:00:00Z"}).encode()
    return request("POST", "/dlr/mark", body, ["Content-Type: application/json", f"Authorization: Basic {credentials}", f"X-Forwarded-For: {source}"])


def ask(process, requests):
    with Client(process.port) as client:
        client.send(b"".join(requests))
        return [client.answer() for _ in requests]


MARK = {"name": "mark", "gateway": "postmark", "auth": "basic", "org_id": "o1", "verify": "required", "secrets": ["user:secret"]}


def test_who_guesses_is_slowed_down_and_who_has_signed_is_not(site):  # noqa: F811
    process = site.start(trusted_proxies="127.0.0.1", accounts=[MARK])
    answers = ask(process, [postmark("user:wrong", "192.0.2.1", number) for number in range(400)])
    codes = [answer.status for answer in answers]
    assert codes[:100] == [401] * 100 and codes.count(429) > 150 and set(codes) == {401, 429}, codes
    assert all(int(answer.headers["retry-after"]) > 0 for answer in answers if answer.status == 429)
    answers = ask(process, [postmark("user:secret", "192.0.2.2", number) for number in range(400)])
    assert all(answer.status // 100 == 2 for answer in answers)
    process.stop()


def test_neighbours_are_not_slowed_down_and_a_proxy_without_a_name_is_said(site):  # noqa: F811
    process = site.start(accounts=[MARK])
    answers = ask(process, [postmark("user:wrong", "192.0.2.1", number) for number in range(300)])
    assert {answer.status for answer in answers} == {401}
    process.wait_for_log("level=warn .*127.0.0.1 forwards requests of others .*HINT: name it in intake.trusted_proxies")
    assert intake.log_count(process, "forwards requests of others") == 1
    process.stop()


def test_nobody_uses_up_the_rate_of_an_account_without_its_signature(site):  # noqa: F811
    process = site.start(accounts=[MARK], limits={"rate_per_account": 5})
    answers = ask(process, [postmark("user:wrong", "192.0.2.1", number) for number in range(100)])
    assert {answer.status for answer in answers} == {401}
    assert {answer.status for answer in ask(process, [request("POST", "/dlr/mark", b"")] * 50)} == {200}
    codes = [answer.status for answer in ask(process, [postmark("user:secret", "192.0.2.2", number) for number in range(30)])]
    assert codes[0] // 100 == 2 and codes.count(429) >= 15
    process.stop()


# ---- addresses


def test_allow_holds_behind_a_proxy_that_cannot_say_who_it_was(site):  # noqa: F811
    account = {"name": "acme", "gateway": "twilio", "org_id": "o1", "verify": "required", "auth": "address", "allow": ["203.0.113.7"],
               "message_id": "?mid"}
    process = site.start(trusted_proxies="127.0.0.1", accounts=[account])
    head, _, body = twilio("m1").partition(b"\r\n\r\n")

    def code(*lines):
        with Client(process.port) as client:
            client.send(head + b"".join(f"\r\nX-Forwarded-For: {line}".encode() for line in lines) + b"\r\n\r\n" + body)
            return client.answer().status

    assert code("203.0.113.7") // 100 == 2 and code("1.2.3.4, 203.0.113.7:4711") // 100 == 2
    for nearest in ("198.51.100.1:4711", "unknown", "[2001:db8::1]:80", "_secret", "", "198.51.100.1"):
        assert code("203.0.113.7", nearest) == 403, nearest
    process.stop()


# ---- pages


def test_the_port_of_the_webhooks_has_no_page_but_theirs(site):  # noqa: F811
    process = site.start()
    with Client(process.port) as client:
        for path in ("/", "/metrics", "/statusz", "/livez", "/readyz", "/startupz", "/runs", "/control", "/debug/pprof", "/dlr/../metrics"):
            assert client.request("GET", path).status == 404, path
            assert client.request("POST", path, b"").status == 404, path
    process.stop()
