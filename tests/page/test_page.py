"""The page for people, in a real Chromium, against a real `receiptd serve`: numbers, life, strange ids, access, accessibility."""

import re
import threading
import time
import urllib.parse

import pytest

from support.look import PAGES, pulse, shown
from support.services import ROOT

PAGE = ROOT / "src/serve/page"
STAGES = ["TARGETED", "IN_GTW", "SENT", "DELIVERED", "OPENED", "CLICKED"]
HOSTILE = ['<img src=x onerror="window.hacked=1">', '"><script>window.hacked=1</script>', "javascript:window.hacked=1", "a/b?c#d%2F&e=+",
           "';window.hacked=1;//", "\u202elive\u202c", "..", "{{7*7}}${7*7}", "x" * 255, "ünïcödé 🎈", " ", "toString", "__proto__"]


@pytest.fixture
def own(request):
    """For tests that stop PostgreSQL: a pair of servers that no other test uses."""
    return request.getfixturevalue("own_services")


def is_exact(browser, site, campaign):
    expected = site.funnel(campaign)
    return shown(browser) == {name: expected[name] for name in STAGES}


# ---- files

def test_files_are_small_and_hold_nothing_from_elsewhere():
    files = sorted(PAGE.iterdir())
    assert sum(file.stat().st_size for file in files) < 120_000
    for file in files:
        text = file.read_text()
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text), file
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text), file
    document = (PAGE / "index.html").read_text()
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", document), "the security policy forbids what stands inline"
    named = set(re.findall(r"/assets/([\w.]+)", document))
    assert named == {file.name for file in files} - {"index.html"}, "each file is named by the document, so none is fetched late"


# ---- numbers

def test_the_funnel_fills_and_ends_on_what_sql_says(site, browser):
    ids = site.insert("spring-sale", 2000)
    site.start()
    daemon = site.receiptd.start()
    browser.open(f"{site.url}/campaign/spring-sale")
    browser.wait_for_text("2,000", "#part-funnel ~ .bars")
    seen = set()

    def send():
        for start in range(0, 2000, 250):
            some = ids[start:start + 250]
            for status, share in (("SENT", 1), ("DELIVERED", 0.96), ("OPENED", 0.5), ("CLICKED", 0.1)):
                site.topic.send([{"message_id": id, "status": status} for id in some[:int(250 * share)]])
            site.topic.send([{"message_id": id, "status": "FAILED"} for id in some[240:]])
            time.sleep(0.4)  # the pace of the stream; nothing is awaited by it

    feeder = threading.Thread(target=send)
    feeder.start()
    while feeder.is_alive():
        seen.add(shown(browser)["DELIVERED"])
        time.sleep(0.1)
    feeder.join()
    site.world.wait_until_consumed(daemon)
    browser.wait(lambda: is_exact(browser, site, "spring-sale"), "the page shows what SQL says")
    assert shown(browser) == {"TARGETED": 2000, "IN_GTW": 2000, "SENT": 2000, "DELIVERED": 1920, "OPENED": 1000, "CLICKED": 200}
    assert len(seen) >= 3, f"the numbers moved while receipts came: {sorted(seen)}"
    assert "96.0% of sent" in browser.text("#part-funnel ~ .bars"), "a share names its denominator"
    assert "80 messages failed, 4.0% of targeted" in browser.text("[aria-labelledby=part-failures]")
    assert pulse(browser) == "live"


def test_no_figure_moves_the_page(site, browser):
    ids = site.insert("c", 300)
    site.start()
    site.receiptd.start()
    browser.open(f"{site.url}/campaign/c")
    browser.wait_for_text("300", "#part-funnel ~ .bars")
    places = "return [...document.querySelectorAll('#part-funnel ~ .bars li > *, .intro > *')].map((e) => JSON.stringify(e.getBoundingClientRect()))"
    before = browser.script(places)
    site.topic.send([{"message_id": id, "status": "OPENED"} for id in ids[:299]])
    browser.wait(lambda: shown(browser).get("OPENED") == 299, "299 opened")
    assert browser.script(places) == before


def test_ten_thousand_campaigns_are_a_list(site, browser):
    site.database.add_messages((f"m-{number}", "acme", f"campaign-{number:05d}") for number in range(10_000))
    site.start()
    daemon = site.receiptd.start()
    daemon.wait_for(lambda: site.database.value("SELECT count(*) FROM receiptd.counter_delta") == 0, 30, "counters are rolled up")
    browser.open(site.url)
    browser.wait_for_text("campaign-0", "#list")

    def at_the_end():
        browser.script("scrollTo(0, document.body.scrollHeight)")
        return browser.script("return document.querySelector('.list').getAttribute('aria-rowcount')") == "10001"

    browser.wait(at_the_end, "all pages of the list are loaded", 40)
    rows = browser.script("return [...document.querySelectorAll('#list .row')].map((row) => Number(row.dataset.index))")
    assert len(rows) < 60, "only rows in sight are drawn"
    assert rows[-1] == 9999
    browser.type("input[type=search]", "09999")
    browser.wait(lambda: browser.count("#list .row") == 1, "one campaign is found")
    assert "campaign-09999" in browser.text("#list")


