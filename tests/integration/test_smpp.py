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
MESSAGES = 20


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
        for number in range(MESSAGES):
            smsc.send(f"hello {number}", callback(process.port, f"m{number}", ("%T", "%t")[number % 2]))

        def delivered():
            return {event["message_id"] for event in intake.read_events(topic) if event["status"] == "DELIVERED"}

        wait_for(lambda: len(delivered()) == MESSAGES, 60, "all messages are delivered", interval=0.5, details=smsc.logs)
    events = intake.read_events(topic)
    assert {event["message_id"] for event in events} == {f"m{number}" for number in range(MESSAGES)}
    assert {event["status"] for event in events} <= {"SENT", "DELIVERED"} and {event["gateway"] for event in events} == {"smpp"}
    for event in events:  # UTC, though Kannel lives in India
        assert abs(datetime.fromisoformat(event["at"].replace("Z", "+00:00")) - begun) < timedelta(minutes=10), event
    process.stop()
