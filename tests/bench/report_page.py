"""Sections of the report about the interface for readers."""

from report_text import number, spread, table


def section_serve(result):
    rows = [(one["question"], one["whose"], number(one["p50_ms"], 1), number(one["p95_ms"], 1), number(one["server_ms"], 1)) for one in result["questions"]]
    return (f"## The interface for readers\n\n`receiptd serve` beside {number(result['campaigns'])} campaigns, asked one question at a time over HTTP on loopback; {number(result['requests'])} times each. "
            "Milliseconds.\n\n" + table(("question", "whose campaigns", "median", "p95", "the server's CPU"), rows))


def section_viewers(result):
    places = {"": "–", "run": "`run`", "serve": "`serve`"}
    rows = [(case["who"], places[case["where"]], spread(case["rate"]), spread(case["rate_share"], 2), spread(case["cpu_more"], 1, 100), spread(case["serve_share"], 1, 100),
             " + ".join(spread(case[part]) for part in ("serve_ms_per_second", "questions_ms_per_second")) if case["serve_share"] else "–",
             spread(case["clients_share"], 1, 100), spread(case["grown_mib"], 1), *(spread(case[part]) if case[part] else "–" for part in ("events_each", "fetched_each", "refused"))) for case in result["cases"]]
    return (f"""## Viewers

{number(result['events'])} receipts of the published mix, of 100 campaigns, while {number(result['viewers'])} clients follow `/stream` (and, as the page does, take the funnel from its events and fetch the other parts of a campaign): answered by `receiptd run` itself, or by a
`receiptd serve` beside it. The clients share the {result['cores']} cores with everything else, so the rate pays for them, too; the columns of CPU do not count them: `core`
is what daemon, PostgreSQL and `serve` use for a receipt more than with nobody; `serve` is the process and its sessions, as a share of what the core uses for these receipts
with nobody. Shares in percent. What viewers cost is the same in each second, so on a machine where the core gets less than all cores its share is larger.

""" + table(("who looks", "who answers", "events/s", "of that with nobody", "core, CPU more", "serve, of the core's CPU",
                      "serve + its sessions, ms a second", "clients, of the machine", "RSS, MiB more", "events sent to each", "answers to each", "of all, refused"), rows))


def section_page(result):
    rows = [(name, *(number(found[when][point], 0) for when in ("first_paint_ms", "drawn_ms") for point in ("least", "p50", "p95"))) for name, found in result["paint"].items()]
    scroll = result["scroll"]
    return (f"""## The page

In a real Chromium without a display, from `receiptd serve` on loopback; nothing in the browser's cache; {number(result['visits'])} visits of each page. Milliseconds from the
beginning of the navigation, least, median and 95th percentile. "Drawn": the figures are in the document.

""" + table(("page", "first paint, least", "median", "p95", "drawn, least", "median", "p95"), rows)
            + f"""
Scrolling {number(result['campaigns'])} campaigns at 6 000 pixels a second for {result['seconds']} s: {number(scroll['frames_per_second'], 1)} frames a second (the browser draws 60 at most);
between two frames {number(scroll['p50_ms'], 1)} ms in the median, {number(scroll['p95_ms'], 1)} ms at the 95th, {number(scroll['p99_ms'], 1)} ms at the 99th percentile. Main thread: {spread(scroll['work_ms'], 1)} ms of CPU
a frame. {number(scroll['rows'])} rows are drawn.
""")
