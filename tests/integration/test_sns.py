"""Amazon SNS in front of the intake: the certificate that a message names is fetched from Amazon's address and from nowhere else, and a
subscription is confirmed. Amazon is a server of the test: names and authorities are replaced in a mount namespace of the intake's own."""

import base64
import http.server
import json
import os
import shlex
import ssl
import subprocess
import threading

import pytest

from support import intake
from support.daemon import binary
from support.intake import Client
from support.secure import Authority
from support.wait import wait_for
from test_intake import site  # noqa: F401 - a fixture

HOST, ADDRESS = "sns.eu-west-1.amazonaws.com", "127.0.0.77"
ARN = "arn:aws:sns:eu-west-1:123456789012:ses"
CERTIFICATE = f"https://{HOST}/SimpleNotificationService-0a1b0a1b0a1b0a1b0a1b0a1b0a1b0a1b.pem"
ACCOUNT = {"name": "ses", "gateway": "ses_sns", "org_id": "o1", "verify": "required", "topic_arn": ARN}
SIGNED = {"Notification": ("Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"),
          "SubscriptionConfirmation": ("Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type")}

MAY = os.getuid() == 0 and subprocess.run(["unshare", "--mount", "mount", "--bind", "/etc/hosts", "/etc/hosts"], capture_output=True).returncode == 0
pytestmark = [pytest.mark.skipif(not MAY, reason="names and authorities are replaced in a mount namespace, which wants root"),
              pytest.mark.xdist_group("sns")]  # one address for all


