"""receiptd serve: its description is what it does, for generated clients and for whatever a client may send."""

import json
import os
import re
import subprocess
import sys
from urllib.parse import quote

import pytest
from faults.servers import library
from support import reader
from support.openapi import Description
from support.services import ROOT
from support.site import SECRET, Site, bury, operator

SCHEMATHESIS = "schemathesis==4.32.5"
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "QUERY", "PROPFIND", "M-SEARCH", "BREW")


# OpenAPI cannot say that parameters exclude each other: what x-exactly-one-of says is left out here, and asked for by a test of its own.
HOOKS = """
import schemathesis

@schemathesis.hook
def filter_case(context, case):
    names = case.operation.definition.raw.get("x-exactly-one-of", ())
    return not names or sum(name in (case.query or {}) for name in names) == 1
"""


@pytest.fixture
def site(request, receiptd, database):
    """With all that can be switched on; customers only for who asks for them."""
    if getattr(request, "param", None) == "customers":
        receiptd.configure(inbox={"columns": {"customer_id": "customer_id"}}, counters={"groups": ["customer"]})
    made = Site(receiptd, database)
    receiptd.configure(counters={"series": "90d", "gateways": "90d", "reasons": True, "times": True}, timeline={"retention": "1d"})
    operator(made, link_secret=SECRET)
    bury(made, 30)
    yield made
    if made.process.running:
        made.process.stop()
    made.drop()


