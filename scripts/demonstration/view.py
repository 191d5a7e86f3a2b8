"""The live view: one picture that is drawn again in place, or plain lines when the output is no terminal."""

import os
import shutil
import sys
import time
from collections import deque
from dataclasses import dataclass, field

from demonstration import campaigns

STAGES = ("SENT", "DELIVERED", "OPENED", "CLICKED")
EIGHTHS = " ▏▎▍▌▋▊▉█"
COLOURS = {"SENT": "36", "DELIVERED": "32", "OPENED": "33", "CLICKED": "35", "failed": "31", "bar": "32", "dim": "2",
           "bold": "1"}


def number(value):
    """12 345 678, for people."""
    return f"{value:,}".replace(",", " ")


@dataclass
class State:
    """The figures known at one moment."""

    total: int  # receipts that the stream holds
    produced: int = 0
    settled: int = 0  # counted, parked or dead
    parked: int = 0
    dead: int = 0
    targeted: int = 0  # messages that are there
    funnel: dict = field(default_factory=dict)  # (campaign, code): (messages, events, current)

    def messages(self, campaign, stage):
        if stage == "failed":
            codes = [campaigns.CODES[name] for name in campaigns.FAILURES]
            return sum(self.funnel.get((campaign, code), (0, 0, 0))[2] or 0 for code in codes)
        return self.funnel.get((campaign, campaigns.CODES[stage]), (0, 0, 0))[0]


class Rate:
    """Receipts a second over the last moments."""

    def __init__(self, window_s=1.5):
        self.window_s = window_s
        self.points = deque()
        self.peak = 0

    def add(self, now, value):
        self.points.append((now, value))
        while now - self.points[0][0] > self.window_s:
            self.points.popleft()
        then, before = self.points[0]
        rate = int((value - before) / (now - then)) if now - then > 0.3 else 0
        self.peak = max(self.peak, rate)
        return rate


class PlainView:
    """A line every two seconds, for logs and pipes."""

    def __init__(self, out=sys.stdout):
        self.out = out
        self.rate = Rate()
        self.started = time.monotonic()
        self.due = 0.0
        self.note = ""

    def update(self, state, note=""):
        now = time.monotonic()
        rate = self.rate.add(now, state.settled)
        if note and note != self.note:
            print(f"          {note}", file=self.out)
        self.note = note
        if now < self.due and state.settled < state.total:
            return
        self.due = now + 2
        delivered = sum(state.messages(campaign.name, "DELIVERED") for campaign in campaigns.CAMPAIGNS)
        print(f"{now - self.started:6.1f} s  {number(state.settled)} of {number(state.total)} receipts  {number(rate)}/s  "
              f"lag {number(state.produced - state.settled)}  delivered {number(delivered)}  parked {number(state.parked)}"
              f"  dead letters {state.dead}", file=self.out, flush=True)

    def close(self):
        pass


class LiveView:
    """The picture. Fits itself to the terminal's size at each drawing."""

    def __init__(self, out=sys.stdout):
        self.out = out
        self.rate = Rate()
        self.started = time.monotonic()
        self.drawn = 0
        self.colour = "NO_COLOR" not in os.environ
        self.blocks = EIGHTHS if "utf" in (out.encoding or "").lower() else " ....####"
        self.out.write("\x1b[?25l")

    def update(self, state, note=""):
        now = time.monotonic()
        width, height = shutil.get_terminal_size((80, 24))
        width -= 1
        lines = self._progress(state, width, self.rate.add(now, state.settled), now - self.started)
        lines += self._funnels(state, width, height - len(lines) - 3)
        lines.append(self._paint("dim", note[:width]))
        self._draw(lines[:height - 1])

    def close(self):
        self.out.write("\x1b[?25h")
        self.out.flush()

    def _draw(self, lines):
        up = f"\x1b[{self.drawn}F" if self.drawn else ""
        self.out.write(up + "".join(f"{line}\x1b[K\n" for line in lines) + "\x1b[J")
        self.out.flush()
        self.drawn = len(lines)

    def _paint(self, colour, text):
        return f"\x1b[{COLOURS[colour]}m{text}\x1b[0m" if self.colour and text else text

    def _bar(self, share, width, colour):
        eighths = round(min(max(share, 0), 1) * width * 8)
        full, rest = divmod(eighths, 8)
        text = self.blocks[8] * full + (self.blocks[rest] if rest else "")
        return self._paint(colour, text) + " " * (width - len(text))

    def _progress(self, state, width, rate, elapsed):
        share = state.settled / state.total if state.total else 0
        figures = (f"{number(state.settled)} of {number(state.total)} receipts   {number(rate)}/s   "
                   f"lag {number(state.produced - state.settled)}   {elapsed:.0f} s")
        waiting = f"parked {number(state.parked)}   dead letters {number(state.dead)}"
        percent = f" {share:4.0%}"
        return ["", self._bar(share, width - len(percent), "bar") + self._paint("bold", percent),
                figures[:width], waiting[:width], ""]

    def _funnels(self, state, width, room):
        stages = [*STAGES, "failed"]
        name_width = min(16, width // 4)
        column = (width - name_width) // len(stages)
        bar_width = max(column - 2, 1)
        lines_each = 3 if room >= 1 + 3 * len(campaigns.CAMPAIGNS) else 2 if room >= 1 + 2 * len(campaigns.CAMPAIGNS) else 1
        lines = [" " * name_width + "".join(self._paint("bold", stage.lower().ljust(column)[:column])
                                            for stage in stages)]
        for campaign in campaigns.CAMPAIGNS:
            targeted = state.messages(campaign.name, "TARGETED")
            counts = [state.messages(campaign.name, stage) for stage in stages]
            shares = [count / targeted if targeted else 0 for count in counts]
            name = self._paint("bold", campaign.name.ljust(name_width)[:name_width])
            bars = "".join(self._bar(share, bar_width, stage) + " " * (column - bar_width)
                           for share, stage in zip(shares, stages))
            lines.append(name + bars)
            if lines_each > 1:
                left = f"{campaign.channel} {number(targeted)}".ljust(name_width)[:name_width]
                figures = "".join(self._figure(count, share, column) for count, share in zip(counts, shares))
                lines.append(self._paint("dim", left) + figures)
            if lines_each > 2:
                lines.append("")
        return lines

    @staticmethod
    def _figure(count, share, width):
        text = f"{number(count)} {share:.1%}"
        if len(text) >= width:
            text = number(count)
        return text.ljust(width)[:width]


def open_view(plain=False, out=sys.stdout):
    if plain or not out.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        return PlainView(out)
    return LiveView(out)