# ---- life

def test_it_survives_a_restart_of_serve(site, browser):
    ids = site.insert("c", 10)
    site.start()
    daemon = site.receiptd.start()
    browser.open(f"{site.url}/campaign/c")
    browser.wait_for_text("live", ".pulse")
    browser.wait(lambda: is_exact(browser, site, "c"), "the first numbers are drawn")
    site.process.kill()
    browser.wait_for_text("connection lost", ".pulse")
    assert shown(browser)["TARGETED"] == 10, "the last numbers stay"
    site.topic.send([{"message_id": id, "status": "DELIVERED"} for id in ids])
    site.world.wait_until_consumed(daemon)
    site.start()
    browser.wait_for_text("live", ".pulse", 40)
    browser.wait(lambda: is_exact(browser, site, "c"), "the page has caught up")


@pytest.mark.slow
def test_it_survives_a_restart_of_the_database(own, create_receiptd, browser):
    from conftest import Site
    database, topic = own.create_database(), own.create_topic()
    receiptd = create_receiptd(database, topic, brokers=own.brokers)
    receiptd.migrate()
    site = Site(receiptd, database, topic)
    ids = site.insert("c", 10)
    site.start()
    daemon = receiptd.start()
    browser.open(f"{site.url}/campaign/c")
    browser.wait_for_text("live", ".pulse")
    database.close()
    own.postgres("immediate")
    browser.wait_for_text("the database does not answer", ".pulse", 40)
    own.postgres("start")
    site.topic.send([{"message_id": id, "status": "DELIVERED"} for id in ids])
    browser.wait_for_text("live", ".pulse", 40)
    site.world.wait_until_consumed(daemon)
    browser.wait(lambda: is_exact(browser, site, "c"), "the page has caught up")


# ---- strange ids

def test_hostile_ids_stay_text(site, browser):
    for index, id in enumerate(HOSTILE):
        site.database.add_messages([(f"h-{index}", f"<b>{index}</b>", id)])
    site.database.add_messages([(HOSTILE[0], HOSTILE[1], "c")])
    site.start(page=True)
    browser.open(site.url)
    browser.wait(lambda: browser.count("#list .row") == len(HOSTILE) + 1, "all campaigns are listed")
    assert '<img src=x onerror="window.hacked=1">' in browser.text("#list")
    assert r"\u{202e}live" in browser.text("#list"), "what turns the order of letters is shown by its number"
    for id in HOSTILE:
        if id == "..":
            continue  # a browser takes it for a directory: such a campaign has no address, and its name is no link
        browser.open(f"{site.url}/campaign/{urllib.parse.quote(id, safe='')}")
        browser.wait(lambda: shown(browser).get("TARGETED") == 1, f"the funnel of {id!r}")
        assert browser.count("main img, main script, main b") == 0
    browser.open(f"{site.url}/support#{urllib.parse.quote(HOSTILE[0], safe='')}")
    browser.wait_for_text("Targeted", ".steps")
    assert browser.script("return window.hacked") is None
    assert browser.count("main img, main script, main b") == 0


# ---- support and operation

def test_support_says_what_happened_to_a_message(site, browser):
    site.receiptd.configure(timeline={"retention": "1d"})
    site.insert("c", 2)
    site.start()
    daemon = site.receiptd.start()
    for status in ("SENT", "DELIVERED", "DELIVERED", "SENT"):
        site.topic.send({"message_id": "c-0", "status": status}, partition=0)
        site.world.wait_until_consumed(daemon)
    browser.open(f"{site.url}/support")
    browser.type("input[type=search]", "c-0")
    browser.click("button[type=submit]")
    browser.wait_for_text("Delivered", ".steps")
    assert browser.text(".steps").split() == ["Targeted", "With", "the", "gateway", "Sent", "Delivered"]
    assert "Duplicate, no change." in browser.text(".receipts")
    assert "Late, no change: the message had passed this stage." in browser.text(".receipts")
    browser.type("input[type=search]", "nobody")
    browser.click("button[type=submit]")
    browser.wait_for_text("“nobody”", ".result")


