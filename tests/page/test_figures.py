"""What the page makes of answers: those that this server gives, and planned ones that it would give with other settings or in trouble."""

import re

import pytest
from support.look import pulse

GONE = {"title": "Bad Request", "detail": "by is one of reason|variant"}


def by(name, *rows):
    """The answer to ?by=NAME: rows of (key, {status: messages})."""
    return (f"by={name}", 200, {"by": [{"key": key, "statuses": [{"code": 0, "name": status, "messages": messages, "events": messages}
                                                                 for status, messages in counts.items()]} for key, counts in rows]}, True)


def open_campaign(browser, site):
    browser.open("about:blank")
    browser.open(f"{site.url}/campaign/c")
    browser.wait_for_text("live", ".pulse")
    browser.wait(lambda: browser.count("#part-funnel") == 1, "the campaign is drawn")


def rows(browser, part):
    """{label: (figure, note)} of the bars below a heading."""
    found = browser.script("""return [...document.querySelectorAll(`[aria-labelledby=${arguments[0]}] .bars li`)].map(
        (row) => ['label', 'figure', 'note'].map((name) => row.querySelector(`.bar-${name}`).textContent))""", part)
    return {label: (figure, note) for label, figure, note in found}


# ---- a campaign

def test_each_share_names_its_denominator_on_hover_and_for_screen_readers(furnished, browser):
    open_campaign(browser, furnished)
    bars = browser.script("""return [...document.querySelectorAll('.bars li')].map((row) => [row.innerText, row.title])""")
    assert len(bars) > 20
    for text, title in bars:
        if "%" in text:
            assert re.search(r"% (of|delivered of|failed)", text), text
            assert re.search(r"% of|% delivered of", title) or "took no longer" in title, title
    hidden = browser.script("return [...document.querySelectorAll('.bars [aria-hidden]')].every((one) => one.innerText === '')")
    assert hidden, "only the drawn bar is kept from screen readers, never a figure"


def test_the_time_to_deliver_has_percentiles_and_a_distribution(furnished, browser):
    # 8 messages within 2^(20/2) ms, 1 within 2^12, 1 within 2^20
    planned = by("time_to_deliver", ("1024", {"DELIVERED": 8}), ("4096", {"DELIVERED": 1}), ("1048576", {"DELIVERED": 1}), ("negative", {"DELIVERED": 1}))
    with browser.answering(planned, ("by=time_to_open", 400, GONE, False)):
        open_campaign(browser, furnished)
        browser.wait(lambda: browser.count("#part-time-to-deliver") == 1, "the distribution is drawn")
        card = browser.text("[aria-labelledby=part-time-to-deliver]")
        assert browser.count("#part-time-to-open") == 0, "what the server does not know has no card"
        assert re.sub(r"\s+", " ", browser.text("[aria-labelledby=part-time-to-deliver] .tiles")) == "1 s 50% within 4 s 90% within 17 min 99% within"
        assert "of 10 delivered messages whose times are known" in card
        bars = rows(browser, "part-time-to-deliver")
        assert len(bars) == 11, "an empty class between two others keeps its place"
        assert bars["up to 1 s"] == ("8", "80.0% of delivered")
        assert bars["up to 2 s"] == ("0", "0.0% of delivered")
        assert bars["up to 17 min"] == ("1", "10.0% of delivered")


@pytest.mark.parametrize("buckets", [range(70), [0], [69], [3, 68]])
def test_any_distribution_fits(furnished, browser, buckets):
    with browser.answering(by("time_to_deliver", *((str(round(2 ** (bucket / 2))), {"DELIVERED": 2}) for bucket in buckets))):
        open_campaign(browser, furnished)
        browser.wait(lambda: browser.count("#part-time-to-deliver") == 1, "the distribution is drawn")
        bars = rows(browser, "part-time-to-deliver")
        assert 1 <= len(bars) <= 14
        assert sum(int(figure) for figure, _ in bars.values()) == 2 * len(buckets), "no message is left out"


