"""How people find a campaign or a message, come back, and take figures with them: names, searches, orders, addresses, files."""

import csv
import io
import json
import re

import pytest
from support.look import pulse

CATCH = """window.saved = []; const made = URL.createObjectURL;
URL.createObjectURL = (blob) => { window.blob = blob; return made(blob); };
HTMLAnchorElement.prototype.click = function () { const name = this.download; window.blob.arrayBuffer().then((bytes) =>
    window.saved.push([name, new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes)])); };"""


def open_page(browser, site, path, mark):
    browser.open("about:blank")
    browser.open(site.url + path)
    browser.wait(lambda: browser.count(mark) > 0, f"{path} is drawn")
    browser.wait_for_text("live", ".pulse")


def name_campaigns(site, **names):
    """The platform's view, read at once."""
    rows = ", ".join(f"('{id}', '{name}', DATE '2026-03-01')" for id, name in names.items())
    site.database.execute(f"CREATE SCHEMA marketing; CREATE VIEW marketing.campaigns AS SELECT * FROM (VALUES {rows}) v (id, name, date)")
    site.start(campaigns="marketing.campaigns")


def listed(browser):
    return browser.script("return [...document.querySelectorAll('#list .row')].sort((a, b) => a.dataset.index - b.dataset.index).map((row) => row.querySelector('.c-name a').innerText)")