def test_the_operators_page_shows_positions_and_dead_letters(site, browser):
    site.insert("c", 1)
    site.start()
    daemon = site.receiptd.start()
    site.topic.send({"message_id": "c-0", "status": "opend"})
    site.world.wait_until_consumed(daemon)
    browser.open(f"{site.url}/operate")
    browser.wait_for_text("unknown_status", "[aria-labelledby=part-dead-letters]")
    assert str(site.topic) in browser.text("[aria-labelledby=part-partitions]")
    browser.wait(lambda: site.database.value("SELECT count(*) FROM receiptd.instance_status") == 1, "the daemon has said something")
    name = site.database.value("SELECT name FROM receiptd.instance_status")
    browser.wait_for_text(f"Daemon {name}")
    card = f"[aria-labelledby^=part-daemon-][aria-labelledby$='-{daemon.pid}']"
    browser.wait_for_text("As it said", card)
    text = browser.text(card).lower()
    for part in ("lanes", "connections", "since its start", "batches", "parked", "last errors"):
        assert part in text, part
    assert browser.count("#part-partitions") == 1, "ids are unique"


def test_an_operator_tries_dead_letters_again_after_being_asked(site, browser):
    site.insert("c", 2)
    site.start(open=False, operate_dsn=site.database.dsn)
    token = site.receiptd.command("serve", "token", "add", "--name", "operator", "--scope", "read,operate").stdout.split()[-1]
    for number, status in enumerate(("SENT", "NO_SUCH", "SENT")):
        site.database.execute('INSERT INTO receiptd.dead_letter (topic, partition, "offset", index, lane, reason, payload) VALUES (%s, 0, %s, 0, 0, %s,'
                              " convert_to(%s, 'UTF8'))", "t", number, "unknown_message" if number < 2 else "aged_out", f'{{"message_id":"c-{number}","status":"{status}"}}')
    card = "[aria-labelledby=part-dead-letters]"
    left = "SELECT array_agg(\"offset\" ORDER BY 1) FROM receiptd.dead_letter"
    browser.open(f"{site.url}/operate")
    browser.type("input[type=password]", token)
    browser.click("button[type=submit]")
    browser.wait_for_text("Try 0 chosen again", card)
    browser.click(f"{card} [aria-label='Choose dead letter t/0/2/0']")
    browser.wait_for_text("Try 1 chosen again", card)
    browser.click(f"{card} .tools button")
    browser.wait_for_text("Sure? Try 1 chosen again", card)
    assert site.database.value(left) == [0, 1, 2], "asked first"
    browser.click(f"{card} .tools button")
    browser.wait_for_text("1 dead letters were moved to the parked receipts; they are tried again now. 0 stay.", card)
    assert site.database.value(left) == [0, 1]
    browser.type(f"{card} .tools input", "unknown_message\n")
    browser.wait_for_text("Try all with reason unknown_message again", card)
    for _ in range(2):
        browser.click(f"{card} .tools button:last-child")
    browser.wait_for_text("1 stay.", card)
    assert site.database.value(left) == [1] and site.database.value("SELECT count(*) FROM receiptd.parked_event") == 2
    browser.click(f"{card} summary")
    browser.wait_for_text("NO_SUCH", card)
    assert not browser.complaints()


# ---- access

def test_a_token_is_asked_for_and_kept_in_the_tab(site, browser):
    site.insert("c", 5)
    site.start(open=False)
    token = site.receiptd.command("serve", "token", "add", "--name", "reader", "--scope", "read").stdout.split()[-1]
    browser.open(f"{site.url}/campaign/c")
    browser.wait_for_text("The server asks for a token", "main")
    browser.type("input[type=password]", "not this one, surely")
    browser.click("button[type=submit]")
    browser.wait_for_text("does not accept this token", "main")
    browser.type("input[type=password]", token)
    browser.click("button[type=submit]")
    browser.wait(lambda: shown(browser).get("TARGETED") == 5, "the funnel")
    browser.wait_for_text("live", ".pulse")
    assert browser.text("nav").split() == ["Campaigns"], "no links to pages that this token may not see"
    assert token not in browser.script("return JSON.stringify(localStorage) + document.cookie + location.href")


def test_a_link_shows_its_campaign_and_no_other(site, browser):
    site.insert("c", 5)
    site.insert("other", 5)
    site.start(open=False, link_secret="of thirty-two bytes, or of a few more")
    link = site.receiptd.command("serve", "link", "c").stdout.split()[-1].split("link=")[-1]
    browser.open(f"{site.url}/?link={link}")
    browser.wait(lambda: shown(browser).get("TARGETED") == 5, "the funnel")
    browser.wait_for_text("live", ".pulse")
    assert browser.text("nav") == ""
    browser.open(f"{site.url}/campaign/other?link={link}")
    browser.wait(lambda: "other" in browser.text("h1") and browser.count(".notice") == 1, "a refusal")
    assert browser.count(".bars") == 0