def test_gateways_show_their_share_and_health_and_failures_their_reasons(furnished, browser):
    planned = (by("gateway", ("small", {"TARGETED": 25, "SENT": 20, "DELIVERED": 10, "FAILED": 5}), ("large", {"TARGETED": 75, "SENT": 75, "DELIVERED": 75})),
               by("reason", ("blocked", {"FAILED": 3}), ("", {"FAILED": 1})))
    with browser.answering(*planned):
        open_campaign(browser, furnished)
        browser.wait(lambda: browser.count("#part-gateways") == 1, "the gateways are drawn")
        assert rows(browser, "part-gateways") == {"large": ("75", "75.0% of messages; 100.0% delivered of sent, 0.0% failed"),
                                                  "small": ("25", "25.0% of messages; 50.0% delivered of sent, 20.0% failed")}
        browser.wait(lambda: browser.count("#part-failures-by-reason") == 1, "the reasons are drawn")
        assert rows(browser, "part-failures-by-reason") == {"Refused": ("3", "75.0% of receipts with a reason"), "no reason given": ("1", "25.0% of receipts with a reason")}


STAGES = (("TARGETED", 0, None), ("SENT", 300, "TARGETED"), ("DELIVERED", 600, "SENT"))


def funnel(messages, customers, logical):
    """Planned statuses of a funnel: figures by stage; None: not kept."""
    return {"statuses": [{"name": name, "code": code, "parent": parent, "messages": messages[index], "events": 0, "current": 0, "terminal": False, "kind": "open",
                          "customers": customers and customers[index], "logical": logical and logical[index]} for index, (name, code, parent) in enumerate(STAGES)]}


def test_variants_are_compared_by_what_people_did(furnished, browser):
    counts = {"TARGETED": 50, "SENT": 50, "DELIVERED": 40}
    planned = by("variant", ("A", counts | {"OPENED": 20, "CLICKED": 4}), ("", counts | {"OPENED": 10}))
    with browser.answering(planned):
        open_campaign(browser, furnished)
        browser.wait(lambda: browser.count("#part-variants") == 1, "the variants are drawn")
        assert rows(browser, "part-variants") == {
            "A": ("50", "50.0% of messages; 80.0% delivered of sent, 50.0% opened of delivered, 10.0% clicked of delivered"),
            "no name": ("50", "50.0% of messages; 80.0% delivered of sent, 25.0% opened of delivered, 0.0% clicked of delivered")}
        assert browser.count("#part-channels") == 0, "what the server does not keep has no card"


def test_customers_and_logical_messages_have_funnels_of_their_own(furnished, browser):
    open_campaign(browser, furnished)
    assert browser.count("#part-customers") == browser.count("#part-logical-messages") == 0, "what the server does not keep has no card"
    with browser.answering(("/campaigns/c$", 200, funnel((1000, 900, 600), (500, 400, 300), (800, 700, 560)), True)):
        open_campaign(browser, furnished)
        assert rows(browser, "part-customers") == {"Targeted": ("500", "all customers"), "Sent": ("400", "80.0% of targeted"), "Delivered": ("300", "75.0% of sent")}
        assert browser.script("return document.querySelector('[aria-labelledby=part-customers] [data-name=SENT]').title") == "Sent: 400 customers, 80.0% of targeted"
        assert rows(browser, "part-logical-messages")["Delivered"] == ("560", "80.0% of sent")
    with browser.answering(("/campaigns/c$", 200, funnel((9, 8, 7), None, (6, 5, 4)), True)):
        open_campaign(browser, furnished)
        assert browser.count("#part-customers") == 0 and browser.count("#part-logical-messages") == 1


def test_machines_are_counted_apart(furnished, browser):
    open_campaign(browser, furnished)
    assert rows(browser, "part-machines-counted-apart")["Opened by a machine"] == ("9", "22.5% of delivered")


def test_what_may_still_change_is_marked_as_provisional(furnished, browser):
    open_campaign(browser, furnished)
    assert "provisional" not in browser.text()
    with browser.answering(("/campaigns/c$", 200, {"pending": {"messages": 1234, "until": "2031-05-06T07:08:09Z"}, "behind_s": 12.4}, True)):
        open_campaign(browser, furnished)
        assert "1,234 messages have no final status yet; receipts may come until" in browser.text(".intro")
        assert "2031" in browser.text(".intro")
        assert "12 s behind" in browser.text(".intro")
        place = "return document.querySelector('#part-funnel').getBoundingClientRect().top"
        top = browser.script(place)
    open_campaign(browser, furnished)
    assert browser.script(place) == top, "the mark has its place before it comes"


# ---- honesty

def test_a_lost_connection_says_of_when_the_figures_are(furnished, browser):
    open_campaign(browser, furnished)
    furnished.process.kill()
    browser.wait_for_text("connection lost", ".pulse")
    assert re.fullmatch(r"connection lost, last figures of \d\d?:\d\d:\d\d( [AP]M)?", pulse(browser)), pulse(browser)
    assert browser.count("#part-funnel") == 1, "the last figures stay"


