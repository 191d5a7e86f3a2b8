"""Platforms and collectors whose topics are not in receiptd's form: each has the entry of kafka.topics that the documentation gives
(docs/topics.md), and writes receipts as such a producer does."""

import base64
import json
from datetime import datetime, timedelta, timezone
from urllib.parse import urlencode

from oracle import ledger
from oracle.ledger import Letter, Record

BEGIN = datetime(2026, 11, 20, 8, tzinfo=timezone.utc)
STATUSES = ("SENT", "DELIVERED", "FAILED", "OPENED")


class Platform:
    """`words`: {status: the platform's word}. `most`: receipts of one record."""

    most, has_time, unknown_word = 1, True, "perhaps"
    words = {"SENT": "sent", "DELIVERED": "delivered", "FAILED": "failed", "OPENED": "opened"}
    account = {}

    def entry(self, topic):
        return {"name": str(topic), **self.account}

    def statuses(self):
        return {word: status for status, word in self.words.items()}

    def record(self, receipts):
        """(value, headers) of [(id or None, word, time)…]"""
        raise NotImplementedError


class Nested(Platform):
    """Nested names, words of SMPP, RFC 3339 with an offset."""

    words = {"SENT": "ENROUTE", "DELIVERED": "DELIVRD", "FAILED": "UNDELIV", "OPENED": "READ"}
    account = {"gateway": "custom", "org_id": "o", "custom": {
        "message_id": "/message/id", "status": "/message/state", "at": "/when",
        "statuses": {"ENROUTE": "SENT", "DELIVRD": "DELIVERED", "UNDELIV": "FAILED", "READ": "OPENED"}}}

    def record(self, receipts):
        (id, word, at), = receipts
        when = at.astimezone(timezone(timedelta(hours=2))).isoformat()
        return json.dumps({"message": {**({} if id is None else {"id": id}), "state": word}, "when": when}), None


class LowerCase(Platform):
    """An array of flat objects in lower case, epochs in milliseconds."""

    most = 5
    account = {"gateway": "custom", "custom": {
        "message_id": "id", "status": "status", "at": "ts",
        "statuses": {"sent": "SENT", "delivered": "DELIVERED", "failed": "FAILED", "opened": "OPENED"}}}

    def record(self, receipts):
        return json.dumps([{"id": id, "status": word, "ts": int(at.timestamp() * 1000)} for id, word, at in receipts]), None


class Numbers(Platform):
    """Numbers for statuses, a list inside of an envelope, epochs in seconds."""

    most, unknown_word = 5, 99
    words = {"SENT": 1, "DELIVERED": 2, "FAILED": 3, "OPENED": 4}
    account = {"gateway": "custom", "custom": {
        "items": "/events/*", "message_id": "/mid", "status": "/s", "at": "/t",
        "statuses": {"1": "SENT", "2": "DELIVERED", "3": "FAILED", "4": "OPENED"}}}

    def record(self, receipts):
        return json.dumps({"source": "legacy", "events": [{"mid": id, "s": word, "t": int(at.timestamp())} for id, word, at in receipts]}), None


class Local(Platform):
    """Times without a zone, which are UTC, and epochs in microseconds."""

    most = 2
    account = {"gateway": "custom", "custom": {
        "message_id": "/id", "status": "/state/name", "at": "/at",
        "statuses": {"sent": "SENT", "delivered": "DELIVERED", "failed": "FAILED", "opened": "OPENED"}}}

    def record(self, receipts):
        forms = (lambda at: at.strftime("%Y-%m-%d %H:%M:%S"), lambda at: str(int(at.timestamp()) * 1_000_000))
        return json.dumps([{"id": id, "state": {"name": word}, "at": forms[n % 2](at)} for n, (id, word, at) in enumerate(receipts)]), None


class RawTwilio(Platform):
    """What a collector of webhooks has written down: forms."""

    has_time = False
    words = {"SENT": "sent", "DELIVERED": "delivered", "FAILED": "undelivered", "OPENED": "read"}
    account = {"gateway": "twilio", "account": "acme-twilio", "org_id": "o"}

    def record(self, receipts):
        (id, word, _), = receipts
        form = {"AccountSid": "AC1", "MessageStatus": word, "From": "+15005550006", "To": "+15005550009", "ApiVersion": "2010-04-01"}
        if id is not None:
            form |= {"MessageSid": id, "SmsSid": id}
        return urlencode(form), [("content-type", b"application/x-www-form-urlencoded")]


class SesInSns(Platform):
    """Notifications of SNS as an HTTP collector got them: the event is a text in Message."""

    words = {"SENT": None, "DELIVERED": "Delivery", "FAILED": None, "OPENED": "Open"}
    account = {"gateway": "ses_sns"}
    unknown_word = "Teleport"

    def event(self, receipt):
        id, word, at = receipt
        when = at.isoformat().replace("+00:00", "Z")
        mail = {"timestamp": when, "messageId": f"ses-{id}" if id else "", "destination": ["someone@example.com"],
                "tags": {"message_id": [id]} if id else {}}
        return {"eventType": word, "mail": mail, word.lower(): {"timestamp": when, "recipients": ["someone@example.com"]}}

    def record(self, receipts):
        (receipt,) = receipts
        return json.dumps({"Type": "Notification", "MessageId": "n-1", "TopicArn": "arn:aws:sns:eu-west-1:210987654321:t",
                           "Message": json.dumps(self.event(receipt)), "Timestamp": "2026-11-20T08:00:00.000Z", "SignatureVersion": "1",
                           "Signature": "AA==", "SigningCertURL": "https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-1.pem"}), None


