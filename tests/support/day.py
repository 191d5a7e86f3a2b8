"""A day of five gateways, in seconds: each sends in its own form, signs as it does, repeats by its own schedule requests that were not answered
with 2xx, copies and reorders as gateways do. Every receipt arrives in the end, so the final content of the database is known beforehand."""

import base64
import hashlib
import hmac
import json
import random
import threading
import time
from heapq import heappop, heappush
from urllib.parse import urlencode

from support.intake import Client, request

SECRET = "of all accounts"
HOST = "https://hooks.example.com"
BASIC = "Authorization: Basic " + base64.b64encode(f"g:{SECRET}".encode()).decode()
FORM, JSON = "Content-Type: application/x-www-form-urlencoded", "Content-Type: application/json"
SHORTER = 20_000  # a day is about four seconds


def sign(algorithm, data):
    return hmac.new(SECRET.encode(), data, algorithm)


def twilio(receipts):
    ((message, word),) = receipts
    target = f"/dlr/twilio?message_id={message}"
    form = {"AccountSid": "AC1", "MessageSid": f"SM{message}", "MessageStatus": word, "To": "+15550100002"}
    signed = HOST + target + "".join(name + form[name] for name in sorted(form))
    signature = base64.b64encode(sign(hashlib.sha1, signed.encode()).digest()).decode()
    return request("POST", target, urlencode(form).encode(), [FORM, f"X-Twilio-Signature: {signature}"])


def kannel(receipts):
    ((message, word),) = receipts
    return request("GET", f"/dlr/kannel?id={message}&sig={sign(hashlib.sha256, message.encode()).hexdigest()}&status={word}&ts=1760789441")


def infobip(receipts):
    results = [{"messageId": f"ib-{message}", "callbackData": message, "doneAt": "2025-10-18T12:10:33.134+0000", "status": {"name": word, "id": 5}}
               for message, word in receipts]
    return request("POST", "/dlr/infobip", json.dumps({"results": results}).encode(), [JSON, BASIC])


def sendgrid(receipts):
    events = [{"email": "a@example.com", "timestamp": 1760789440, "event": word, "sg_event_id": f"{message}-{word}", "message_id": message}
              for message, word in receipts]
    return request("POST", "/dlr/sendgrid", json.dumps(events).encode(), [JSON, BASIC])


def whatsapp(receipts):
    """Our id is not in it: an alias maps the gateway's."""
    statuses = [{"id": f"wamid.{message}", "status": word, "timestamp": "1760789440"} for message, word in receipts]
    body = json.dumps({"object": "whatsapp_business_account", "entry": [{"id": "1", "changes": [
        {"field": "messages", "value": {"messaging_product": "whatsapp", "statuses": statuses}}]}]}).encode()
    return request("POST", "/dlr/whatsapp", body, [JSON, f"X-Hub-Signature-256: sha256={sign(hashlib.sha256, body).hexdigest()}"])


# name: (form, receipts a request, messages, seconds before it repeats, ways that a message can go: [(word, status)…])
GATEWAYS = {
    "twilio": (twilio, 1, 60, (15, 60, 600), (
        (("queued", "IN_GTW"), ("sent", "SENT"), ("delivered", "DELIVERED")), (("sent", "SENT"), ("undelivered", "FAILED")),
        (("sent", "SENT"), ("delivered", "DELIVERED"), ("read", "OPENED")))),
    "kannel": (kannel, 1, 60, (60, 60, 60), (
        (("8", "SENT"), ("1", "DELIVERED")), (("8", "SENT"), ("34", "EXPIRED")), (("16", "REJECTED"),))),
    "infobip": (infobip, 100, 800, (60, 240, 540), (
        (("PENDING_ACCEPTED", "IN_GTW"), ("PENDING_ENROUTE", "SENT"), ("DELIVERED_TO_OPERATOR", "SENT"), ("DELIVERED_TO_HANDSET", "DELIVERED")),
        (("PENDING_ENROUTE", "SENT"), ("EXPIRED_EXPIRED", "EXPIRED")), (("REJECTED_PREFIX_MISSING", "REJECTED"),))),
    "sendgrid": (sendgrid, 50, 500, (300, 900, 3600), (
        (("processed", "IN_GTW"), ("delivered", "DELIVERED"), ("open", "OPENED"), ("click", "CLICKED")),
        (("processed", "IN_GTW"), ("deferred", "DEFERRED"), ("delivered", "DELIVERED")), (("click", "CLICKED"),), (("dropped", "REJECTED"),))),
    "whatsapp": (whatsapp, 5, 150, (5, 30, 300), (
        (("sent", "SENT"), ("delivered", "DELIVERED"), ("read", "OPENED")), (("read", "OPENED"),), (("sent", "SENT"), ("failed", "FAILED")))),
}