# ---- manners

@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing(furnished, browser, theme):
    found = []
    for width in (1280, 390):
        browser.size(width, 900)
        for path, mark in PAGES:
            browser.media(prefers_color_scheme=theme)
            browser.open("about:blank")
            browser.open(furnished.url + path)
            browser.wait(lambda: browser.count(mark) > 0, f"{path} is drawn")
            browser.wait_for_text("live", ".pulse")
            assert browser.script("return document.documentElement.scrollWidth <= innerWidth"), f"{path} at {width} scrolls sideways"
            found += [f"{path} at {width}: {complaint}" for complaint in browser.complaints()]
    assert not found, "\n".join(found)


def test_the_keyboard_reaches_everything(furnished, browser):
    from selenium.webdriver.common.keys import Keys
    for path, mark in PAGES:
        browser.open("about:blank")
        browser.open(furnished.url + path)
        browser.wait(lambda: browser.count(mark) > 0, f"{path} is drawn")
        browser.wait_for_text("live", ".pulse")
        wanted = browser.script("""return [...document.querySelectorAll('a[href], button:not(:disabled), input, select, summary, [tabindex="0"]')]
            .filter((one) => one.checkVisibility()).length""")
        met, visible = set(), []
        browser.keys(Keys.TAB)
        assert browser.focused() == ["a", "Skip to the content"]
        for _ in range(3 * wanted):
            place = browser.script("""const at = document.activeElement;
                at.dataset.met ??= String(document.querySelectorAll('[data-met]').length);
                const style = getComputedStyle(at);
                return [at === document.body ? 'body' : at.dataset.met, style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2, at.outerHTML.slice(0, 100)]""")
            if place[0] == "body" or place[0] in met:
                break
            met.add(place[0])
            visible += [] if place[1] else [place[2]]
            browser.keys(Keys.TAB)
        assert not visible, f"{path}: the focus cannot be seen on {visible}"
        assert len(met) >= wanted, f"{path}: Tab met {len(met)} of {wanted}"


def test_the_skip_link_and_the_pages_lead_the_focus(furnished, browser):
    from selenium.webdriver.common.keys import Keys
    browser.open(furnished.url)
    browser.wait(lambda: browser.count("#list .row") == 2, "the list is drawn")
    browser.keys(Keys.TAB, Keys.ENTER)
    assert browser.script("return document.activeElement.id") == "main"
    browser.script("document.querySelector('#list a[href=\"/campaign/c\"]').focus()")
    browser.keys(Keys.ENTER)
    browser.wait_for_text("c", "h1")
    browser.wait(lambda: browser.focused()[0] == "h1", "the new page's heading has the focus")
    browser.script("history.back()")
    browser.wait(lambda: browser.count("#list .row") == 2, "back at the list")


def test_the_theme_is_chosen_and_kept(furnished, browser):
    ground = "return getComputedStyle(document.body).backgroundColor"
    browser.media(prefers_color_scheme="light")
    browser.open(furnished.url)
    light = browser.script(ground)
    browser.script("""const select = document.querySelector('.theme select'); select.value = 'dark'; select.dispatchEvent(new Event('change'));""")
    browser.wait(lambda: browser.script(ground) != light, "the page turns dark")
    browser.open(f"{furnished.url}/operate")
    assert browser.script(ground) != light
    browser.script("localStorage.clear()")


def test_nothing_moves_for_those_who_asked_for_it(furnished, browser):
    browser.media(prefers_reduced_motion="reduce")
    browser.open(f"{furnished.url}/campaign/c")
    browser.wait(lambda: browser.count(".fill") > 0, "bars are drawn")
    assert browser.script("return [...document.querySelectorAll('.fill')].every((bar) => getComputedStyle(bar).transitionDuration === '0s')")


def test_the_policy_is_kept_and_nothing_is_fetched_from_elsewhere(furnished, browser):
    for path, mark in PAGES:
        browser.open("about:blank")
        browser.open(furnished.url + path)
        browser.wait(lambda: browser.count(mark) > 0, f"{path} is drawn")
        hosts = browser.script("return [...new Set(performance.getEntriesByType('resource').map((one) => new URL(one.name).host))]")
        assert hosts == [furnished.url.removeprefix("http://")]
    assert not [line for line in browser.console() if "Content Security Policy" in line or "Uncaught" in line]
