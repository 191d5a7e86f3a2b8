"""The five campaigns: how many messages, what happens to them, and how long each step takes.

Rates and delays follow what gateways and mail services publish: e-mail is delivered in seconds and opened over days,
an SMS is delivered in seconds or after the handset is switched on again, WhatsApp reports that it was read, a push that
it was tapped. Statuses and their order are receiptd's default ladder.
"""

import math
from dataclasses import dataclass

# name: (code = priority, parent)
LADDER = {
    "TARGETED": (0, None), "SKIPPED": (100, "TARGETED"), "SUBMIT_FAILED": (110, "TARGETED"),
    "IN_GTW": (200, "TARGETED"), "SENT": (300, "IN_GTW"), "DEFERRED": (310, "SENT"), "UNKNOWN": (400, "SENT"),
    "EXPIRED": (420, "SENT"), "BOUNCED_SOFT": (430, "SENT"), "FAILED": (440, "SENT"), "BLOCKED": (450, "SENT"),
    "REJECTED": (460, "IN_GTW"), "BOUNCED_HARD": (470, "SENT"), "DELIVERED": (600, "SENT"),
    "BOUNCED_HARD_EMAIL": (650, "SENT"), "OPENED": (700, "DELIVERED"), "CLICKED": (800, "OPENED"),
}
CODES = {name: code for name, (code, _) in LADDER.items()}
NAMES = {code: name for name, code in CODES.items()}
# flag: bit; all but RESUBSCRIBED imply DELIVERED. Shown with code 9001 + bit.
FLAGS = {"COMPLAINED": 0, "UNSUBSCRIBED": 1, "RESUBSCRIBED": 2, "REPLIED": 3, "AUTORESPONDED": 4, "MACHINE_OPEN": 5,
         "BOT_CLICK": 6}
FIRST_FLAG_CODE = 9001
FAILURES = ("SKIPPED", "SUBMIT_FAILED", "UNKNOWN", "EXPIRED", "BOUNCED_SOFT", "FAILED", "BLOCKED", "REJECTED",
            "BOUNCED_HARD", "BOUNCED_HARD_EMAIL")


def path(code):
    """The codes from a status up to the root, both included."""
    name = NAMES[code]
    while name is not None:
        yield CODES[name]
        name = LADDER[name][1]


def meaning(status, channel):
    """(code that is counted, status the message then has at least, flag bits)"""
    if status in FLAGS:
        bit = FLAGS[status]
        return FIRST_FLAG_CODE + bit, 0 if status == "RESUBSCRIBED" else CODES["DELIVERED"], 1 << bit
    if status == "BOUNCED_HARD" and channel == "email":
        status = "BOUNCED_HARD_EMAIL"
    return CODES[status], CODES[status], 0


@dataclass(frozen=True)
class Campaign:
    name: str
    channel: str
    gateway: str
    share: float  # of all messages
    begins_s: float  # on the stream's own clock
    sends_per_s: float
    journeys: tuple  # (weight in per mille, statuses in the order of life)
    delays: dict  # status: (median in seconds, sigma) of a lognormal, over the common ones


DELAYS = {
    "SKIPPED": (0.1, 0.5), "SUBMIT_FAILED": (0.3, 0.5), "IN_GTW": (0.2, 0.5), "SENT": (0.5, 1.0), "DEFERRED": (30, 1.5),
    "REJECTED": (1.0, 0.8), "UNKNOWN": (86400, 0.3), "EXPIRED": (100000, 0.4), "FAILED": (8, 1.2), "BLOCKED": (3, 1.0),
    "BOUNCED_SOFT": (3600, 1.0), "BOUNCED_HARD": (4, 1.2), "DELIVERED": (4, 0.67), "OPENED": (1200, 2.0),
    "CLICKED": (20, 1.0), "COMPLAINED": (600, 1.0), "UNSUBSCRIBED": (60, 1.0), "RESUBSCRIBED": (3600, 1.0),
    "REPLIED": (120, 1.5), "AUTORESPONDED": (5, 1.0), "MACHINE_OPEN": (300, 1.0), "BOT_CLICK": (3, 0.4),
}