ACCOUNTS = [{"name": name, "org_id": "o1", "secrets": [SECRET], "public_url": f"{HOST}/dlr/{name}", **more} for name, more in {
    "twilio": {"gateway": "twilio"},
    "kannel": {"gateway": "kannel", "auth": "url-hmac", "auth_name": "id"},
    "infobip": {"gateway": "infobip", "auth": "basic", "message_id": "/callbackData"},
    "sendgrid": {"gateway": "sendgrid", "auth": "basic"},
    "whatsapp": {"gateway": "whatsapp_cloud"},
}.items()]


class Sender(threading.Thread):
    """One gateway's day: requests in the order of their time; failed ones are repeated until they succeed."""

    def __init__(self, name, port, seed):
        super().__init__(daemon=True)
        self.name, self.port, self.random = name, port, random.Random(f"{name}/{seed}")
        self.form, size, messages, self.pauses, ways = GATEWAYS[name]
        self.paths = {f"{name}-{number}": self.random.choice(ways) for number in range(messages)}
        self.queue, self.sent, self.repeated, self.error = [], 0, 0, None
        for number, receipts in enumerate(self._requests(size)):
            heappush(self.queue, (self.random.random() * 86_400 / SHORTER, number, 0, receipts))
        self.total = len(self.queue)

    def _requests(self, size):
        """Receipts of all messages: stage by stage, then one in twenty out of its order, one in thirty twice."""
        steps = [(index + self.random.random() * 2, message, word) for message, path in self.paths.items()
                 for index, (word, _) in enumerate(path)]
        steps = [(self.random.random() * 4 if self.random.random() < 0.05 else at, message, word) for at, message, word in steps]
        steps += [step for step in steps if self.random.random() < 0.03]
        receipts = [(message, word) for _, message, word in sorted(steps)]
        return [receipts[at:at + size] for at in range(0, len(receipts), size)]

    def run(self):
        try:
            self._run()
        except BaseException as error:
            self.error = error

    def _run(self):
        client, begun = None, time.monotonic()
        while self.queue:
            due, number, tries, receipts = heappop(self.queue)
            time.sleep(max(0, begun + due - time.monotonic()))
            client, good = self._try(client, self.form(receipts))
            self.sent += good
            if not good:
                pause = self.pauses[min(tries, len(self.pauses) - 1)] / SHORTER + 0.05
                heappush(self.queue, (time.monotonic() - begun + pause, number, tries + 1, receipts))
                self.repeated += 1

    def _try(self, client, data):
        try:
            client = client or Client(self.port(), timeout=20)
            client.send(data)
            answer = client.answer()
        except OSError:
            if client is not None:
                client.close()
            return None, False
        assert answer.status // 100 == 2 or answer.status == 503, answer
        if answer.headers.get("connection") == "close":
            client.close()
            client = None
        return client, answer.status != 503

    def last_statuses(self, codes):
        """{message: code} once all has arrived."""
        return {message: max(codes[status] for _, status in path) for message, path in self.paths.items()}

    @staticmethod
    def alias(message):
        return "whatsapp", f"wamid.{message}", message