def ask(site, method, path, token=None):
    """As bytes: http.client has words of its own about some methods."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{site.process.port}", f"Authorization: Bearer {token or site.token}", "Content-Length: 0",
             "Connection: close", "", ""]
    head, _, body = reader.raw(site.process, "\r\n".join(lines).encode(), 60).partition(b"\r\n\r\n")
    headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
    return int(head.split()[1]), headers, body


@pytest.mark.slow
@pytest.mark.parametrize("site", ("customers",), indirect=True)
def test_whatever_the_description_allows_is_answered_as_it_says(site):
    """By schemathesis: values at and beyond each bound, other methods, other bodies, no token, with any combination of parameters."""
    try:
        package = library(f"fetch_sdk schemathesis {SCHEMATHESIS}")
    except subprocess.CalledProcessError:
        pytest.skip(f"{SCHEMATHESIS} could not be fetched")
    (site.receiptd.directory / "exactly_one.py").write_text(HOOKS)
    done = subprocess.run([sys.executable, "-m", "schemathesis.cli", "run", f"http://127.0.0.1:{site.process.port}/api/v1/openapi.json",
                           "-H", f"Authorization: Bearer {site.token}", "--exclude-path", "/api/v1/stream", "--phases", "examples,coverage,fuzzing",
                           "--max-examples", "40", "--seed", "1", "--continue-on-failure", "--no-color"],
                          cwd=site.receiptd.directory, env={**os.environ, "PYTHONPATH": f"{package}:{site.receiptd.directory}", "SCHEMATHESIS_HOOKS": "exactly_one"}, text=True, capture_output=True, timeout=1000)
    print(done.stdout[-8000:], done.stderr[-2000:])
    assert done.returncode == 0 and re.search(r"\d{3,} generated, \d{3,} passed", done.stdout)


def test_a_generated_client_has_names_and_knows_how_to_be_admitted(site):
    document = site.json("/openapi.json")
    operations = [operation for methods in document["paths"].values() for operation in methods.values()]
    names = [operation["operationId"] for operation in operations]
    assert len(set(names)) == len(names) == 18 and all(re.fullmatch(r"[a-z]+([A-Z][a-z]+)+", name) for name in names), names
    schemes = document["components"]["securitySchemes"]
    assert schemes["token"]["scheme"] == "bearer" and (schemes["link"]["in"], schemes["link"]["name"]) == ("query", "link")
    for operation in operations:
        assert operation["tags"] and operation["summary"]
        assert operation["security"] == [{"token": []}] + [{"link": []}] * operation["x-by-link"]
        for parameter in operation["parameters"]:
            schema = parameter["schema"]
            assert schema["type"] == "boolean" or {"enum"} <= schema.keys() or {"minimum", "maximum"} <= schema.keys() or {"minLength", "maxLength"} <= schema.keys(), parameter
    status = next(parameter for parameter in document["paths"]["/api/v1/campaigns/{campaign}/recipients"]["get"]["parameters"] if parameter["name"] == "status")
    assert {"DELIVERED", "COMPLAINED"} <= set(status["schema"]["enum"])
    find, = (operation for operation in operations if operation["operationId"] == "findMessages")
    assert [(parameter["name"], parameter["required"]) for parameter in find["parameters"]] == [("q", True)], "customer is off"
    redrive = Description(document)
    takes = {"$ref": "#/components/schemas/Redrive"}
    for body, good in (({"reason": "aged_out"}, True), ({"ids": ["t/0/0/0"]}, True), ({"ids": ["t/0/0/-2"], "after": "t/0/1/0"}, True), ({}, False), ({"ids": []}, False),
                       ({"reason": "no_such"}, False), ({"reason": "aged_out", "ids": ["t/0/0/0"]}, False), ({"ids": ["x"]}, False), ({"ids": ["t/00/0/0"]}, False),
                       ({"ids": ["t/0/0/0"] * 501}, False), ({"reason": "aged_out", "more": 1}, False)):
        assert not redrive.faults(takes, body) == good, body
        answer = site.get("/dead-letters/redrive", method="POST", body=json.dumps(body).encode())
        assert (answer.status == 200) == good, (body, answer)


@pytest.mark.parametrize("site", ("customers",), indirect=True)
def test_parameters_that_exclude_each_other_are_described_so(site):
    operation = site.json("/openapi.json")["paths"]["/api/v1/messages"]["get"]
    assert operation["x-exactly-one-of"] == ["q", "customer"] and "exactly one of: q, customer" in operation["description"]
    assert [(one["name"], one["required"]) for one in operation["parameters"]] == [("q", False), ("customer", False)]
    assert operation["responses"]["400"]["content"]["application/problem+json"]["schema"] == {"$ref": "#/components/schemas/Problem"}
    for query in ("?q=alpha-m5", "?customer=4711"):
        assert site.get("/messages" + query).status == 200
    for query in ("", "?", "?q=alpha-m5&customer=4711", "?customer=4711&q=alpha-m5"):
        answer = site.get("/messages" + query)
        assert (answer.status, answer.json["code"]) == (400, "invalid_parameter") and "takes exactly one of: q, customer" in answer.json["detail"], query


def test_each_path_takes_its_methods_and_names_them(site):
    document = site.json("/openapi.json")
    for path, operations in document["paths"].items():
        takes = {method.upper() for method in operations} | ({"HEAD"} if "get" in operations else set()) | {"OPTIONS"}
        for method in METHODS:
            if path.endswith("/stream") and method == "GET":
                continue
            status, headers, body = ask(site, method, reader.fill(path, {"campaign": "alpha-campaign", "message": "alpha-m5", "pipeline": "alpha-pipeline"}))
            if method == "OPTIONS" or method not in takes:
                assert status == (204 if method == "OPTIONS" else 405) and set(headers["Allow"].split(", ")) == takes, (method, path, status, headers)
            else:
                assert status in (200, 400), (method, path, status)  # 400: without its query or body
            if status == 405 and method != "HEAD":
                assert json.loads(body)["code"] == "method_not_allowed"
    for method in METHODS:
        assert ask(site, method, "/api/v1/nothing")[0] == 404, method
        assert ask(site, method, "/metrics")[0] in ((204,) if method == "OPTIONS" else (404, 405)), method
    for line in ("brew / HTTP/1.1", "BREW/ / HTTP/1.1", "BREW  HTTP/1.1", "BREW", "BREW / HTTP/2.0", "BREW / ICE/1.0"):
        answer = reader.raw(site.process, f"{line}\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
        assert int(answer.split()[1]) in (400, 505), (line, answer)


def test_what_is_valid_is_not_refused(site):
    """The ends of each range, and characters of several bytes."""
    for path in (f"/actions?after={2**63 - 1}", "/actions?after=0", "/actions?limit=500", "/gateways?hours=8760", "/gateways?hours=1", f"/campaigns?q={quote('ü' * 1000)}",
                 f"/messages?q={quote('😀' * 1000)}", "/campaigns?after=0%3A-Infinity%3A1%3Ax", "/campaigns?after=2%3A1e%2B18%3A12%3A", "/campaigns?after=1%3A0.5%3A1%3Ax%3Ay",
                 "/dead-letters?after=" + quote("99999999999999999|t|999999999|999999999999999999|-999999999"), "/dead-letters?reason=whatever"):
        assert site.get(path).status == 200, path
    for size, status in ((1000, 404), (1001, 400)):
        assert site.get(f"/campaigns/{quote('é' * size)}/funnel").status == status


def test_an_error_says_what_would_be_right(site):
    for path, words in (("/actions?limit=501", "limit has to be an integer from 1 to 500"), ("/actions?limit=x", "from 1 to 500"), ("/actions?limit=+1", "from 1 to 500"),
                        (f"/actions?after={2**63}", f"from 0 to {2**63 - 1}"), ("/gateways?hours=0", "from 1 to 8760"), ("/campaigns?sort=x", "changed|rate|problems"),
                        ("/campaigns?q=" + "x" * 1001, "has 1001 characters: from 1 to 1000"), ("/campaigns?q=", "has 0 characters"), ("/campaigns?after=x", "`next` of a page"),
                        ("/campaigns?after=1e400:x", "`next` of a page"), ("/dead-letters?after=2025-13-45T00|t|0|0|0", "`next` of a page")):
        answer = site.get(path)
        assert answer.status == 400 and words in answer.json["detail"] and answer.json["code"] == "invalid_parameter", (path, answer)


def test_letters_are_paged_by_a_key_that_leads_to_the_same_place(site):
    seen, after = [], ""
    while after is not None:
        page = site.json("/dead-letters?limit=7" + (f"&after={quote(after)}" if after else ""))
        seen += [row["id"] for row in page["dead_letters"]]
        after = page["next"]
    assert len(seen) == len(set(seen)) == 30


def test_each_code_is_documented_and_each_documented_one_is_there():
    """Also of problems that no test provokes."""
    texts = [path.read_text() for path in sorted((ROOT / "src/serve").glob("*.c"))]
    used = {code for text in texts for code in re.findall(r'(?:serve_answer_problem|refuse)\([^;"]*?\b[345]\d\d,\s*"([a-z_]+)"', text)} | \
        set(re.findall(r'refuse\(request, "([a-z_]+)"', (ROOT / "src/serve/access.c").read_text()))
    table = (ROOT / "docs/serve.md").read_text().partition("| status | `code` |")[2].partition("\n\n")[0]
    assert used == set(re.findall(r"`([a-z]+_?[a-z]+(?:_[a-z]+)*)`", table)) - {"detail"}, used
