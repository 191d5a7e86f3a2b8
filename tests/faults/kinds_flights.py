"""Faults that strike between the two flights of a transaction: rows are locked, the daemon counts, nothing is written yet."""

import signal
import time

from faults.kinds import kind
from support.wait import Timeout, wait_for


def sessions(cycle, seat, state):
    return [pid for (pid,) in cycle.era.database.query(
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND state = %s AND application_name LIKE %s",
        state, f"receiptd/%-{seat.process.pid}/lanes-%")]


def stop_between_flights(cycle, seat):
    """Stops the instance, and again until the server has answered a first flight and waits. Returns these sessions."""
    deadline = time.monotonic() + 10
    while seat.running and time.monotonic() < deadline:
        seat.process.signal(signal.SIGSTOP)
        try:
            wait_for(lambda: not sessions(cycle, seat, "active"), 2, "what was sent is executed")
        except Timeout:
            cycle.notes.append("a session was still active after 2 s")
        waiting = sessions(cycle, seat, "idle in transaction")
        if waiting:
            return waiting
        seat.process.signal(signal.SIGCONT)
        cycle.pause(0, 0.05)
    cycle.notes.append("no first flight was met in 10 s")
    return []


@kind("F01", "kill -9 between the two flights of a transaction")
def kill_9_between_flights(cycle):
    for _ in range(cycle.random.randint(1, 3)):
        cycle.wait_for_receipts()
        seat = cycle.victim()
        stop_between_flights(cycle, seat)
        seat.kill()
        cycle.pause(0, 0.3)
        seat.start()


@kind("F03", "SIGSTOP between the two flights, beyond the session time-out: others go on, its rows are freed", seats=2)
def stopped_between_flights(cycle):
    cycle.wait_for_receipts()
    seat = cycle.victim()
    stop_between_flights(cycle, seat)
    time.sleep(cycle.random.uniform(2.2, 5))
    seat.process.signal(signal.SIGCONT)
    cycle.pause(0, 0.5)


@kind("F15", "the connection is gone between the two flights, by RST or by the server")
def lost_between_flights(cycle):
    for _ in range(cycle.random.randint(1, 4)):
        cycle.wait_for_receipts()
        seat = cycle.victim()
        waiting = stop_between_flights(cycle, seat)
        if cycle.random.random() < 0.5:
            cycle.terminate(waiting)  # as idle_in_transaction_session_timeout does
        else:
            for link in cycle.links("postgres", [seat.name]):
                link.reset()
        seat.process.signal(signal.SIGCONT)
        cycle.pause(0, 0.3)