def saved(browser, button):
    """(name, rows) of the file that a button makes."""
    browser.script(CATCH)
    browser.script("[...document.querySelectorAll('main button')].find((one) => one.innerText === arguments[0]).click()", button)
    browser.wait(lambda: browser.script("return window.saved.length") == 1, "the file is saved")
    name, text = browser.script("return window.saved.pop()")
    assert text.startswith("\ufeff")
    return name, list(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"))))


# ---- addresses

@pytest.mark.parametrize("path, heading", [("/support#%", "What happened"), ("/support#%E0%A4%A", "What happened"), ("/support#%ff", "What happened"), ("/support?x=%#%%", "What happened"),
                                           ("/?link", "Campaigns"), ("/?%=%zz#%", "Campaigns"), ("/operate?%E0#%E0", "Operate"), ("/campaign/%", "%"), ("/campaign/%E0%A4%A", "%E0%A4%A"),
                                           ("/campaign/%C0%AF#%", "%C0%AF"), ("/campaign/a%zzb?%", "a%zzb")])
def test_no_broken_escape_blanks_the_page(furnished, browser, path, heading):
    browser.open("about:blank")
    browser.open(furnished.url + path)
    browser.wait(lambda: heading in browser.text("h1"), "the page is drawn")
    browser.script("location.hash = '#%zz'")  # as somebody who edits the address does it
    browser.wait(lambda: heading in browser.text("h1"), "the page is drawn again")
    assert not [line for line in browser.console() if "URIError" in line or "Uncaught" in line]


def test_half_a_character_is_looked_up_like_any_other_text(furnished, browser):
    open_page(browser, furnished, "/support", "h1")
    browser.script("""const field = document.querySelector('input[type=search]'); field.value = 'a\\ud800'; field.dispatchEvent(new Event('input'));
        document.querySelector('form').requestSubmit();""")
    browser.wait(lambda: browser.count(".result .notice") > 0 and "Looking" not in browser.text(".result"), "an answer")
    assert r"“a\u{d800}”" in browser.text(".result") and "URI" not in browser.text(".result")


# ---- names, search, order

def test_campaigns_are_called_by_their_names(site, browser):
    site.insert("11", 3)
    site.insert("nameless", 1)
    name_campaigns(site, **{"11": "Spring sale"})
    browser.open(site.url)
    browser.wait(lambda: sorted(listed(browser)) == ["Spring sale", "nameless"], "both are listed")
    small = browser.script("return [...document.querySelectorAll('#list .row')].find((row) => row.innerText.includes('Spring')).querySelector('small').innerText")
    assert re.fullmatch(r"11 · .*2026.* · acme", small), small
    browser.type("input[type=search]", "spring")
    browser.wait(lambda: listed(browser) == ["Spring sale"], "found by its name")
    browser.click("#list a")
    browser.wait_for_text("Spring sale", "h1")
    assert "/ 11 /" in browser.text(".trail") and browser.script("return document.title") == "Spring sale · receiptd"
    name, rows = saved(browser, "Funnel as CSV")
    assert name == "Spring-sale-11-funnel.csv"
    assert {(row["campaign_id"], row["campaign_name"]) for row in rows} == {("11", "Spring sale")}
    assert {row["status"]: row["messages"] for row in rows}["TARGETED"] == "3"


def test_each_column_orders_the_list_both_ways_also_by_keyboard(site, browser):
    from selenium.webdriver.common.keys import Keys
    for campaign, count in (("b", 3), ("a", 2), ("c", 1)):
        site.insert(campaign, count)
    site.start()
    open_page(browser, site, "/", "#list .row")
    ways = "return [...document.querySelectorAll('[role=columnheader]')].map((head) => [head.innerText.trim(), head.getAttribute('aria-sort')])"
    assert dict(browser.script(ways)) | {"Funnel": "", "Changed": ""} == {name: "none" for name in ("Campaign", "Targeted", "Sent", "Delivered", "Opened", "Clicked", "Failed")} | {
        "Funnel": "", "Changed": ""} and dict(browser.script(ways))["Changed"] == "descending" and dict(browser.script(ways))["Funnel"] is None
    for head, first, order in (("Targeted", "descending", ["b", "a", "c"]), ("Campaign", "ascending", ["a", "b", "c"])):
        browser.script("[...document.querySelectorAll('button.sort')].find((one) => one.innerText === arguments[0]).focus()", head)
        for way, expected in ((first, order), ({"ascending": "descending", "descending": "ascending"}[first], order[::-1]), (first, order)):
            browser.keys(Keys.ENTER if way == first else Keys.SPACE)
            browser.wait(lambda: listed(browser) == expected and dict(browser.script(ways))[head] == way, f"{head} {way}")
            assert browser.focused() == ["button", head], "the focus stays"
        assert [way for _, way in browser.script(ways) if way not in (None, "none")] == [first], "one column orders"
    assert not browser.complaints()


def test_on_a_phone_a_selector_orders_the_list(site, browser):
    for campaign, count in (("b", 3), ("a", 2), ("c", 1)):
        site.insert(campaign, count)
    site.start()
    browser.size(390, 900)
    open_page(browser, site, "/", "#list .row")
    browser.script("const one = document.querySelector('.order select'); one.value = 'targeted'; one.dispatchEvent(new Event('change'));")
    browser.wait(lambda: listed(browser) == ["b", "a", "c"], "most targeted first")


def test_what_fits_best_stands_first(site, browser):
    for campaign in ("711", "11", "118"):
        site.insert(campaign, 1)
    site.start()
    open_page(browser, site, "/", "#list .row")
    browser.type("input[type=search]", "11")
    browser.wait(lambda: listed(browser) == ["11", "118", "711"], "itself, then its beginning, then within")


def test_tables_are_ordered_by_their_heads(furnished, browser):
    partitions = [{"topic": "t", "partition": n, "position": position, "lag": lag, "newest_at": None} for n, position, lag in ((2, 5, None), (10, 900, 7), (1, 70, 8))]
    with browser.answering(("/status$", 200, {"partitions": partitions}, True)):
        open_page(browser, furnished, "/operate", "#part-partitions")
        card = "[aria-labelledby=part-partitions]"
        column = lambda n: browser.script("return [...document.querySelectorAll(arguments[0])].map((one) => one.innerText)", f"{card} td:nth-child({n})")  # noqa: E731
        way = lambda n: browser.script("return document.querySelector(arguments[0]).getAttribute('aria-sort')", f"{card} th:nth-child({n})")  # noqa: E731
        assert column(3) == ["5", "900", "70"] and way(3) == "none"
        for expected, said in ((["900", "70", "5"], "descending"), (["5", "70", "900"], "ascending")):
            browser.click(f"{card} th:nth-child(3) button")
            browser.wait(lambda: column(3) == expected, said)
            assert way(3) == said
        for expected in (["8", "7", "–"], ["7", "8", "–"]):
            browser.click(f"{card} th:nth-child(4) button")
            browser.wait(lambda: column(4) == expected, "what is not known comes last")
        assert way(3) == "none"


# ---- coming back

def test_back_from_a_message_keeps_the_search(furnished, browser):
    found = {"messages": [{"message_id": id, "campaign_id": "c", "status": "SENT", "status_at": "2026-01-02T03:04:05Z", "found_by": "customer"} for id in ("c-1", "c-2")]}
    with browser.answering(("customer=", 200, found, False)):
        open_page(browser, furnished, "/support", "h1")
        browser.type("input[type=search]", "Erika Mustermann\n")
        browser.wait_for_text("c-2", "[aria-labelledby=part-messages]")
        browser.script("document.querySelectorAll('[aria-labelledby=part-messages] td a')[1].click()")
        browser.wait_for_text("Targeted", ".steps")
        browser.click(".facts a")
        browser.wait_for_text("c", "h1")
        browser.script("history.back()")
        browser.wait_for_text("Targeted", ".steps")
        assert browser.script("return location.hash") == "#c-2"
        browser.script("history.back()")
        browser.wait_for_text("c-1", "[aria-labelledby=part-messages]")
        assert browser.script("return document.querySelector('input[type=search]').value") == "Erika Mustermann"
        assert "Erika" not in browser.script("return location.href + JSON.stringify(history.state) + JSON.stringify(sessionStorage)"), "who it was stays out of the address"
        browser.script("history.forward()")
        browser.wait_for_text("Targeted", ".steps")


def test_back_from_one_search_leads_to_the_one_before(furnished, browser):
    open_page(browser, furnished, "/support", "h1")
    for text in ("c-1", "c-2", "nobody"):
        browser.type("input[type=search]", text + "\n")
        browser.wait_for_text(text, ".result")
    for text in ("c-2", "c-1"):
        browser.script("history.back()")
        browser.wait_for_text(text, ".result .facts")
        assert browser.script("return document.querySelector('input[type=search]').value") == text


def test_back_from_a_campaign_keeps_search_order_and_place(site, browser):
    site.database.add_messages((f"m-{number}", "acme", f"campaign-{number:03d}") for number in range(250))
    site.start()
    open_page(browser, site, "/", "#list .row")
    browser.type("input[type=search]", "campaign-")
    browser.script("[...document.querySelectorAll('button.sort')].find((one) => one.innerText === 'Campaign').click()")
    browser.wait(lambda: listed(browser)[:2] == ["campaign-000", "campaign-001"], "in order")

    def far_down():
        browser.script("scrollTo(0, 8000)")
        return browser.script("return scrollY") >= 7000 and "campaign-150" in listed(browser)

    browser.wait(far_down, "the second page is loaded")
    place = browser.script("return scrollY")
    browser.script("[...document.querySelectorAll('#list a')].find((one) => one.innerText === 'campaign-150').click()")
    browser.wait_for_text("campaign-150", "h1")
    browser.script("history.back()")
    browser.wait(lambda: "campaign-150" in listed(browser), "the same rows are in sight")
    assert browser.script("return scrollY") == place
    assert browser.script("return document.querySelector('input[type=search]').value") == "campaign-"
    assert browser.script("return document.querySelector('.c-name[role=columnheader]').getAttribute('aria-sort')") == "ascending"


# ---- times

def test_the_step_that_is_not_over_is_no_fall(furnished, browser):
    points = [{"at": f"2026-01-02T{hour:02}:00:00Z", "statuses": {"DELIVERED": messages}, "events": {}} for hour, messages in ((8, 100), (9, 90), (10, 3))]
    shape = "return [...document.querySelectorAll('.plot g.tone-delivered')].map((one) => [one.querySelector('.line').getAttribute('d').split('L').length, one.querySelectorAll('.open').length])"
    for behind, as_of, expected, reading in ((None, "2026-01-02T10:20:00Z", [[2, 1]], "so far: Delivered 3"), (0, "2026-01-02T10:20:00Z", [[3, 0]], ": Delivered 3"),
                                             (None, "2026-01-02T09:30:00Z", [[1, 2]], "so far: Delivered 3")):
        with browser.answering(("/timeline", 200, {"campaign_id": "c", "step": "hour", "points": points}, False),
                               ("/campaigns/c$", 200, {"as_of": as_of, "behind_s": behind}, True)):
            open_page(browser, furnished, "/campaign/c", ".plot .line")
            browser.wait(lambda: browser.script(shape) == expected, f"as of {as_of}, {behind} behind")
            assert reading in browser.text(".reading") and ("so far" in browser.text(".reading")) == ("so far" in reading)
            assert ("not over yet" in browser.text(".legend")) == ("so far" in reading)
            assert reading in browser.script("return document.querySelector('.plot').getAttribute('aria-valuetext')")
    name, rows = saved(browser, "Timeline as CSV")
    assert name == "c-timeline.csv"
    assert [(row["campaign_id"], row["step"], row["at"], row["DELIVERED"], row["FAILED"]) for row in rows] == [
        ("c", "hour", f"2026-01-02T{hour}:00:00.000Z", messages, "0") for hour, messages in (("08", "100"), ("09", "90"), ("10", "3"))]


@pytest.mark.parametrize("zone, told", [("Asia/Tokyo", "Asia/Tokyo (UTC+9)"), ("Asia/Kathmandu", "(UTC+5:45)"), ("America/Phoenix", "America/Phoenix (UTC−7)"), ("UTC", "Times are in UTC.")])
def test_the_zone_of_times_is_named(furnished, browser, zone, told):
    browser.driver.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": zone})
    try:
        for path, mark in (("/", "#list .row"), ("/campaign/c", "#part-failures"), ("/support#c-0", ".receipts"), ("/operate", "#part-partitions")):
            open_page(browser, furnished, path, mark)
            assert told in browser.text(".zone"), path
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": ""})


def test_a_day_is_the_same_day_everywhere(site, browser):
    site.insert("11", 1)
    name_campaigns(site, **{"11": "Spring sale"})
    for zone in ("Pacific/Kiritimati", "Pacific/Pago_Pago"):
        browser.driver.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": zone})
        try:
            browser.open("about:blank")
            browser.open(site.url)
            browser.wait_for_text("Spring sale", "#list")
            assert re.search(r"Mar 1, 2026|1 Mar 2026", browser.text("#list")), browser.text("#list")
        finally:
            browser.driver.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": ""})


# ---- honesty

STREAMS = """const real = window.fetch; window.pulses = []; window.streams = 0;
const how = %s;
setInterval(() => { const text = document.querySelector('.pulse')?.innerText; if (text && window.pulses.at(-1) !== text) window.pulses.push(text); }, 10);
window.fetch = async (url, options) => {
    if (!/[/]stream/.test(url)) return real(url, options);
    window.streams++;
    if (how.status) return new Response(JSON.stringify({ title: 'Not now', detail: how.detail }), { status: how.status, headers: { 'Content-Type': 'application/problem+json' } });
    const { body, status, headers } = await real(url, options), reader = body.getReader();
    return new Response(new ReadableStream({ async pull(to) {
        const { done, value } = await Promise.race([reader.read(), new Promise((resolve) => setTimeout(() => resolve({ done: true }), 300))]);
        done ? to.close() : to.enqueue(value);
    } }), { status, headers });
};"""


@pytest.mark.parametrize("how", [{}, {"status": 503, "detail": "as many streams as may be are open"}, {"status": 429, "detail": "too many requests"}, {"status": 500, "detail": ""}])
def test_a_stream_that_ends_or_has_no_room_is_no_lost_connection(furnished, browser, how):
    script = browser.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": STREAMS % json.dumps(how)})
    try:
        browser.open("about:blank")
        browser.open(f"{furnished.url}/campaign/c")
        browser.wait(lambda: browser.script("return window.streams") >= 3, "it has come back twice")
        pulses = browser.script("return window.pulses")
        assert not [text for text in pulses if "lost" in text], pulses
        assert how.get("detail", "live") in " ".join(pulses) and browser.count("#part-funnel") == 1
    finally:
        browser.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)
    furnished.process.kill()
    browser.open("about:blank")


def test_words_are_those_that_people_know(site, browser):
    site.insert("c", 1)
    site.start(open=False)
    token = site.receiptd.command("serve", "token", "add", "--name", "reader", "--scope", "read,support").stdout.split()[-1]
    browser.open(site.url)
    browser.type("input[type=password]", token)
    browser.click("button[type=submit]")
    browser.wait(lambda: browser.count("#list .row") == 1, "the list")
    browser.wait_for_text("live", ".pulse")
    assert pulse(browser) == "live" and "Refresh" in browser.text(".tools")
    assert browser.text(".theme").startswith("Theme"), "the selector says what it selects"
    browser.script("document.querySelector('nav a[href=\"/support\"]').click()")
    browser.wait_for_text("Message id or customer")
    assert "phone" not in browser.text().lower(), "nothing is promised that cannot be done"
    browser.script("[...document.querySelectorAll('header button')].find((one) => one.innerText === 'Sign out').click()")
    browser.wait_for_text("The server asks for a token", "main")
