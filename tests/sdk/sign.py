"""Requests signed, or at least accepted, by a gateway's own library: sign.py SDK COUNT SEED, one JSON object a line.

Runs in a process of its own for each library, whose packages are first in its path (scripts/lib/fetch.sh, fetch_sdk).
"""

import base64
import hashlib
import json
import random
import string
import sys
from datetime import datetime, timezone
from urllib.parse import urlencode

BASE = "https://hooks.example.com/dlr/"
CHARACTERS = string.ascii_letters + string.digits + " +&=%/:;,.-_~äß€"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
JSON = {"Content-Type": "application/json"}
NOW = 1760789441

dice = random.Random()


def text(longest=30):
    return "".join(dice.choice(CHARACTERS) for _ in range(dice.randrange(1, longest)))


def word(size=16):
    return "".join(dice.choice(string.ascii_letters + string.digits) for _ in range(size))


def request(account, secret, headers, body="", query="", method="POST"):
    return {"account": account, "secret": secret, "method": method, "target": f"/dlr/{account['name']}{query}", "headers": headers, "body": body}


def account(gateway, **more):
    return {"name": gateway.replace("_", "-"), "gateway": gateway, **more}


def custom(auth):
    return account("custom", auth=auth, custom={"id": "/id", "status": "/status", "statuses": {"done": "DELIVERED"}})


def receipt():
    return json.dumps({"id": word(), "status": "done", "note": text()}, ensure_ascii=dice.random() < 0.5)


def twilio():
    from twilio.request_validator import RequestValidator
    token, url = word(32), BASE + "twilio" + f"?message_id={word()}"
    if dice.random() < 0.5:
        params = {"MessageSid": "SM" + word(), "MessageStatus": "delivered", "To": "+15550100002", "Note": text(), "Other": text()}
        return request(account("twilio"), token, {**FORM, "X-Twilio-Signature": RequestValidator(token).compute_signature(url, params)},
                       urlencode(params), url[len(BASE + "twilio"):])
    body = json.dumps({"MessageSid": "SM" + word(), "MessageStatus": "delivered", "Note": text()})
    url += "&bodySHA256=" + hashlib.sha256(body.encode()).hexdigest()
    return request(account("twilio"), token, {**JSON, "X-Twilio-Signature": RequestValidator(token).compute_signature(url, {})}, body,
                   url[len(BASE + "twilio"):])


def vonage():
    from vonage import Client
    secret = word()
    method = dice.choice(("md5", "sha1", "sha256", "sha512"))
    params = {"messageId": word(), "status": "delivered", "err-code": "0", "timestamp": str(NOW), "nonce": word(), "client-ref": text()}
    client = Client(key="k", secret="s", signature_secret=secret, signature_method=method)
    params["sig"] = client.signature(dict(params))
    assert client.check_signature(dict(params))
    if dice.random() < 0.5:
        return request(account("vonage_sms"), secret, {}, query="?" + urlencode(params), method="GET")
    return request(account("vonage_sms"), secret, FORM, urlencode(params))


def vonage_jwt():
    import jwt
    from vonage_jwt.verify_jwt import verify_signature
    secret, body = word(32), json.dumps({"message_uuid": word(), "status": "delivered", "channel": "sms", "client_ref": text()})
    claims = {"iat": NOW, "jti": word(), "api_key": "k", "payload_hash": hashlib.sha256(body.encode()).hexdigest()}
    token = jwt.encode(claims, secret, algorithm="HS256")
    assert verify_signature(token, secret)
    return request(account("vonage_messages"), secret, {**JSON, "Authorization": f"Bearer {token}"}, body)


def plivo():
    from plivo.utils.signature_v3 import construct_post_url, get_signature_v3, validate_v3_signature
    token, nonce, url = word(32), word(), BASE + "plivo"
    params = {"MessageUUID": word(), "Status": "delivered", "Sequence": "3", "From": text(), "Type": "sms"}
    value = get_signature_v3(token.encode(), construct_post_url(url, params).decode(), nonce.encode()).decode()
    assert validate_v3_signature("POST", url, nonce, token, value, params)
    return request(account("plivo"), token, {**FORM, "X-Plivo-Signature-V3": value, "X-Plivo-Signature-V3-Nonce": nonce}, urlencode(params))


def telnyx():
    from nacl.signing import SigningKey
    from telnyx import Telnyx
    key = SigningKey(bytes(dice.randrange(256) for _ in range(32)))
    public = base64.b64encode(bytes(key.verify_key)).decode()
    now = str(int(datetime.now(timezone.utc).timestamp()))
    body = json.dumps({"data": {"event_type": "message.finalized", "id": word(), "payload": {"id": word(), "text": text()}}})
    headers = {"telnyx-signature-ed25519": base64.b64encode(key.sign(f"{now}|{body}".encode()).signature).decode(), "telnyx-timestamp": now}
    Telnyx(api_key="k", public_key=public).webhooks.unwrap(body, headers=headers)
    described = account("custom", auth="telnyx", custom={"id": "/data/payload/id", "status": "/data/event_type",
                                                         "statuses": {"message.finalized": "DELIVERED"}})
    return request(described, public, {**JSON, **headers}, body)


def messagebird():
    import jwt
    from messagebird.request_validator import RequestValidator
    key, now = word(32), int(datetime.now(timezone.utc).timestamp())
    query = "?" + urlencode({"id": word(), "status": "delivered", "statusDatetime": "2025-10-18T12:10:33+00:00", "reference": text()})
    url = BASE + "messagebird" + query
    token = jwt.encode({"iss": "MessageBird", "nbf": now - 1, "exp": now + 60, "jti": word(),
                        "url_hash": hashlib.sha256(url.encode()).hexdigest()}, key, algorithm="HS256")
    RequestValidator(key).validate_signature(token, url, "")
    return request(account("messagebird"), key, {"MessageBird-Signature-JWT": token}, query=query, method="GET")


def standard(library, prefix):
    from importlib import import_module
    secret = "whsec_" + base64.b64encode(word(24).encode()).decode()
    hook, id, at, body = import_module(library).Webhook(secret), "msg_" + word(), datetime.now(timezone.utc), receipt()
    headers = {f"{prefix}-id": id, f"{prefix}-timestamp": str(int(at.timestamp())), f"{prefix}-signature": hook.sign(id, at, body)}
    hook.verify(body, headers)
    return request(custom("standard-webhooks"), secret, {**JSON, **headers}, body)


SDKS = {
    "twilio": twilio,
    "vonage": vonage,
    "vonage-jwt": vonage_jwt,
    "plivo": plivo,
    "telnyx": telnyx,
    "messagebird": messagebird,
    "standardwebhooks": lambda: standard("standardwebhooks", "webhook"),
    "svix": lambda: standard("svix.webhooks", "svix"),
}

if __name__ == "__main__":
    dice.seed(sys.argv[3])
    for _ in range(int(sys.argv[2])):
        print(json.dumps(SDKS[sys.argv[1]]()))
