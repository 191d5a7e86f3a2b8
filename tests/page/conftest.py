"""A browser for all tests of the page, and `receiptd serve` to look at.

browser   one window for the session      site   an installation with a database, `receiptd serve` and the campaigns of a test
furnished the site with a daemon, two campaigns, and receipts of every kind"""

import urllib.error
import urllib.request

import pytest

from support import templates
from support.browser import Browser
from support.ports import free_ports
from support.world import World


@pytest.fixture(scope="session")
def window():
    browser = Browser()
    yield browser
    browser.close()


@pytest.fixture
def browser(window):
    """Without what another test has left: zoom, theme, token, messages of the console."""
    window.driver.switch_to.new_window("tab")
    fresh = window.driver.current_window_handle
    for handle in window.driver.window_handles:
        if handle != fresh:
            window.driver.switch_to.window(handle)
            window.driver.close()
    window.driver.switch_to.window(fresh)
    window.size(1280, 900)  # of this tab
    window.media()
    window.console()
    return window


class Site:
    def __init__(self, receiptd, database, topic):
        self.receiptd, self.database, self.topic = receiptd, database, topic
        self.port = free_ports(1)[0]
        self.url = f"http://127.0.0.1:{self.port}"
        self.world = World(receiptd, database, topic)
        self.process = None

    def start(self, **settings):
        self.receiptd.configure(serve={"listen": f"127.0.0.1:{self.port}", "metrics_listen": "", "open": True, **settings})
        self.process = self.receiptd.start("serve", command="serve")
        self.process.wait_for(self.answers, 30, f"{self.url} answers")

    def answers(self):
        try:
            with urllib.request.urlopen(f"{self.url}/api/v1/openapi.json", timeout=5) as answer:
                return answer.status == 200
        except urllib.error.HTTPError as error:
            return error.code == 401  # a token is asked for
        except (urllib.error.URLError, ConnectionError):
            return False

    def insert(self, campaign, count, org="acme", prefix=None):
        """Messages of a campaign: their ids."""
        ids = [f"{prefix or campaign}-{number}" for number in range(count)]
        self.database.add_messages((id, org, campaign) for id in ids)
        return ids

    def funnel(self, campaign):
        """{name: messages} as SQL has them now."""
        return dict(self.database.query(
            "SELECT p.name, COALESCE(f.messages, 0)::int8 FROM receiptd.message_status_priority p"
            " LEFT JOIN receiptd.campaign_funnel f ON f.status = p.code AND f.campaign_id = %s WHERE p.flag_bit IS NULL", campaign))


@pytest.fixture
def site(receiptd, database, topic):
    templates.migrate(receiptd, database)
    return Site(receiptd, database, topic)


@pytest.fixture
def furnished(site):
    site.receiptd.configure(timeline={"retention": "1d"})
    ids = site.insert("c", 50)
    site.insert("d", 5)
    site.start()
    daemon = site.receiptd.start()
    for status, many in (("SENT", 45), ("DELIVERED", 40), ("OPENED", 20), ("CLICKED", 5), ("MACHINE_OPEN", 9), ("UNSUBSCRIBED", 2)):
        site.topic.send([{"message_id": id, "status": status} for id in ids[:many]], partition=0)
    site.topic.send([{"message_id": id, "status": "FAILED"} for id in ids[-4:]], {"message_id": ids[0], "status": "opend"}, partition=0)
    site.world.wait_until_consumed(daemon)
    return site