CAMPAIGNS = (
    Campaign("spring-sale", "email", "mailer-1", 0.40, 0, 400, (
        (12, "SKIPPED"),
        (3, "SUBMIT_FAILED"),
        (4, "IN_GTW SENT BOUNCED_HARD"),
        (2, "IN_GTW SENT DELIVERED BOUNCED_HARD"),  # accepted first, sent back later
        (6, "IN_GTW SENT DEFERRED BOUNCED_SOFT"),
        (25, "IN_GTW SENT DEFERRED DELIVERED"),
        (552, "IN_GTW SENT DELIVERED"),
        (10, "IN_GTW SENT DELIVERED AUTORESPONDED"),
        (110, "IN_GTW SENT DELIVERED MACHINE_OPEN"),
        (190, "IN_GTW SENT DELIVERED OPENED"),
        (36, "IN_GTW SENT DELIVERED OPENED OPENED"),
        (25, "IN_GTW SENT DELIVERED OPENED CLICKED"),
        (8, "IN_GTW SENT DELIVERED OPENED CLICKED CLICKED"),
        (6, "IN_GTW SENT DELIVERED CLICKED"),  # images are off: the open is never seen
        (7, "IN_GTW SENT DELIVERED BOT_CLICK"),
        (3, "IN_GTW SENT DELIVERED OPENED UNSUBSCRIBED"),
        (1, "IN_GTW SENT DELIVERED OPENED COMPLAINED"),
    ), {"DELIVERED": (3, 1.0), "OPENED": (18000, 2.3)}),
    Campaign("flash-deal", "sms", "smsc-a", 0.25, 60, 300, (
        (8, "IN_GTW REJECTED"),
        (9, "IN_GTW SENT FAILED"),
        (4, "IN_GTW SENT BLOCKED"),
        (14, "IN_GTW SENT EXPIRED"),
        (4, "IN_GTW SENT EXPIRED DELIVERED"),  # the handset came back after all
        (9, "IN_GTW SENT UNKNOWN"),
        (3, "IN_GTW SENT FAILED DELIVERED"),
        (925, "IN_GTW SENT DELIVERED"),
        (14, "IN_GTW SENT DELIVERED REPLIED"),
        (10, "IN_GTW SENT DELIVERED UNSUBSCRIBED"),
    ), {}),
    Campaign("order-updates", "whatsapp", "cloud-1", 0.15, 30, 80, (
        (8, "IN_GTW SENT FAILED"),
        (2, "SUBMIT_FAILED"),
        (3, "SUBMIT_FAILED IN_GTW SENT DELIVERED"),  # submitted again
        (267, "IN_GTW SENT DELIVERED"),
        (550, "IN_GTW SENT DELIVERED OPENED"),
        (80, "IN_GTW SENT OPENED"),  # read without a receipt for the delivery
        (75, "IN_GTW SENT DELIVERED OPENED CLICKED"),
        (15, "IN_GTW SENT DELIVERED OPENED REPLIED"),
    ), {"DELIVERED": (1.5, 0.8)}),
    Campaign("app-news", "push", "push-1", 0.12, 120, 1000, (
        (25, "IN_GTW SENT BOUNCED_HARD"),
        (15, "SKIPPED"),
        (560, "IN_GTW SENT"),
        (330, "IN_GTW SENT DELIVERED"),
        (45, "IN_GTW SENT DELIVERED OPENED"),
        (25, "IN_GTW SENT DELIVERED OPENED CLICKED"),
    ), {"DELIVERED": (1, 1.2)}),
    Campaign("loyalty-points", "viber", "viber-1", 0.08, 200, 100, (
        (50, "IN_GTW SENT UNKNOWN"),
        (30, "IN_GTW SENT EXPIRED"),
        (370, "IN_GTW SENT DELIVERED"),
        (480, "IN_GTW SENT DELIVERED OPENED"),
        (70, "IN_GTW SENT DELIVERED OPENED CLICKED"),
    ), {"DELIVERED": (2, 1.0)}),
)


def delay_table(campaign, status, random, size=2048):
    """Samples in milliseconds, to draw from by index: much cheaper than a new sample for each receipt."""
    median, sigma = campaign.delays.get(status, DELAYS[status])
    return [int(1000 * random.lognormvariate(math.log(median), sigma)) for _ in range(size)]


def messages_of(total):
    """[(campaign, first number, end number)…]; the last takes the rest of the rounding."""
    ranges, first = [], 0
    for campaign in CAMPAIGNS:
        end = total if campaign is CAMPAIGNS[-1] else first + int(total * campaign.share)
        ranges.append((campaign, first, end))
        first = end
    return ranges


def message_id(number):
    """An id without order, as gateways give them; every process of the demonstration can make it from the number."""
    return f"{number * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF:016x}{number:08x}"


def variant(number):
    return "AAB"[number % 3]


def groups(number):
    """Customer and logical message, as COPY reads them: one customer in four gets two messages, one message in twenty is sent again."""
    again = number % 20 == 19
    return f"customer-{number - (number % 5 == 4)}", message_id(number - 1) if again else "\\N"