# ---- support

MESSAGE = {"message_id": "m", "campaign_id": "c", "org_id": "acme", "status": "DELIVERED", "status_at": "2026-01-02T03:04:05Z", "updated_at": "2026-01-02T03:04:06Z",
           "flags": ["MACHINE_OPEN"], "path": ["TARGETED", "IN_GTW", "SENT", "DELIVERED"], "receipts": [], "actions": [
               {"id": 1, "pipeline": "thanks", "stage": "wait", "op": "await", "status": "pending", "perform_at": "2026-01-02T04:00:00Z"}],
           "parked": [{"status": "OPENED", "parked_at": "2026-01-02T03:04:05Z", "topic": "t", "partition": 1, "offset": 7, "index": 0}],
           "dead_letters": [{"reason": "unknown_status", "detail": "status \"LOST\" is not in the ladder", "dead_at": "2026-01-02T03:04:05Z"}]}


def test_support_sees_what_is_parked_dead_or_still_to_be_done(furnished, browser):
    with browser.answering(("/messages/m$", 200, MESSAGE, False)):
        browser.open(f"{furnished.url}/support#m")
        browser.wait_for_text("Delivered", ".steps")
        assert "Opened" in browser.text("[aria-labelledby=part-parked-receipts]")
        assert 'Unknown status: status "LOST" is not in the ladder' in browser.text("[aria-labelledby=part-dead-letters]")
        assert "thanks" in browser.text("[aria-labelledby=part-actions]")
        browser.click(".facts a")
        browser.wait_for_text("c", "h1")


def test_a_customer_leads_to_messages_and_leaves_no_trace_in_the_address(furnished, browser):
    found = {"messages": [{"message_id": id, "campaign_id": "c", "status": "SENT", "status_at": "2026-01-02T03:04:05Z"} for id in ("c-1", "c-2")]}
    with browser.answering(("customer=", 200, found, False)):
        browser.open(f"{furnished.url}/support")
        browser.type("input[type=search]", "+49 170 0000000")
        browser.click("button[type=submit]")
        browser.wait_for_text("c-2", "[aria-labelledby=part-messages]")
        assert "0000000" not in browser.script("return location.href")
        browser.click("[aria-labelledby=part-messages] td a")
        browser.wait_for_text("Targeted", ".steps")


# ---- operation

STATUS = {"readiness": {"ready": True, "reasons": []}, "hold": "none", "last_commit_at": "2026-01-02T03:04:05Z", "versions": {"receiptd": "9.9"},
          "assignment": {"state": "settled", "partitions": [{"topic": "t", "partition": 3, "position": 10, "lag_records": 4321, "oldest_unapplied_at": None}]},
          "lanes": [{"lane": 5, "connection": 1, "state": "waiting", "records": 2, "in_flight": 1, "batch": 7, "fence_conflicts": 6}],
          "connections": [{"name": "lanes-1", "up": False, "backend_pid": 0}], "parked": 12, "queue_bytes": 2048, "actions": None,
          "since_start": {"events_committed": 1000, "batches": 70, "events_parked": 12, "dead_letters": 3, "fence_conflicts": 6},
          "last_errors": [{"at": "2026-01-02T03:04:05Z", "level": "error", "component": "postgres", "text": "the connection lanes-1 was lost"}]}


def test_the_operator_sees_what_each_daemon_says_of_itself(furnished, browser):
    waits = {**STATUS, "readiness": {"ready": False, "reasons": ["kafka is away"]}}
    instances = [{"name": "one", "at": "2026-01-02T03:04:05Z", "age_s": 2, "status": STATUS}, {"name": "two", "at": "2026-01-02T03:04:05Z", "age_s": 3, "status": waits},
                 {"name": "three", "at": "2026-01-02T03:00:05Z", "age_s": 240, "status": STATUS}]
    with browser.answering(("/status$", 200, {"instances": instances}, True)):
        browser.open("about:blank")
        browser.open(f"{furnished.url}/operate")
        browser.wait_for_text("1 of 3 daemons are ready.", "[aria-labelledby=part-status]")
        one, two, three = (browser.text(f"[aria-labelledby=part-daemon-{name}]") for name in ("one", "two", "three"))
        for text in ("Ready.", "4,321", "waiting", "lanes-1", "the connection lanes-1 was lost", "Batches\n70", "Fence conflicts\n6", "Dead letters\n3", "2 KiB"):
            assert text in one, text
        assert "Not ready: kafka is away." in two
        assert "Not seen for 4 min." in three


