"""Faults of receiptd itself: killed, frozen, starved, misconfigured."""

import fcntl
import os
import resource
import select
import shutil
import signal
import subprocess
import time

from faults.kinds import kind
from faults.lab import SEATS
from support.services import ROOT
from support.wait import Timeout, wait_for

CLOCK_SOURCE = ROOT / "tests/faults/preload/clock.c"
CLOCK = ROOT / "build/faults/clock.so"


@kind("F01", "kill -9 at random moments, started again")
def kill_9(cycle):
    for _ in range(cycle.random.randint(1, 4)):
        cycle.pause()
        seat = cycle.victim()
        seat.kill()
        seat.start()


@kind("F01", "kill -9 of an instance in the first moments after its start, again and again")
def kill_9_while_starting(cycle):
    seat = cycle.victim()
    for _ in range(cycle.random.randint(3, 7)):
        seat.kill()
        seat.start()
        time.sleep(cycle.random.uniform(0, 0.35))


@kind("F01", "kill -9 of all instances at once", seats=2)
def kill_9_of_all(cycle):
    cycle.wait_for_receipts()
    cycle.pause(0, 0.4)
    here = cycle.era.occupied()
    for seat in here:
        seat.process.signal(signal.SIGSTOP)
    for seat in here:
        seat.kill()
    cycle.pause(0, 0.4)
    for seat in here:
        seat.start()


@kind("F02", "SIGTERM under load: drains and ends with 0")
def sigterm(cycle):
    for _ in range(cycle.random.randint(1, 3)):
        cycle.pause()
        seat = cycle.victim()
        seat.process.signal(signal.SIGTERM)
        seat.ended((0,), 10)
        seat.start()


@kind("F02", "SIGTERM twice: ends at once, with 0 or 75")
def sigterm_twice(cycle):
    cycle.wait_for_receipts()
    seat = cycle.victim()
    seat.process.signal(signal.SIGTERM)
    time.sleep(cycle.random.uniform(0, 0.02))
    seat.process.signal(signal.SIGTERM)
    seat.ended((0, 75), 5)
    cycle.pause(0, 0.3)
    seat.start()


@kind("F02 F16", "SIGTERM while PostgreSQL does not answer: ends within shutdown.deadline")
def sigterm_in_an_outage(cycle):
    cycle.pause()
    for link in cycle.links("postgres", SEATS):
        link.shape(held=True)
    cycle.pause()
    seat = cycle.victim()
    seat.process.signal(signal.SIGTERM)
    seat.ended((0,), 8)
    seat.start()


@kind("F03", "SIGSTOP beyond the session time-out, then SIGCONT: a zombie with transactions of its former life", seats=2)
def zombie(cycle):
    for _ in range(cycle.random.randint(1, 2)):
        cycle.wait_for_receipts()
        seat = cycle.victim()
        seat.process.signal(signal.SIGSTOP)
        time.sleep(cycle.random.uniform(2.2, 4))
        seat.process.signal(signal.SIGCONT)
        cycle.pause(0, 0.5)


@kind("F03", "all instances stopped and continued, in random order", seats=2)
def zombies(cycle):
    cycle.wait_for_receipts()
    here = cycle.era.occupied()
    for seat in cycle.random.sample(here, len(here)):
        seat.process.signal(signal.SIGSTOP)
        cycle.pause(0, 0.3)
    time.sleep(cycle.random.uniform(0.5, 3))
    for seat in cycle.random.sample(here, len(here)):
        seat.process.signal(signal.SIGCONT)
        cycle.pause(0, 1.5)


@kind("F04", "stopped with half a batch sent: the lock holder says nothing more, its successor evicts it", seats=2)
def half_a_batch(cycle):
    cycle.wait_for_receipts()
    seat = cycle.victim()
    links = cycle.links("postgres", [seat.name])
    for link in links:
        link.shape(("up",), cut=(cycle.random.randint(100, 60_000), "stall"))
    try:
        wait_for(lambda: any(link.cuts for link in links), 1.5, "the link is cut")
    except Timeout:
        cycle.notes.append("the limit of bytes was not reached")
    seat.process.signal(signal.SIGSTOP)
    time.sleep(cycle.random.uniform(2.5, 5))
    seat.process.signal(signal.SIGCONT)
    cycle.pause(0, 0.5)


@kind("F05", "ends by a signal of its own: SIGABRT, SIGSEGV, SIGBUS, SIGILL")
def abort(cycle):
    for _ in range(cycle.random.randint(1, 3)):
        cycle.pause()
        seat = cycle.victim()
        resource.prlimit(seat.process.pid, resource.RLIMIT_CORE, (0, 0))
        seat.kill(cycle.random.choice((signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGILL)))
        cycle.pause(0, 0.3)
        seat.start()


def mapped(pid):
    with open(f"/proc/{pid}/statm") as pages:
        return int(pages.read().split()[0]) * resource.getpagesize()


@kind("F05 F09", "no more memory: the address space may not grow any further")
def no_memory(cycle):
    """The instance may go on with the memory it has, or end and be started again."""
    cycle.pause()
    seat = cycle.victim()
    resource.prlimit(seat.process.pid, resource.RLIMIT_CORE, (0, 0))
    room = mapped(seat.process.pid) + cycle.random.choice((0, 0, 1 << 20, 4 << 20))
    resource.prlimit(seat.process.pid, resource.RLIMIT_AS, (room, room))
    seat.expect(-signal.SIGABRT, -signal.SIGSEGV, 70, 75, 0)
    if cycle.random.random() < 0.7:  # every new connection needs memory
        cycle.terminate(cycle.backends())
    time.sleep(cycle.random.uniform(0.5, 1.5))
    seat.kill()
    seat.start()