class Amazon:
    """Answers with the signing certificate under its path, and takes confirmations."""

    def __init__(self, directory):
        self.directory, self.asked, self.broken = directory, [], False
        authority = Authority(directory, "authority")
        served = authority.issue("amazon", HOST, f"DNS:{HOST}")
        self.key, certificate = directory / "signing.key", directory / "signing.crt"
        Authority.run("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=sns.amazonaws.com", "-keyout", self.key,
                      "-out", certificate)
        amazon = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                amazon.asked.append(self.path)
                body = certificate.read_bytes() if self.path.endswith(".pem") else b"<ConfirmSubscriptionResponse/>"
                self.send_response(500 if amazon.broken else 200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer((ADDRESS, 443), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(served)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        (directory / "certs").mkdir()
        (directory / "certs/ca-certificates.crt").write_text(authority.path.read_text())
        (directory / "hosts").write_text(f"127.0.0.1 localhost\n{ADDRESS} {HOST}\n")

    def wrapper(self):
        """receiptd, for whom this is Amazon."""
        path = self.directory / "receiptd"
        inner = 'mount --bind "$1/hosts" /etc/hosts; mount --bind "$1/certs" /etc/ssl/certs; shift; exec "$@"'
        path.write_text(f"#!/bin/sh\nexec unshare --mount sh -ec {shlex.quote(inner)} sh {shlex.quote(str(self.directory))}"
                        f" {shlex.quote(str(binary()))} \"$@\"\n")
        path.chmod(0o755)
        return path

    def signed(self, kind, **members):
        envelope = {"Type": kind, "MessageId": "165545c9", "TopicArn": ARN, "Timestamp": "2026-11-22T10:00:00.000Z", "Message": "hello",
                    "SignatureVersion": "2", "SigningCertURL": CERTIFICATE, **members}
        text = "".join(f"{key}\n{envelope[key]}\n" for key in SIGNED[kind] if key in envelope)
        signature = subprocess.run(["openssl", "dgst", "-sha256", "-sign", self.key], input=text.encode(), capture_output=True, check=True)
        return {**envelope, "Signature": base64.b64encode(signature.stdout).decode()}

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def amazon(tmp_path):
    directory = tmp_path / "amazon"
    directory.mkdir()
    amazon = Amazon(directory)
    yield amazon
    amazon.close()


@pytest.fixture
def post(site, amazon, monkeypatch):  # noqa: F811
    monkeypatch.setenv("RECEIPTD_BINARY", str(amazon.wrapper()))
    for name in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    process = site.start(accounts=[{**ACCOUNT, "max_age": "0s"}])

    def send(envelope):
        with Client(process.port) as client:
            return client.request("POST", "/dlr/ses", json.dumps(envelope).encode(), ["Content-Type: text/plain; charset=UTF-8"]).status

    yield send
    process.stop()


def delivery(amazon, number, **members):
    message = {"notificationType": "Delivery", "mail": {"messageId": f"ses-{number}", "destination": ["x@example.com"]},
               "delivery": {"timestamp": "2026-11-22T10:00:00.000Z", "recipients": ["x@example.com"]}}
    return amazon.signed("Notification", Message=json.dumps(message), **members)


def events_of(site):  # noqa: F811
    return sorted(event["gateway_message_id"].partition("|")[0] for event in intake.read_events(site.events))


def test_a_subscription_is_confirmed_and_messages_are_verified_with_one_fetch(post, amazon, site):  # noqa: F811
    confirm = f"https://{HOST}/?Action=ConfirmSubscription&TopicArn={ARN}&Token=2336"
    assert post(amazon.signed("SubscriptionConfirmation", SubscribeURL=confirm, Token="2336")) // 100 == 2
    assert amazon.asked == ["/SimpleNotificationService-0a1b0a1b0a1b0a1b0a1b0a1b0a1b0a1b.pem", confirm[len(f"https://{HOST}"):]]
    assert post(delivery(amazon, 1)) // 100 == 2
    assert post(delivery(amazon, 2, Subject="with a subject")) // 100 == 2
    assert len(amazon.asked) == 2  # the certificate is kept
    assert post({**delivery(amazon, 3), "Message": delivery(amazon, 4)["Message"]}) in (401, 403)
    assert events_of(site) == ["ses-1", "ses-2"]


def test_nobody_but_amazon_is_asked(post, amazon, site):  # noqa: F811
    for url in (f"https://{HOST}.example.com/a.pem", f"http://{HOST}/a.pem", f"https://{HOST}@example.com/a.pem", f"https://{HOST}/a.txt",
                "https://example.com/a.pem", f"https://s3.amazonaws.com/a.pem?{HOST}"):
        assert post(delivery(amazon, 1, SigningCertURL=url)) in (401, 403), url
    other = f"https://example.com/?{HOST}"
    assert post(amazon.signed("SubscriptionConfirmation", SubscribeURL=other, Token="1")) // 100 in (2, 4)
    assert amazon.asked == ["/SimpleNotificationService-0a1b0a1b0a1b0a1b0a1b0a1b0a1b0a1b.pem"]
    assert events_of(site) == []


def test_what_cannot_be_fetched_now_is_asked_for_again(post, amazon, site):  # noqa: F811
    amazon.broken = True
    assert post(delivery(amazon, 1)) == 503
    assert post(delivery(amazon, 1)) == 503  # not every request is another fetch
    assert len(amazon.asked) == 1
    amazon.broken = False
    wait_for(lambda: post(delivery(amazon, 1)) // 100 == 2, 30, "the certificate is asked for again", interval=0.5)
    assert set(events_of(site)) == {"ses-1"}


def test_a_subscription_that_cannot_be_confirmed_is_said_and_amazon_told_to_come_again(post, amazon, site):  # noqa: F811
    assert post(delivery(amazon, 1)) // 100 == 2  # the certificate is there
    confirm = amazon.signed("SubscriptionConfirmation", SubscribeURL=f"https://{HOST}/?Action=ConfirmSubscription&TopicArn={ARN}&Token=1", Token="1")
    amazon.broken = True
    assert post(confirm) == 503
    site.process.wait_for_log("level=warn .*account ses: the subscription could not be confirmed: status 500")
    amazon.broken = False
    assert post(confirm) // 100 == 2 and amazon.asked[-1] == amazon.asked[-2] == confirm["SubscribeURL"][len(f"https://{HOST}"):]
