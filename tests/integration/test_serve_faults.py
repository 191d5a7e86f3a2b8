"""PostgreSQL goes away under receiptd serve and comes back: nothing is made up meanwhile, and all recovers by itself."""

import json
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest
from support import reader
from support.openapi import Description
from support.servers import Postgres
from support.site import Site, bury, letters, operator, redrive
from support.wait import wait_for

pytestmark = pytest.mark.alone


@pytest.fixture
def postgres(services):
    """The session's server, to be stopped."""
    server = Postgres(services)
    yield server
    if not server.answers():
        server.start()


@pytest.fixture
def site(receiptd, database, postgres):
    made = Site(receiptd, database)
    yield made
    if not postgres.answers():
        postgres.start()
    made.process.stop()
    made.drop()


def stop(site, postgres):
    site.database.connection.close()
    postgres.stop_immediately()


def ready(site):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{reader.pages(site.process)}/readyz", timeout=10) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        assert json.load(error)["reasons"] == ["the database does not answer"]
        return error.code


def told(stream):
    return [(data["ok"], data["database"]) for name, data in stream.read() if name == "health"]


def begun(stream):
    return [data for name, data in stream.read() if name == "campaign"]


def test_a_database_that_goes_away_is_told_and_comes_back(site, postgres):
    description = Description(site.json("/openapi.json"))
    stream = reader.Stream(site.process, token=site.token)
    wait_for(lambda: begun(stream), what="the stream begins")
    before = site.json("/campaigns/alpha-campaign/funnel")
    fetched = len(begun(stream))
    stop(site, postgres)
    wait_for(lambda: told(stream)[-1] == (False, "down"), what="viewers are told")
    assert ready(site) == 503
    for path in ("/campaigns", "/campaigns/alpha-campaign/funnel", "/campaigns/alpha-campaign/recipients", "/messages/alpha-m5", "/me"):
        answer = site.get(path)
        assert answer.status == 503 and answer.headers["Retry-After"] == "1", (path, answer)
        description.problem(answer)
    assert site.get("/", None).status == 200, "the page is there"
    postgres.start()
    wait_for(lambda: told(stream)[-1] == (True, "up"), 60, "viewers are told, on the connection that they have")
    wait_for(lambda: len(begun(stream)) > fetched, what="they are told to fetch again")
    assert begun(stream)[-1]["campaign_id"] is None
    assert site.json("/campaigns/alpha-campaign/funnel") == before and ready(site) == 200
    assert "rcpt_" not in site.process.log()
    stream.close()


def test_a_redrive_whose_database_dies_loses_and_doubles_nothing(site, postgres):
    operator(site)
    bury(site, 20_000, payload='{"message_id":"m%s","status":"SENT"}')
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(redrive, site, {"reason": "unknown_message"})
        wait_for(lambda: letters(site)[1] >= 1, 60, "some are moved")
        stop(site, postgres)
        refused = answer.result()
    assert refused.status == 503 and "nothing is lost" in refused.json["detail"], refused
    postgres.start()
    left, parked, distinct = letters(site)
    assert left + parked == 20_000 and parked == distinct and left > 0
    said = int(refused.json["detail"].split(" letters were moved")[0].rpartition(" ")[2])
    assert said <= parked <= said + 500, "what it said is durable; of the last page it could not know"
    wait_for(lambda: site.get("/me").status == 200, 60, "serve has come back by itself")
    moved = 0
    while (answer := redrive(site, {"reason": "unknown_message"})).json["next"] is not None:
        moved += answer.json["redriven"]
    assert moved + answer.json["redriven"] == left and letters(site) == (0, 20_000, 20_000)
