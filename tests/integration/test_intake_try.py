"""`receiptd intake --try`: one HTTP/1.1 request as text, its events as JSON lines, or why there are none. Connects to nothing."""

import base64
import gzip
import hashlib
import hmac
import json
import subprocess

import pytest

from support.daemon import binary, to_yaml

FORM = "Content-Type: application/x-www-form-urlencoded"
URL = "https://hooks.example.com/dlr/acme-twilio"
ACCOUNTS = [
    {"name": "acme-twilio", "gateway": "twilio", "org_id": "o1", "verify": "required", "secrets": ["s3cret-of-twilio"], "public_url": URL},
    {"name": "open-twilio", "gateway": "twilio", "org_id": "o1", "verify": "off"},
    {"name": "wa", "gateway": "whatsapp_cloud", "org_id": "o3", "verify": "off", "verify_token": "s3cret-token"},
    {"name": "infobip", "gateway": "infobip", "org_id": "o2", "verify": "off"},
]


@pytest.fixture
def attempt(tmp_path):
    config = tmp_path / "receiptd.yaml"
    config.write_text(to_yaml({"intake": {"topic": "t", "dead_letter_topic": "d", "accounts": ACCOUNTS}}) + "\n")

    def run(account, text):
        done = subprocess.run([binary(), "intake", "--try", account, "--config", config], input=text, capture_output=True, timeout=60)
        assert b"s3cret" not in done.stdout + done.stderr
        return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr.decode()

    return run


def request(body, *headers, target="/dlr/open-twilio", method="POST", length=True):
    head = [f"{method} {target} HTTP/1.1", "Host: x", *headers, *([f"Content-Length: {len(body)}"] if length else []), "", ""]
    return "\r\n".join(head).encode() + body


def test_a_request_becomes_its_events(attempt):
    status, events, said = attempt("open-twilio", request(b"MessageSid=SM1&MessageStatus=delivered", FORM))
    assert status == 0 and "answer 20" in said
    (event,) = events
    assert (event["gateway_message_id"], event["status"], event["gateway"], event["org_id"]) == ("SM1", "DELIVERED", "open-twilio", "o1")
    for elsewhere in ("/hooks/twilio", "/dlr/open-twilio-2"):  # as a proxy or another account had it
        status, events, said = attempt("open-twilio", request(b"MessageSid=SM1&MessageStatus=delivered", FORM, target=elsewhere))
        assert status == 0 and [event["gateway"] for event in events] == ["open-twilio"]
    results = {"results": [{"messageId": f"i{n}", "status": {"groupName": "DELIVERED", "groupId": 3, "id": 5, "name": "DELIVERED_TO_HANDSET"}}
                           for n in range(3)]}
    status, events, said = attempt("infobip", request(json.dumps(results).encode(), "Content-Type: application/json", target="/dlr/infobip"))
    assert status == 0 and [event["gateway_message_id"] for event in events] == ["i0", "i1", "i2"]


def test_bodies_may_come_in_chunks_and_compressed(attempt):
    body = b"MessageSid=SM2&MessageStatus=sent"
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:7], body[7:])) + b"0\r\n\r\n"
    status, events, _ = attempt("open-twilio", request(chunks, FORM, "Transfer-Encoding: chunked", length=False))
    assert status == 0 and events[0]["gateway_message_id"] == "SM2"
    status, events, _ = attempt("open-twilio", request(gzip.compress(body), FORM, "Content-Encoding: gzip"))
    assert status == 0 and events[0]["status"] == "SENT"


def test_a_signature_is_looked_at(attempt):
    body = b"MessageSid=SM3&MessageStatus=delivered"
    signed = hmac.new(b"s3cret-of-twilio", (URL + "MessageSidSM3MessageStatusdelivered").encode(), hashlib.sha1).digest()
    right = f"X-Twilio-Signature: {base64.b64encode(signed).decode()}"
    assert attempt("acme-twilio", request(body, FORM, right, target="/dlr/acme-twilio"))[0] == 0
    status, events, said = attempt("acme-twilio", request(body + b"x", FORM, right, target="/dlr/acme-twilio"))
    assert (status, events) == (77, []) and "answer 40" in said
    status, events, said = attempt("acme-twilio", request(body, FORM, target="/dlr/acme-twilio"))
    assert (status, events) == (77, []) and "answer 40" in said


def test_what_becomes_nothing_says_why(attempt):
    status, events, said = attempt("open-twilio", request(b"MessageSid=SM4&MessageStatus=teleported", FORM))
    assert (status, events) == (65, []) and 'not mapped' in said and '"teleported"' in said
    status, events, said = attempt("open-twilio", b"this is no request\r\n\r\n")
    assert (status, events) == (65, []) and said.strip()
    status, events, said = attempt("nobody", request(b""))
    assert (status, events) == (66, []) and 'no intake account "nobody"' in said
    assert all(account["name"] in said for account in ACCOUNTS)


def test_a_damaged_body_is_said(attempt):
    body = gzip.compress(b"MessageSid=SM2&MessageStatus=sent" * 9)
    for wrong in (body[:-9], b"no gzip at all"):
        status, events, said = attempt("open-twilio", request(wrong, FORM, "Content-Encoding: gzip"))
        assert (status, events) == (65, []) and "Content-Encoding" in said


def test_a_request_that_asks_for_something_else_than_to_take_receipts_says_what_is_answered(attempt):
    asked = "/dlr/wa?hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token=s3cret-token"
    status, events, said = attempt("wa", request(b"", target=asked, method="GET", length=False))
    assert (status, events) == (0, []) and "answer 200 with 10 bytes of text/plain" in said
    assert "the request does not bring receipts" in said


def test_a_configuration_that_cannot_be_read_is_said(tmp_path):
    config = tmp_path / "receiptd.yaml"
    config.write_text("lanez: 1\n")
    done = subprocess.run([binary(), "intake", "--try", "a", "--config", config], input=b"", capture_output=True, timeout=60)
    assert done.returncode == 78 and b"lanez" in done.stderr and done.stdout == b""
