"""The intake as process, gateways that call it, and the content of Kafka afterwards."""

import json
import random
import re
import socket
import threading
import time
from collections import Counter
from urllib.parse import urlencode

from confluent_kafka import Consumer, TopicPartition

LISTENS = r"intake listens on \S+ \(port (\d+)"
ACCOUNTS = [
    {"name": "acme", "gateway": "twilio", "org_id": "o1", "verify": "off", "message_id": "?mid"},
    {"name": "bird", "gateway": "twilio", "org_id": "o2", "verify": "off", "message_id": "?mid"},
    {"name": "mail", "gateway": "sendgrid", "org_id": "o1", "verify": "off"},
]


def start(installation, command="intake"):
    """Starts it, with a log of its own, and waits until it takes requests; the port is in `.port`."""
    process = installation.start(f"{command}-{len(installation.processes)}", command=command)
    process.port = int(process.wait_for_log(LISTENS).group(1))
    process.wait_for_log(r'component=intake msg="ready"')
    return process


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def __repr__(self):
        return f"<{self.status} {self.headers} {self.body[:200]!r}>"


class Client:
    """One connection; requests as bytes, answers parsed."""

    def __init__(self, port, timeout=30, wrap=None):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if wrap is not None:
            self.socket = wrap(self.socket)
        self.reader = self.socket.makefile("rb")

    def send(self, data):
        self.socket.sendall(data)

    def answer(self, bodiless=False):
        line = self.reader.readline()
        if not line:
            raise ConnectionError("the connection ended without an answer")
        status = int(line.split()[1])
        headers = {}
        while (line := self.reader.readline()) not in (b"\r\n", b""):
            name, _, value = line.decode().partition(":")
            headers[name.lower()] = value.strip()
        length = 0 if bodiless else int(headers.get("content-length", 0))
        return Answer(status, headers, self.reader.read(length))

    def request(self, method, target, body=None, headers=()):
        self.send(request(method, target, body, headers))
        return self.answer(bodiless=method == "HEAD")

    def close(self):
        self.reader.close()
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def request(method, target, body=None, headers=()):
    lines = [f"{method} {target} HTTP/1.1", "Host: test", *headers]
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + (body or b"")


def twilio(message_id, status="delivered", gateway_id=None, account="acme"):
    """A receipt of one message: our id in the URL, or only the gateway's in the form."""
    target = f"/dlr/{account}" + (f"?mid={message_id}" if message_id else "")
    form = {"MessageSid": gateway_id or f"SM{message_id}", "MessageStatus": status, "AccountSid": "AC1",
            "From": "+15005550006"}
    return request("POST", target, urlencode(form).encode(), ["Content-Type: application/x-www-form-urlencoded"])


def sendgrid(events):
    return request("POST", "/dlr/mail", json.dumps(events).encode(), ["Content-Type: application/json"])


def read_topic(topic):
    """[(value, headers)…] of all present records."""
    consumer = Consumer({"bootstrap.servers": topic.services.brokers, "group.id": "read", "enable.auto.commit": False,
                         "log_level": 2, "fetch.message.max.bytes": 16777216})
    marks = topic.watermarks()
    consumer.assign([TopicPartition(topic.name, partition, low) for partition, (low, _) in marks.items()])
    left = {partition for partition, (low, high) in marks.items() if high > low}
    found = []
    deadline = time.monotonic() + 60
    try:
        while left:
            assert time.monotonic() < deadline, f"{topic} could not be read: {left} missing"
            message = consumer.poll(1)
            if message is None or message.error():
                continue
            headers = {name: value.decode() for name, value in message.headers() or ()}
            found.append((message.value(), headers))
            if message.offset() >= marks[message.partition()][1] - 1:
                left.discard(message.partition())
    finally:
        consumer.close()
    return found


def read_events(topic):
    return [event for value, _ in read_topic(topic) for event in json.loads(value)]


class Gateway(threading.Thread):
    """Sends receipts one request after the other, each until it is answered with 2xx, through every fault.

    `batch`: so many messages a request, in SendGrid's form; `impatience`: how often it hangs up before the answer, and repeats the request."""

    def __init__(self, port, name, count=10**9, account="acme", statuses=("sent", "delivered"), pause=0.0, batch=1, impatience=0.0):
        super().__init__(daemon=True)
        self.port, self.name, self.count, self.account, self.statuses = port, name, count, account, statuses
        self.pause, self.batch, self.impatience = pause, batch, impatience
        self.random = random.Random(name)
        self.acknowledged, self.codes, self.times = [], {}, []
        self.attempts = Counter()  # of each (message id, status)
        self.stopped, self.enough = threading.Event(), threading.Event()
        self.error = None
        self.start()

    def run(self):
        try:
            client = None
            for number in range(self.count):
                if self.stopped.is_set() or self.enough.is_set():
                    break
                turn, status = number // len(self.statuses), self.statuses[number % len(self.statuses)]
                ids = [f"{self.name}-{turn * self.batch + index}" for index in range(self.batch)]
                client = self._deliver(client, ids, status)
            if client is not None:
                client.close()
        except BaseException as error:
            self.error = error

    def _request(self, ids, status):
        if self.batch == 1:
            return twilio(ids[0], status, account=self.account)
        return sendgrid([{"email": "a@example.com", "event": status, "timestamp": 1769000000, "sg_message_id": f"sg-{each}.filter",
                          "sg_event_id": f"{each}-{status}", "message_id": each} for each in ids])

    def _deliver(self, client, ids, status):
        while not self.stopped.is_set():
            try:
                if client is None:
                    client = Client(self.port(), timeout=20)
                begun = time.monotonic()
                self.attempts.update((each, status) for each in ids)
                client.send(self._request(ids, status))
                if self.random.random() < self.impatience:
                    client = self._drop(client)
                    continue
                answer = client.answer()
            except OSError:
                client = self._drop(client)
                time.sleep(0.02)
                continue
            self.times.append(time.monotonic() - begun)
            self.codes[answer.status] = self.codes.get(answer.status, 0) + 1
            if answer.headers.get("connection") == "close":
                client = self._drop(client)
            if 200 <= answer.status < 300:
                self.acknowledged += [(each, status) for each in ids]
                time.sleep(self.pause)
                return client
            assert answer.status == 503 and int(answer.headers["retry-after"]) > 0, answer
            time.sleep(0.05)
        return client

    @staticmethod
    def _drop(client):
        if client is not None:
            client.close()

    def finish(self):
        """Ends with an acknowledgement, however long that takes."""
        self.enough.set()
        self.join(120)
        assert not self.is_alive() and self.error is None, self.error

    def stop(self):
        self.stopped.set()
        self.join(60)
        assert not self.is_alive() and self.error is None, self.error


def missing(gateways, topic):
    """The receipts that were acknowledged but are not in the topic."""
    there = {(event["message_id"], event["gateway_status"]) for event in read_events(topic)}
    return [receipt for gateway in gateways for receipt in gateway.acknowledged if receipt not in there]


def log_count(process, pattern):
    return len(re.findall(pattern, process.log()))