class SesOnEventBridge(SesInSns):
    """EventBridge's detail."""

    def record(self, receipts):
        (receipt,) = receipts
        return json.dumps({"version": "0", "id": "e-1", "detail-type": "Email Delivered", "source": "aws.ses", "account": "210987654321",
                           "time": "2026-11-20T08:00:00Z", "region": "eu-west-1", "resources": [], "detail": self.event(receipt)}), None


class CloudEvents(Platform):
    """Structured mode: the envelope has the time."""

    account = {"gateway": "custom", "custom": {
        "message_id": "/id", "status": "/state",
        "statuses": {"sent": "SENT", "delivered": "DELIVERED", "failed": "FAILED", "opened": "OPENED"}}}

    def envelope(self, receipt, number=0):
        id, word, at = receipt
        data = {**({} if id is None else {"id": id}), "state": word}
        forms = ({"data": data}, {"data": json.dumps(data)}, {"data_base64": base64.b64encode(json.dumps(data).encode()).decode()})
        return {"specversion": "1.0", "type": "com.example.receipt", "source": "/platform", "id": f"{id}-{word}",
                "time": at.isoformat(), "datacontenttype": "application/json", **forms[number % 3]}

    def record(self, receipts):
        (receipt,) = receipts
        return json.dumps(self.envelope(receipt, len(receipt[0] or ""))), [("content-type", b"application/cloudevents+json")]


class CloudEventsInBatches(CloudEvents):
    most = 4

    def record(self, receipts):
        return json.dumps([self.envelope(receipt, number) for number, receipt in enumerate(receipts)]), None


class BinaryCloudEvents(CloudEvents):
    """Attributes are headers, the value is the data."""

    def record(self, receipts):
        envelope = self.envelope(receipts[0])
        names = {"datacontenttype": "content-type"}
        return json.dumps(envelope.pop("data")), [(names.get(name, f"ce_{name}"), value.encode()) for name, value in envelope.items()]


class EventStreams(Platform):
    """Twilio Event Streams: arrays of CloudEvents."""

    most = 4
    words = {"SENT": "SENT", "DELIVERED": "DELIVERED", "FAILED": "UNDELIVERED", "OPENED": "READ"}
    account = {"gateway": "twilio"}
    unknown_word = "TELEPORTED"

    def record(self, receipts):
        return json.dumps([{
            "specversion": "1.0", "type": "com.twilio.messaging.message." + word.lower(), "source": "AB1", "id": f"NO{number}",
            "dataschema": "https://events-schemas.twilio.com/Messaging.MessageStatus/8", "datacontenttype": "application/json", "time": at.isoformat(),
            "data": {**({} if id is None else {"messageSid": id}), "timestamp": at.isoformat().replace("+00:00", "Z"), "accountSid": "AC1",
                     "eventName": "com.twilio.messaging.message." + word.lower(), "apiVersion": "2010-04-01", "from": "+15005550006",
                     "to": "+15005550009", "messageStatus": word}} for number, (id, word, at) in enumerate(receipts)]), None


PLATFORMS = (Nested, LowerCase, Numbers, Local, RawTwilio, SesInSns, SesOnEventBridge, CloudEvents, CloudEventsInBatches, BinaryCloudEvents,
             EventStreams)


class Writer:
    """Writes receipts to the platform's topic, and notes what receiptd has to make of them."""

    def __init__(self, platform, topic, random):
        self.platform, self.topic, self.random = platform, topic, random
        self.letters, self.shadow, self.moments, self.bytes = {}, [], {}, {}
        self.ids = [f"{type(platform).__name__}-{number}" for number in range(60)]

    def draw(self):
        """A receipt, now and then one that cannot be understood: (what the platform writes, our form, the fault)."""
        status = self.random.choice([status for status in STATUSES if self.platform.words[status] is not None])
        id, word, fault = self.random.choice(self.ids), self.platform.words[status], None
        # One time for each message and status: then the row's is known, whichever copy comes first.
        at = self.moments.setdefault((id, status), BEGIN + timedelta(seconds=self.random.randrange(86_400)))
        if self.random.random() < 0.04:
            fault, word = "unknown_status", self.platform.unknown_word
        elif self.random.random() < 0.04:
            fault, id = "missing_id", None
        return (id, word, at), {"message_id": id, "status": status if fault is None else "NONE"}, fault

    def write(self, count):
        records = []
        for _ in range(count):
            drawn = [self.draw() for _ in range(self.random.randint(1, self.platform.most))]
            value, headers = self.platform.record([receipt for receipt, _, _ in drawn])
            records.append(({"value": value, "headers": headers}, drawn))
        for (record, drawn), (partition, offset) in zip(records, self.topic.send_records([record for record, _ in records])):
            place, value = (str(self.topic), partition, offset), record["value"].encode()
            native = json.dumps([ours for _, ours, _ in drawn]).encode()
            alone = len(drawn) == 1 and drawn[0][2] is not None
            self.bytes[place] = value
            if alone:
                self.letters[(*place, -1)] = Letter(drawn[0][2], value, value)
            self.shadow.append(Record(*place, b"[]" if alone else native, 0))

    def add_to(self, expected):
        for record in self.shadow:
            expected.add(record)
        expected.letters.update(self.letters)


def ledger_of(writers, platform):
    expected = ledger.Ledger(platform)
    for writer in writers:
        expected.positions.update({(str(writer.topic), partition): end for partition, (_, end) in writer.topic.watermarks().items()})
        writer.add_to(expected)
    return expected
