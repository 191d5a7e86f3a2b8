"""The default status ladder by its definition: a tree of statuses, flags beside it, overrides by channel.

Written down a second time on purpose: nothing here is read from the daemon, its SQL or its configuration.
"""

from collections import Counter

# code (= priority), name, parent's code
STATUSES = (
    (0, "TARGETED", None),
    (100, "SKIPPED", 0),
    (110, "SUBMIT_FAILED", 0),
    (200, "IN_GTW", 0),
    (300, "SENT", 200),
    (310, "DEFERRED", 300),
    (400, "UNKNOWN", 300),
    (420, "EXPIRED", 300),
    (430, "BOUNCED_SOFT", 300),
    (440, "FAILED", 300),
    (450, "BLOCKED", 300),
    (460, "REJECTED", 200),
    (470, "BOUNCED_HARD", 300),
    (600, "DELIVERED", 300),
    (650, "BOUNCED_HARD_EMAIL", 300),
    (700, "OPENED", 600),
    (800, "CLICKED", 700),
)
# flag i has bit i and code 9001 + i; the second entry is the status that it implies
FLAGS = (
    ("COMPLAINED", 600),
    ("UNSUBSCRIBED", 600),
    ("RESUBSCRIBED", None),
    ("REPLIED", 600),
    ("AUTORESPONDED", 600),
    ("MACHINE_OPEN", 600),
    ("BOT_CLICK", 600),
)
FIRST_FLAG = 9001
OVERRIDES = {("email", 470): 650}

ROOT = 0
PARENT = {code: parent for code, _, parent in STATUSES}
NAME = {code: name for code, name, _ in STATUSES}
NAME.update({FIRST_FLAG + bit: name for bit, (name, _) in enumerate(FLAGS)})
CODE = {name: code for code, name in NAME.items()}
# In which order statuses count for a group of messages, from the worst to the best: code → place
BEST = {CODE[name]: place for place, name in enumerate(
    "SKIPPED TARGETED SUBMIT_FAILED REJECTED IN_GTW UNKNOWN EXPIRED BOUNCED_SOFT FAILED BLOCKED BOUNCED_HARD BOUNCED_HARD_EMAIL SENT DEFERRED"
    " DELIVERED OPENED CLICKED".split())}


def path(code):
    """The statuses from the root down to this one: what a message standing here is counted in."""
    steps = [code]
    while PARENT[steps[-1]] is not None:
        steps.append(PARENT[steps[-1]])
    return tuple(reversed(steps))


PATH = {code: path(code) for code in PARENT}


def carried(code):
    """(status, flag bits) that a receipt of this code gives to its message."""
    if code < FIRST_FLAG:
        return code, 0
    bit = code - FIRST_FLAG
    implied = FLAGS[bit][1]
    return (ROOT if implied is None else implied), 1 << bit


CARRIED = {code: carried(code) for code in NAME}


def find(status, channel):
    """Code that an event's `status` (name or integer code) means on its channel; None if the ladder has no such one."""
    if type(status) is str:
        code = CODE.get(status)
    elif type(status) is int:
        code = status if status in NAME else None
    else:
        code = None
    return OVERRIDES.get((channel and channel.lower(), code), code)


def machines(codes, opens="flag", clicks="flag"):
    """What a receipt that names these codes counts as, the one under which its copies count first: a machine's open or click by its policy (flag, count or
    ignore). Whatever it names beside that stays."""
    status = next((code for code in codes if code < FIRST_FLAG), None)
    flags, counted = {code for code in codes if code >= FIRST_FLAG}, []
    for flag, meant, policy in (("BOT_CLICK", "CLICKED", clicks), ("MACHINE_OPEN", "OPENED", opens)):
        if CODE[flag] not in codes:
            continue
        status = None if status == CODE[meant] else status
        if policy == "count":
            counted.append(CODE[meant])
        if policy == "ignore":
            flags.remove(CODE[flag])
    return [code for code in (status, *counted) if code is not None] + sorted(flags)


def state(codes):
    """(status, flags) of a message that received these codes, in whatever order and however often."""
    status, flags = ROOT, 0
    for code in codes:
        top, mask = CARRIED[code]
        status = max(status, top)
        flags |= mask
    return status, flags


def funnel(states):
    """messages and current per code, for the (status, flags) of all messages of a campaign."""
    messages, current = {}, {}
    for (status, flags), n in Counter(states).items():
        for step in PATH[status]:
            messages[step] = messages.get(step, 0) + n
        current[status] = current.get(status, 0) + n
        for bit in range(len(FLAGS)):
            if flags >> bit & 1:
                messages[FIRST_FLAG + bit] = messages.get(FIRST_FLAG + bit, 0) + n
    return messages, current
