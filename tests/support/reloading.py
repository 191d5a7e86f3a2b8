"""Reloads of a running receiptd under load, by signal and by socket in turn, good configurations and bad ones. Nothing may be lost,
stand still afterwards, or pile up."""

import signal
import statistics
import threading
import time

from oracle import broker
from support.operations import Operations
from support.world import Feeder

EX_CONFIG = 78
CONNECTIONS = (2, 5, 1, 8, 3)  # the first one is what it begins with
BUDGETS = ("2MiB", "1MiB", "5MiB")
# Mistakes of a file, as text behind a good configuration; None: there is no file.
BROKEN = (
    "batch: {max_events: 5, linger: never}\n",
    "no such key: 1\n",
    "kafka: [\n",
    "postgres: {connections: 0}\n",
    None,
    "ladder: {statuses: [{name: TARGETED, code: 0}]}\n",
)


class Reloading:
    def __init__(self, world, control, per_second):
        self.world, self.control, self.per_second = world, control, per_second
        self.applied = self.refused = 0
        self.resident, self.took, self.stop_feeding = [], [], threading.Event()

    def begin(self):
        world = self.world
        world.installation.configure(postgres={"connections": CONNECTIONS[0]}, memory={"budget": BUDGETS[0]})
        self.process = world.installation.start()
        self.pages = Operations(self.process)
        self.pages.wait_until_ready(60)
        self.at_first = self.pages.figures().get_one("process_open_fds")
        pace = self.per_second / world.stream.events_per_record
        world.feeder = Feeder(lambda: broker.produce(world.brokers, str(world.topic), self.records(), per_second=pace,
                                                     stop=self.stop_feeding))
        world.wait_for_progress(self.process, 60)

    def records(self):
        """Repeats the stream: however long the reloads take, receipts come in."""
        while True:
            yield from self.world.stream.records()

    def settings(self, turn):
        return {
            "batch": {"max_events": 200 + turn % 7 * 100, "linger": f"{turn % 4 * 5}ms"},
            "memory": {"budget": BUDGETS[turn % len(BUDGETS)]},
            "postgres": {"connections": CONNECTIONS[turn // 3 % len(CONNECTIONS)]},
            "log": {"level": ("info", "warn")[turn % 2], "levels": {"receipts": "debug"} if turn % 5 == 0 else {}},
            "parked": {"poll_interval": f"{200 + turn % 3 * 100}ms"},
        }

    def write(self, turn):
        """The next configuration; False: one that must be refused."""
        installation = self.world.installation
        installation.configure(**self.settings(turn))
        if turn % 3 != 2:
            return True
        text = BROKEN[turn // 3 % len(BROKEN)]
        if text is None:
            installation.config_path.unlink()
        else:
            good = installation.config_path.read_text()
            key = text.partition(":")[0]
            installation.write_config("\n".join(self.without(good, key)) + "\n" + text)
        return False

    @staticmethod
    def without(text, key):
        """The lines of a block of YAML without one of its sections, which the caller writes again."""
        inside = False
        for line in text.splitlines():
            if not line.startswith(" "):
                inside = line.startswith(f"{key}:")
            if not inside:
                yield line

    def ask(self, turn, good):
        if turn % 2 == 0:
            self.process.signal(signal.SIGHUP)
            return
        done = self.world.installation.command("ctl", "--socket", str(self.control.path), "reload", check=False)
        if not good:
            assert done.returncode == EX_CONFIG and "refused: " in done.stderr + done.stdout, done
        else:
            assert done.returncode == 0, done

    def is_counted(self):
        figures = self.pages.figures()
        self.resident.append(figures.get_one("process_resident_memory_bytes"))
        found = [figures.get_one("receiptd_reloads_total", result=result) for result in ("applied", "refused")]
        assert found[0] <= self.applied and found[1] <= self.refused, (found, self.applied, self.refused)
        return found == [self.applied, self.refused]

    def reload(self, turn):
        """One reload: the answer is the intended one, and positions move after it."""
        good = self.write(turn)
        self.applied, self.refused = self.applied + good, self.refused + (not good)
        began = time.monotonic()
        self.ask(turn, good)
        self.process.wait_for(self.is_counted, 60, f"reload {turn} is counted")
        assert self.world.is_feeding(), "the stream has ended"
        self.world.wait_for_progress(self.process, 60)
        self.took.append(time.monotonic() - began)

    def finish(self):
        """The stream ends, all rows are there: everything exactly once, and no more is held than at first."""
        self.stop_feeding.set()
        self.world.feeder.join()
        self.world.installation.configure(**{**self.settings(0), "log": {"level": "info", "levels": {}}})
        self.applied += 1
        self.control.ctl("reload")
        up = len(("control",)) + CONNECTIONS[0]
        self.pages.wait_for_figure("receiptd_postgres_connection_up", lambda value: value == up, 60)
        self.pages.wait_until_ready(60)
        self.world.insert(self.world.stream.late)
        self.world.finish(self.process, 180)
        self.process.wait_for(lambda: self.pages.figures().get_one("process_open_fds") <= self.at_first + 1, 60,
                              f"no more than the {self.at_first:g} descriptors that it had at first")
        assert self.is_counted()
        self.process.stop(60)

    def growth(self):
        """How much more memory it had in the last fifth of the samples than in the second one, in bytes (medians)."""
        fifth = max(1, len(self.resident) // 5)
        return statistics.median(self.resident[-fifth:]) - statistics.median(self.resident[fifth:2 * fifth])
