"""How the page behaves for those who print it, see it in their own colours, in their own language, or in motion."""

import re
import threading

import pytest
from support.look import PAGES, shown

COLOURS = """
const rgb = (text) => (text.match(/[\\d.]+/g) ?? []).map(Number);
const seen = [...document.querySelectorAll('main *')].filter((one) => one.checkVisibility() && [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim()));
return seen.filter((one) => { const [r, g, b] = rgb(getComputedStyle(one).color); return Math.max(r, g, b) > 110; }).map((one) => one.outerHTML.slice(0, 120));"""
FIGURES = "return [...document.querySelectorAll('main .bar-figure, main .tiles strong, main .row > span, main td, main dd')].filter((one) => one.checkVisibility()).map((one) => one.innerText)"


def open_page(browser, site, path, mark):
    browser.open("about:blank")
    browser.open(site.url + path)
    browser.wait(lambda: browser.count(mark) > 0, f"{path} is drawn")
    browser.wait_for_text("live", ".pulse")


# ---- paper

@pytest.mark.parametrize("theme", ["light", "dark"])
def test_on_paper_all_figures_are_there_black_on_white_and_nothing_to_click(furnished, browser, theme):
    for path, mark in PAGES:
        browser.media(prefers_color_scheme=theme)
        open_page(browser, furnished, path, mark)
        while True:
            before = browser.script(FIGURES)
            browser.media("print", prefers_color_scheme=theme)
            paper = browser.script(FIGURES)
            browser.media(prefers_color_scheme=theme)
            if browser.script(FIGURES) == before:  # figures that came in between say nothing
                break
        browser.media("print", prefers_color_scheme=theme)
        assert paper == before, f"{path}: no figure is lost"
        for selector in ("nav", ".theme", ".skip", ".tools", "main button", "summary"):
            shown = "return [...document.querySelectorAll(arguments[0])].filter((one) => one.checkVisibility()).length"
            assert browser.script(shown, selector) == 0, f"{path}: {selector}"
        assert browser.script("return getComputedStyle(document.body).backgroundColor") in ("rgb(255, 255, 255)", "rgba(0, 0, 0, 0)"), path
        assert browser.script(COLOURS) == [], f"{path}: text is dark"


def test_the_list_is_printed_whole(site, browser):
    site.database.add_messages((f"m-{number}", "acme", f"campaign-{number:03d}") for number in range(90))
    site.start()
    daemon = site.receiptd.start()
    daemon.wait_for(lambda: site.database.value("SELECT count(*) FROM receiptd.counter_delta") == 0, 30, "counters are rolled up")
    open_page(browser, site, "/", "#list .row")
    browser.wait(lambda: browser.script("return document.querySelector('.list').getAttribute('aria-rowcount')") == "91", "the list is loaded")
    assert browser.count("#list .row") < 60
    pages = browser.printed()
    assert all(f"campaign-{number:03d}" in pages for number in range(90))


# ---- colours of one's own

def test_in_forced_colours_bars_and_states_can_still_be_told(furnished, browser):
    browser.media(forced_colors="active")
    for path, mark in PAGES:
        open_page(browser, furnished, path, mark)
        assert browser.script("return matchMedia('(forced-colors: active)').matches")
        lost = browser.script("""return [...document.querySelectorAll('.fill, .part, .line, .pulse')].filter((one) => {
            const style = getComputedStyle(one), ground = getComputedStyle(one.parentElement);
            if (one.matches('.line')) return style.stroke === 'none' || style.stroke === ground.backgroundColor;
            if (one.matches('.pulse')) return style.color === style.backgroundColor;
            return style.backgroundColor === ground.backgroundColor && style.backgroundImage === 'none';
        }).map((one) => one.outerHTML.slice(0, 120))""")
        assert lost == [], path
        edges = browser.script("return [...document.querySelectorAll('.track, .mini')].every((one) => parseFloat(getComputedStyle(one).borderTopWidth) >= 1)")
        assert edges, f"{path}: an empty bar can be seen"


# ---- languages

@pytest.mark.parametrize("locale, million, share", [("en-GB", "1,234,567", "50.0%"), ("de-DE", "1.234.567", "50,0 %"), ("fr-FR", "1 234 567", "50,0 %"),
                                                    ("ar-EG", "١٬٢٣٤٬٥٦٧", "٥٠٫٠٪"), ("hi-IN", "12,34,567", "50.0%")])
def test_numbers_follow_the_readers_language(furnished, browser, locale, million, share):
    statuses = [{"code": code, "name": name, "parent": parent, "messages": messages, "events": 0, "current": 0, "terminal": False, "kind": "open"}
                for code, name, parent, messages in ((0, "TARGETED", None, 2469134), (300, "SENT", "TARGETED", 1234567))]
    with browser.locale(locale), browser.answering(("/campaigns/c$", 200, {"statuses": statuses, "flags": [], "rates": []}, True)):
        open_page(browser, furnished, "/campaign/c", "#part-failures")
        figure = browser.script("return document.querySelector('[data-name=SENT] .bar-figure').textContent")
        note = browser.script("return document.querySelector('[data-name=SENT] .bar-note').textContent")
        plain = [re.sub(r"\s", " ", re.sub("[\u200e\u200f\u061c]", "", text)) for text in (figure, note)]
        assert plain[0] == million
        assert plain[1] == f"{share} of targeted"
        assert browser.script("return document.documentElement.scrollWidth <= innerWidth")


# ---- motion

def test_the_layout_holds_still_while_numbers_come(site, browser):
    """Layout shift as browsers measure it, without what follows a click; below 0.1 counts as good."""
    ids = site.insert("c", 1200)
    site.start()
    daemon = site.receiptd.start()
    for path, mark, width in (("/", "#list .row", 1280), ("/campaign/c", "#part-failures", 1280), ("/campaign/c", "#part-failures", 390)):
        browser.size(width, 900)
        open_page(browser, site, path, mark)
        browser.script("""window.shifts = []; new PerformanceObserver((list) => list.getEntries().forEach((one) => one.hadRecentInput || window.shifts.push(
            [one.value, one.sources.map((source) => source.node?.outerHTML?.slice(0, 80))]))).observe({ type: 'layout-shift', buffered: true })""")
        some, ids = ids[:400], ids[400:]
        seen = []

        def send():
            for status, share in (("SENT", 1), ("DELIVERED", 0.9), ("FAILED", 0.05), ("BOUNCED_SOFT", 0.03), ("OPENED", 0.5), ("MACHINE_OPEN", 0.2), ("CLICKED", 0.1)):
                site.topic.send([{"message_id": id, "status": status} for id in (some if status[0] not in "FB" else some[::-1])[:int(400 * share)]])
                site.world.wait_until_consumed(daemon)

        feeder = threading.Thread(target=send)
        feeder.start()
        while feeder.is_alive():
            seen.append(browser.text("main"))
            feeder.join(0.2)
        expected = site.funnel("c")
        if path == "/":
            browser.wait(lambda: f"{expected['DELIVERED']:,}" in browser.text("#list"), "the list has caught up")
        else:
            browser.wait(lambda: shown(browser).get("CLICKED") == expected["CLICKED"], "the funnel has caught up")
        assert len({*seen, browser.text("main")}) > 1, "numbers moved"
        shifts = browser.script("return window.shifts")
        assert sum(value for value, _ in shifts) < 0.1, f"{path} at {width}: {shifts}"