def build_clock():
    """The shim that moves the wall clock of one process."""
    if not CLOCK.exists() or CLOCK.stat().st_mtime < CLOCK_SOURCE.stat().st_mtime:
        CLOCK.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", str(CLOCK), str(CLOCK_SOURCE), "-ldl"], check=True)


@kind("F06", "the wall clock jumps by hours, forth and back; the monotonic one does not")
def clock_jumps(cycle):
    build_clock()
    seat, offset = cycle.victim(), cycle.era.directory / "clock-offset"
    offset.write_text("0\n")
    seat.kill()
    seat.start(environment={"LD_PRELOAD": str(CLOCK), "FAULTS_CLOCK_OFFSET": str(offset)})
    for _ in range(cycle.random.randint(2, 4)):
        cycle.pause(0.2, 0.8)
        offset.write_text(f"{cycle.random.choice((3600, -3600, 90_000, -90_000, 5, -5, 0))}\n")
    cycle.pause(0.2, 0.6)
    seat.kill()
    seat.start()


@kind("F07", "nobody reads the log's pipe, or its end is closed")
def log_pipe(cycle):
    """A broken log must do no harm: the only remaining instance goes on consuming."""
    seat = cycle.victim()
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)  # full after a few lines
    seat.kill()
    seat.installation.configure(log={"level": "debug"})
    seat.start(output=writer)
    os.close(writer)
    wait_for(lambda: select.select([reader], [], [], 0)[0], 10, "the instance says something")
    seat.installation.configure(log={"level": "info"})
    if cycle.random.random() < 0.4:
        os.close(reader)
        reader = None
    for other in cycle.era.occupied():
        if other is not seat:
            other.kill()
    before = cycle.positions()
    wait_for(lambda: cycle.positions() != before, 20, "an instance whose log nobody reads goes on")
    time.sleep(cycle.random.uniform(1, 2))
    seat.kill()
    if reader is not None:
        os.close(reader)
    seat.start()


@kind("F08", "no descriptors left: RLIMIT_NOFILE below what is in use while every connection is cut")
def no_descriptors(cycle):
    cycle.pause()
    for seat in cycle.victims():
        pid = seat.process.pid
        before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (cycle.random.randint(4, 12), before[1]))
        for link in cycle.links("both", [seat.name]):
            link.reset()
        cycle.pause(0.5, 1.5)
        if seat.running:
            resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


@kind("F37", "members join and leave in quick succession", seats=1)
def members_come_and_go(cycle):
    for _ in range(cycle.random.randint(2, 5)):
        free = [seat for seat in cycle.era.seats.values() if not seat.running]
        here = cycle.era.occupied()
        if free and (len(here) == 1 or cycle.random.random() < 0.5):
            cycle.random.choice(free).start()
        else:
            seat = cycle.random.choice(here)
            seat.leave(in_order=cycle.random.random() < 0.7)
        if not cycle.era.occupied():
            cycle.era.seats["a"].start()
        cycle.pause(0.1, 0.9)


@kind("F39", "the loop's thread stands still while librdkafka's go on, longer than max.poll.interval.ms", needs="strace")
def loop_blocked(cycle):
    """strace holds the main thread at its next poll; heartbeats go on, so only max.poll.interval.ms can tell."""
    cycle.wait_for_receipts()
    seat = cycle.victim()
    seconds = cycle.random.choice((1, 3, 7))
    tracer = subprocess.Popen(
        [shutil.which("strace"), "-qq", "-p", str(seat.process.pid), "-o", "/dev/null",
         "-e", "trace=epoll_wait,epoll_pwait",
         "-e", f"inject=epoll_wait,epoll_pwait:delay_enter={seconds * 1_000_000}:when=1+1000000"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(seconds + 0.7)
    tracer.terminate()
    try:
        tracer.wait(5)
    except subprocess.TimeoutExpired:
        tracer.kill()
        tracer.wait()
    cycle.pause(0, 0.3)


@kind("F50", "SIGHUP at any moment, with the same file, another or none")
def sighup(cycle):
    seat = cycle.victim()
    path = seat.installation.config_path
    text = path.read_text()
    for broken in (None, "kafka: [", "no such key: 1\n", text.replace("info", "debug")):
        cycle.pause(0, 0.4)
        if broken is not None:
            path.write_text(broken)
        seat.process.signal(signal.SIGHUP)
    cycle.pause(0.1, 0.4)
    path.write_text(text)
    seat.process.signal(signal.SIGHUP)


@kind("F51", "an instance of another group consumes the same topic into the same database")
def two_groups(cycle):
    free = [seat for seat in cycle.era.seats.values() if not seat.running]
    if not free:
        cycle.era.seats["c"].leave()
        free = [cycle.era.seats["c"]]
    seat = cycle.random.choice(free)
    group = seat.installation.settings["kafka"]["group"]
    seat.installation.configure(kafka={"group": group + "-by-mistake"})
    seat.start()
    cycle.pause(1, 2.5)
    seat.leave(in_order=cycle.random.random() < 0.5)
    seat.installation.configure(kafka={"group": group})


@kind("F52", "an instance with another number of lanes is started: it refuses, the others go on")
def other_lanes(cycle):
    cycle.wait_for_receipts()  # the number of lanes is pinned by the first instance that consumes
    seat = cycle.victim()
    seat.leave()
    lanes = cycle.era.lanes
    seat.installation.configure(lanes=lanes * 2)
    seat.start()
    try:
        seat.ended((78,), 20)
    finally:
        seat.installation.configure(lanes=lanes)
    cycle.pause(0, 0.2)
    seat.start()
