"""page: the page of `receiptd serve` in a real Chromium: first paint, and frames while 10 000 campaigns are scrolled."""

import urllib.request

from lab import say
from meter import percentile, summary
from support.browser import Browser
from support.ports import free_ports
from support.wait import wait_for

CAMPAIGNS = 10_000
VISITS = 5  # of each page, for each run
SECONDS = 5  # of scrolling
PAGES = {"the list of campaigns": ("/", "#list .row"), "a campaign": ("/campaign/campaign-00042", "#part-failures"), "support": ("/support", "form"),
         "operate": ("/operate", "#part-partitions")}
# When the page's own content stands, on the clock of its navigation.
OBSERVER = """new MutationObserver((_, one) => { if (document.querySelector(%r)) { window.drawn = performance.now(); one.disconnect(); } })
    .observe(document, { childList: true, subtree: true })"""
PAINT = "return [performance.getEntriesByName('first-contentful-paint')[0]?.startTime, window.drawn]"
# From the top down at 6 000 pixels a second, as a finger does that looks for something.
SCROLL = """const [seconds, done] = arguments, frames = []; let begun = 0, last = 0;
scrollTo(0, 0);
requestAnimationFrame(function frame(now) {
    if (last) frames.push(now - last); else begun = now;
    last = now;
    if (now - begun > 1000 * seconds) return done(frames);
    scrollTo(0, (now - begun) * 6);
    requestAnimationFrame(frame);
});"""


def part_page(lab, options):
    database = lab.services.create_database("b_page")
    port = free_ports(1)[0]
    receiptd = lab.receiptd(database, "none", serve={"listen": f"127.0.0.1:{port}", "open": True}, counters={"series": "90d"})
    try:
        receiptd.migrate()
        database.execute("INSERT INTO receiptd.message_inbox (message_id, org_id, campaign_id)"
                         " SELECT 'm-' || n, 'acme', 'campaign-' || lpad((n %% %s)::text, 5, '0') FROM generate_series(1, 3 * %s) n", CAMPAIGNS, CAMPAIGNS)
        database.execute("INSERT INTO receiptd.consumer_progress (topic, partition, lane, next_offset, generation) VALUES ('none', 0, 0, 1, 1)")
        daemon = receiptd.start()
        daemon.wait_for(lambda: database.value("SELECT count(*) FROM receiptd.counter_delta") == 0, 60, "counters are rolled up")
        daemon.stop()
        receiptd.start("serve", command="serve")
        url = f"http://127.0.0.1:{port}"
        wait_for(lambda: answers(url), 30, f"{url} answers")
        browser = Browser()
        try:
            return {"campaigns": CAMPAIGNS, "visits": VISITS * options.repeat, "seconds": SECONDS,
                    "paint": {name: paint(browser, url, *page, VISITS * options.repeat) for name, page in PAGES.items()},
                    "scroll": scroll(browser, url, options.repeat)}
        finally:
            browser.close()
    finally:
        receiptd.close()
        database.drop()


def answers(url):
    try:
        with urllib.request.urlopen(f"{url}/api/v1/campaigns?limit=1", timeout=5) as answer:
            return answer.status == 200
    except OSError:
        return False


def paint(browser, url, path, mark, visits):
    """Milliseconds from the beginning of the navigation, without anything in the browser's cache."""
    browser.driver.execute_cdp_cmd("Network.enable", {})
    browser.driver.execute_cdp_cmd("Network.setCacheDisabled", {"cacheDisabled": True})
    script = browser.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": OBSERVER % mark})
    seen = []
    for _ in range(visits):
        browser.open("about:blank")
        browser.open(url + path)
        seen.append(wait_for(lambda: all(values := browser.script(PAINT)) and values, 30, f"{path} is painted"))
    browser.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)
    found = {name: {"p50": percentile(values, 0.5), "p95": percentile(values, 0.95), "least": min(values)}
             for name, values in zip(("first_paint_ms", "drawn_ms"), zip(*seen))}
    say(f"  {path}: first paint {found['first_paint_ms']}, drawn {found['drawn_ms']}")
    return found


def durations(browser):
    metrics = browser.driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return {one["name"]: one["value"] for one in metrics}


def scroll(browser, url, repeat):
    browser.driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
    browser.size(1280, 900)
    browser.open(url)

    def all_loaded():
        browser.script("scrollTo(0, document.body.scrollHeight)")
        return browser.script("return document.querySelector('.list')?.getAttribute('aria-rowcount')") == str(CAMPAIGNS + 1)

    browser.wait(all_loaded, "the whole list is loaded", 120)
    browser.driver.set_script_timeout(10 * SECONDS)
    frames, work = [], []
    for _ in range(repeat):
        before = durations(browser)
        these = browser.driver.execute_async_script(SCROLL, SECONDS)
        after = durations(browser)
        frames += these
        work.append(1000 * (after["TaskDuration"] - before["TaskDuration"]) / len(these))
    found = {"frames_per_second": len(frames) / sum(frames) * 1000, "p50_ms": percentile(frames, 0.5), "p95_ms": percentile(frames, 0.95), "p99_ms": percentile(frames, 0.99),
             "rows": browser.count("#list .row"), "work_ms": summary(work)}
    say(f"  scrolling: {found}")
    return found