def test_the_rate_comes_from_two_answers(furnished, browser):
    planned = """(() => { let n = 0; const real = window.fetch; window.fetch = async (url, options) => {
        const answer = await real(url, options);
        if (!/\\/status$/.test(url)) return answer;
        n++;
        return new Response(JSON.stringify({ ...await answer.json(), instances: [{ name: 'one', at: new Date(n * 2000).toISOString(), age_s: 0,
            status: { readiness: { ready: true }, since_start: { events_committed: 500 * n } } }] }));
    }; })()"""
    script = browser.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": planned})
    try:
        browser.open(f"{furnished.url}/operate")
        browser.wait_for_text("Receipts per second\n250", "[aria-labelledby=part-daemon-one]")
    finally:
        browser.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)


HOUR = {"gateway": "fast", "hour": "2026-01-02T03:00:00Z", "receipts": 10, "duplicates": 0, "disorder": 0, "contradictions_won": 0, "contradictions_lost": 0,
        "unknown": 0, "coverage": None, "delay_p50_ms": None, "delay_p99_ms": None}
GATEWAYS = {"hours": 24, "gateways": [HOUR], "times": [{"gateway": "fast", "messages": 1234, "deliver_p50_ms": 724, "deliver_p99_ms": 65536},
                                                     {"gateway": "odd", "messages": 1, "deliver_p50_ms": None, "deliver_p99_ms": None}]}


def test_the_operator_sees_how_long_each_gateway_takes_to_deliver(furnished, browser):
    with browser.answering(("/gateways", 200, GATEWAYS, False)):
        browser.open("about:blank")
        browser.open(f"{furnished.url}/operate")
        browser.wait(lambda: browser.count("[aria-label='Times to deliver']") == 1, "the times are drawn")
        text = re.sub(r"\s+", " ", browser.text("[aria-label='Times to deliver']"))
        assert "Delivered, half within Delivered, 99% within" in text and "fast 1,234 724 ms 66 s" in text and "odd 1 – –" in text, text


def test_without_their_word_the_operator_sees_who_is_connected(furnished, browser):
    with browser.answering(("/status$", 200, {"instances": []}, True)):
        browser.open(f"{furnished.url}/operate")
        browser.wait_for_text("Daemons connected: 1.", "[aria-labelledby=part-status]")


# ---- axe, of what a server with every part switched on makes of the page

@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_where_everything_is_shown(furnished, browser, theme):
    counted = {"TARGETED": 25, "SENT": 20, "DELIVERED": 10, "FAILED": 5}
    parts = [by("time_to_deliver", ("1024", {"DELIVERED": 8}), ("46341", {"DELIVERED": 1})), by("time_to_open", ("1048576", {"OPENED": 3})),
             by("gateway", ("one", counted), ("two", counted)), by("reason", ("blocked", {"FAILED": 3})),
             by("variant", ("A", counted), ("B", counted)), by("channel", ("sms", counted), ("email", counted))]
    whole = funnel((25, 20, 10), (20, 18, 9), (24, 20, 10)) | {"pending": {"messages": 9, "until": None}, "behind_s": 12}
    instances = [{"name": name, "at": "2026-01-02T03:04:05Z", "age_s": age, "status": STATUS} for name, age in (("one", 2), ("two", 240))]
    views = [("/campaign/c", "#part-time-to-open", [*parts, ("/campaigns/c$", 200, whole, True)]),
             ("/operate", "#part-daemon-two", [("/status$", 200, {"instances": instances, "behind_s": 99}, True), ("/gateways", 200, GATEWAYS, False)]),
             ("/support#m", "#part-parked-receipts", [("/messages/m$", 200, MESSAGE, False)]),
             ("/support#nobody", ".result .notice", []),
             ("/", ".token", [("/me$", 401, {"title": "Unauthorized"}, False)]), ("/operate", ".notice.bad", [("/status$", 503, {"detail": "too many questions"}, False)])]
    found = []
    for path, mark, answers in views:
        browser.media(prefers_color_scheme=theme)
        with browser.answering(*answers):
            browser.open("about:blank")
            browser.open(furnished.url + path)
            browser.wait(lambda: browser.count(mark) > 0, f"{path} is drawn")
            for width in (1280, 360):
                browser.size(width, 900)
                assert browser.script("return document.documentElement.scrollWidth <= innerWidth"), f"{path} at {width} scrolls sideways"
                found += [f"{path} at {width}: {complaint}" for complaint in browser.complaints()]
    assert not found, "\n".join(found)
