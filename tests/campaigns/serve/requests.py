"""Requests as clients send them by mistake or on purpose, made from the OpenAPI document: paths, values, tokens, headers, bodies."""

import json
import random
from dataclasses import dataclass, field
from urllib.parse import quote

ORGANISATIONS = ("alpha", "beta")
ODD = ("", "nothing", "..", ".", "%00", "\u00e9", "'", '"', "{", "}", "a" * 300, "a" * 1001, "-1", "0", "1", "500", "501", "99999999999999999999", "NaN", "1e400:x",
       "true", "null", "'; DROP TABLE serve_token; --", "1:x", "a|b|c", "2025-01-01|t|0|1|0", "\u202e", "=1+1", "x\r\nX-Org: *")
HEADERS = ("If-None-Match: *", 'If-None-Match: W/"x', "Accept-Encoding: gzip", "Accept-Encoding: gzip;q=0", "Range: bytes=0-", "X-Forwarded-For: 127.0.0.1",
           "Cookie: token={all}", "Origin: null", "Origin: http://evil.example", "Last-Event-ID: 1:2:3", "X-Org: *", "X-Org: beta-org", "X-HTTP-Method-Override: DELETE",
           "X-Original-URL: /api/v1/status", "Forwarded: for=127.0.0.1;host=localhost", "Content-Type: text/plain", "Expect: 100-continue", "TE: trailers")
# Without the token's owner, in bytes: none of them may be answered with a row.
RAW = (b"GET /api/v1/campaigns HTTP/1.1\r\nHost: evil.example\r\nAuthorization: Bearer {all}\r\n\r\n",
       b"GET /api/v1/campaigns HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\nAuthorization: Bearer {all}\r\n\r\n",
       b"GET /api/v1/campaigns HTTP/1.1\r\nAuthorization: Bearer {all}\r\n\r\n",
       b"GET /api/v1/campaigns HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Basic {all}\r\n\r\n",
       b"GET /api/v1/campaigns HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {nobody}\r\nAuthorization: Bearer {all}\r\n\r\n",
       b"GET /api/v1/campaigns HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization : Bearer {all}\r\n\r\n",
       b"GET /api/v1/campaigns HTTP/1.1\r\nHost: 127.0.0.1\r\nX: y\r\n Authorization: Bearer {all}\r\n\r\n",
       b"GET /api/v1/campaigns?token={all} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
       b"GET /api/v1/campaigns?link={all} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
       b"GET /api/v1/campaigns HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: Authorization=Bearer {all}\r\n\r\n",
       b"GET /api/v1/campaigns HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Org: *\r\n\r\n",
       b"POST /api/v1/dead-letters/redrive HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {beta}\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
       b"POST /api/v1/dead-letters/redrive HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {all}\r\nContent-Length: 99999999\r\n\r\n{}",
       b"GET /api/v1/campaigns HTTP/9.9\r\nHost: 127.0.0.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00", b"GET\r\n\r\n", b"\x00" * 100,
       b"GET /" + b"a/" * 9000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", b"GET /api/v1/me HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"a" * 20000 + b"\r\n\r\n",
       b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"CONNECT evil.example:443 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
       b"GET http://evil.example/api/v1/campaigns HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {nobody}\r\n\r\n",
       b"GET /api/v1/../v1/campaigns HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {nobody}\r\n\r\n",
       b"GET /api/v1/campaigns/alpha-campaign/funnel HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {nobody}\r\nX-Org: alpha-org\r\n\r\n",
       b"OPTIONS /api/v1/campaigns HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://evil.example\r\nAccess-Control-Request-Method: POST\r\n\r\n")


@dataclass
class Request:
    method: str
    target: str
    who: str  # a key of the tokens; "none", "garbage", "link"
    route: tuple = None  # (path, method) of the document; None: the path may be none of them
    headers: list = field(default_factory=list)
    body: bytes = None


class Maker:
    def __init__(self, seed, description, tokens, link):
        self.random, self.routes, self.tokens, self.link = random.Random(seed), description.routes(), tokens, link

    def value(self, name):
        if self.random.random() < 0.25:
            return self.random.choice(ODD)
        org = self.random.choice(ORGANISATIONS)
        return {"campaign": f"{org}-campaign", "message": f"{org}-m{self.random.randrange(32)}", "pipeline": f"{org}-pipeline", "q": f"{org}-m5"}.get(name, f"{org}-org")

    def parameter(self, described):
        schema = described["schema"]
        if self.random.random() < 0.2:
            return self.random.choice(ODD)
        if "enum" in schema:
            return self.random.choice(schema["enum"])
        if schema["type"] == "integer":
            return str(self.random.choice([schema["minimum"], schema["maximum"], self.random.randint(schema["minimum"], min(schema["maximum"], 600))]))
        return self.value(described["name"])

    def body(self):
        ids = [f"t/0/{self.random.randrange(3000)}/0" for _ in range(self.random.randrange(6))]
        return self.random.choice([b"", b"{}", b"[]", b"null", b'{"reason": 1}', b"{" * 50, b"\xff\xfe", json.dumps({"ids": ids}).encode(), json.dumps({"ids": ids + [
            self.random.choice(ODD)]}).encode(), b'{"reason": "aged_out"}', b'{"reason": "no_such"}', json.dumps({"ids": ids, "after": "t/0/1/0"}).encode()])

    def make(self):
        path, method, operation = self.random.choice(self.routes)
        if path.endswith("/stream"):
            path, method, operation = self.routes[0]
        values = {}
        for described in operation["parameters"]:
            if described["required"] or self.random.random() < 0.4:
                values[described["name"]] = self.parameter(described)
        target = path
        for described in operation["parameters"]:
            if described["in"] == "path":
                target = target.replace("{%s}" % described["name"], quote(values.pop(described["name"]), safe=self.random.choice(["", "%", "/%"])))
        pairs = [f"{name}={quote(value, safe='%')}" for name, value in values.items()]
        if self.random.random() < 0.1:
            pairs.append(self.random.choice(["limit=1", "no_such=1", "&&", "=", "a" * 200, "q=%", "link=x", "after=%ff"]))
        who = self.random.choice([*self.tokens, *self.tokens, "none", "garbage", "link"])
        if who == "link":
            pairs.append(f"link={self.link}")
        route = (path, method)
        if self.random.random() < 0.1:
            target, route = self.mangled(target), None
        request = Request(method.upper(), target + ("?" + "&".join(pairs) if pairs else ""), who, route, self.random.sample(HEADERS, self.random.choice([0, 0, 1, 2])))
        if self.random.random() < 0.1:
            request.method, request.route = self.random.choice(["HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "GET"]), None
        if request.method in ("POST", "PUT", "PATCH"):
            request.body = self.body()
        return request

    def mangled(self, target):
        bit = self.random.choice(["/", "//", "/..", "%2f", "%00", "%", ";", "/x", ".json", "\u00e9".encode().decode("latin-1"), "{campaign}"])
        place = self.random.randrange(len(target) + 1)
        return "/" + (target[:place] + bit + target[place:]).lstrip("/").encode("ascii", "ignore").decode()
