"""A message through a real SMPP gateway: simulated SMSC → Kannel → intake → Kafka."""

import hashlib
import hmac
import shutil
from datetime import datetime, timedelta, timezone

import pytest

from support import intake, smpp
from support.smpp import Smsc
from support.wait import wait_for

KEY = "of the callback's url"
MESSAGES = {f"m{number}": ("%T", "%t")[number % 2] for number in range(20)}


def callback(port, message_id, time):
    signature = hmac.new(KEY.encode(), message_id.encode(), hashlib.sha256).hexdigest()
    return f"http://127.0.0.1:{port}/dlr/smpp?id={message_id}&sig={signature}&status=%d&ts={time}&answer=%A"


@pytest.mark.skipif(not all(map(shutil.which, ("java", "mvn", "apt-get"))), reason="needs Debian, Maven and a JRE for Kannel and its SMSC")
def test_receipts_of_smpp_reach_kafka_through_kannel(receiptd, topic, create_topic, tmp_path):
    smpp.fetch()
    receiptd.configure(intake={
        "listen": "127.0.0.1:0", "metrics_listen": "127.0.0.1:0", "topic": str(topic), "dead_letter_topic": str(create_topic(1)), "alias": "off",
        "accounts": [{"name": "smpp", "gateway": "kannel", "org_id": "o1", "auth": "url-hmac", "auth_name": "id", "secrets": [KEY]}]})
    process = intake.start(receiptd)
    begun = datetime.now(timezone.utc)
    with Smsc(tmp_path) as smsc:
        def waiting():
            return MESSAGES.keys() - {event["message_id"] for event in intake.read_events(topic) if event["status"] == "DELIVERED"}

        # Kannel drops a receipt that overtakes the answer to its submission, and a callback answered with 503: such messages
        # are sent once more.
        for left in range(9, -1, -1):
            for message_id in sorted(waiting()):
                smsc.send(f"hello {message_id}", callback(process.port, message_id, MESSAGES[message_id]))
            try:
                wait_for(lambda: not waiting(), 4, "all messages are delivered", interval=0.5, details=smsc.logs)
                break
            except AssertionError:
                if left == 0:
                    raise
    events = intake.read_events(topic)
    assert {event["message_id"] for event in events} == MESSAGES.keys()
    assert {event["status"] for event in events} <= {"SENT", "DELIVERED"} and {event["gateway"] for event in events} == {"smpp"}
    for event in events:  # UTC, though Kannel lives in India
        assert abs(datetime.fromisoformat(event["at"].replace("Z", "+00:00")) - begun) < timedelta(minutes=10), event
    process.stop()
