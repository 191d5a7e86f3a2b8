"""Signatures against the gateways' own libraries: what they sign is accepted, and refused when a bit of it is another.

Called by scripts/test --sdk, for it fetches eight packages from the Python registry."""

import json
import random
import shlex
import subprocess

import pytest

from support.daemon import binary, to_yaml
from support.services import ROOT

# Each with what it needs beside its own dependencies.
PACKAGES = {
    "twilio": "twilio==9.13.0",
    "vonage": "vonage==3.12.0",
    "vonage-jwt": "vonage-jwt==1.1.0",
    "plivo": "plivo==4.63.0",
    "telnyx": "telnyx==4.189.0 pynacl",
    "messagebird": "messagebird==2.2.0 pyjwt",
    "standardwebhooks": "standardwebhooks==1.1.0",
    "svix": "svix==1.56.0",
}
COUNT, SEED = 12, 7
REFUSED = 77


@pytest.fixture(params=PACKAGES)
def requests(request):
    sdk = request.param
    script = f'set -eu; ROOT={shlex.quote(str(ROOT))}; . "$ROOT/scripts/lib/fetch.sh"; fetch_sdk {sdk} {PACKAGES[sdk]}'
    folder = subprocess.run(["sh", "-c", script], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True).stdout.strip()
    signed = subprocess.run(["/usr/bin/python3", ROOT / "tests/sdk/sign.py", sdk, str(COUNT), str(SEED)], env={"PYTHONPATH": folder}, check=True,
                            stdout=subprocess.PIPE, text=True).stdout
    found = [json.loads(line) for line in signed.splitlines()]
    assert len(found) == COUNT
    return found


def judge(directory, signed):
    """The exit status of `receiptd intake --try`."""
    account = {**signed["account"], "org_id": "o1", "secrets": [signed["secret"]], "verify": "required"}
    account["public_url"] = f"https://hooks.example.com/dlr/{account['name']}"
    config = directory / "config.yaml"
    config.write_text(to_yaml({"intake": {"topic": "t", "dead_letter_topic": "d", "accounts": [account]}}) + "\n")
    body = signed["body"].encode()
    lines = [f"{signed['method']} {signed['target']} HTTP/1.1", "Host: x", *(f"{name}: {value}" for name, value in signed["headers"].items()),
             f"Content-Length: {len(body)}", "", ""]
    return subprocess.run([binary(), "intake", "--try", account["name"], "--config", config], input="\r\n".join(lines).encode() + body,
                          capture_output=True)


def altered(signed, dice):
    """One character of what the library has signed, or of its signature, is another."""
    copy = json.loads(json.dumps(signed))
    places = [("body", None)] if copy["body"] else [("target", None)]
    places += [("headers", name) for name in copy["headers"] if name != "Content-Type"]
    name, member = dice.choice(places)
    value = copy[name] if member is None else copy[name][member]
    first = value.index("=") + 1 if name == "target" else 0
    at = dice.choice([index for index in range(first, len(value)) if value[index].isalnum() and value[index].isascii()
                      and "%" not in value[max(0, index - 2):index]])
    value = value[:at] + ("a" if value[at] != "a" else "b") + value[at + 1:]
    if member is None:
        copy[name] = value
    else:
        copy[name][member] = value
    return copy


def test_what_the_library_signs_is_accepted_and_nothing_else(requests, tmp_path):
    dice = random.Random(SEED)
    for signed in requests:
        result = judge(tmp_path, signed)
        assert result.returncode == 0 and result.stdout.count(b"\n") == 1, (signed, result)
        for _ in range(3):
            other = altered(signed, dice)
            result = judge(tmp_path, other)
            assert result.returncode in (REFUSED, 65) and not result.stdout, (other, result)
