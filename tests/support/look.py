"""What a reader of the page sees, for the tests of the page."""

import re

# Each view, and what is there when it is drawn.
PAGES = [("/", "#list .row"), ("/campaign/c", "#part-failures"), ("/support#c-0", ".receipts"), ("/operate", "#part-partitions")]


def shown(browser):
    """{name: messages} of the funnel's bars, as a reader sees them."""
    bars = browser.script("""return [...document.querySelectorAll('#part-funnel ~ .bars li')].map(
        (bar) => [bar.dataset.name, bar.querySelector('.bar-figure').textContent])""")
    return {name: int(re.sub(r"\D", "", figure)) for name, figure in bars}


def pulse(browser):
    return browser.text(".pulse")
