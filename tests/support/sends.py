"""Commands that are killed at their N-th send to the server (tests/faults/preload/sends.c); N advances from one to the next."""

import subprocess
from collections import namedtuple

from support.services import ROOT

SOURCE, LIBRARY = ROOT / "tests/faults/preload/sends.c", ROOT / "build/faults/sends.so"
Point = namedtuple("Point", "command send after")


def build():
    if not LIBRARY.exists() or LIBRARY.stat().st_mtime < SOURCE.stat().st_mtime:
        LIBRARY.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", str(LIBRARY), str(SOURCE), "-ldl"], check=True)


def environment(point):
    return {"LD_PRELOAD": str(LIBRARY), "RECEIPTD_SEND_AT": str(point.send), **({"RECEIPTD_SEND_AFTER": "1"} if point.after else {})}


class FailurePoints:
    """Of each layout and command: before a send and after it, the next one, and so on; from the beginning once a command came to its end."""

    def __init__(self, commands=("maintain", "retire"), stride=1):
        build()
        self.commands, self.stride, self.at, self.turn, self.most, self.passes = commands, stride, {}, 0, 0, 0

    def next(self, layout):
        command = self.commands[self.turn % len(self.commands)]
        self.turn += 1
        place = self.at.setdefault((layout, command), 0)
        return Point(command, place // 2 + 1, place % 2 == 1)

    def note(self, layout, point, killed):
        if killed:
            self.at[layout, point.command] += self.stride
            self.most = max(self.most, point.send)
        else:
            self.at[layout, point.command] = 0
            self.passes += 1
