"""Faults between receiptd and its servers: the links of the proxy, each direction separately."""

import time

from faults.kinds import kind
from faults.lab import SEATS
from support.wait import Timeout, wait_for

DIRECTIONS = (("up",), ("down",), ("up", "down"))


def resets(cycle, what):
    for _ in range(cycle.random.randint(2, 8)):
        cycle.pause(0.02, 0.4)
        for link in cycle.links(what):
            link.reset()


def cuts(cycle, what, ways, kinds):
    """The connection breaks behind a certain byte: in the middle of a message, of a pipeline, of an answer."""
    for _ in range(cycle.random.randint(1, 4)):
        links = cycle.links(what)
        before = sum(link.cuts for link in links)
        limit = int(10 ** cycle.random.uniform(0, 5))
        for link in links:
            link.shape(ways, cut=(limit, cycle.random.choice(kinds)))
        try:
            wait_for(lambda: sum(link.cuts for link in links) > before, 2, "the link is cut")
        except Timeout:
            cycle.notes.append(f"{limit} bytes were not reached")
        cycle.pause(0.1, 1.2)
        for link in links:
            link.heal()


def holes(cycle, what, ways, longest=4.0):
    """Nothing passes; then either all held bytes are delivered, or RST."""
    cycle.pause()
    links = cycle.links(what)
    for link in links:
        link.shape(ways, held=True)
    time.sleep(cycle.random.uniform(0.5, longest))
    reset = cycle.random.random() < 0.5
    for link in links:
        link.heal(reset=reset)


def slow(cycle, what, longest):
    links, delay = cycle.links(what), cycle.random.uniform(0.02, longest)
    for link in links:
        ways = cycle.random.choice(DIRECTIONS)
        link.shape(ways, delay=delay, jitter=delay * cycle.random.choice((0, 1)))
        if cycle.random.random() < 0.3:
            link.shape(ways, rate=cycle.random.choice((50_000, 200_000)))
    cycle.pause(1, 2.5)


def refused(cycle, what):
    cycle.pause()
    links = cycle.links(what)
    for link in links:
        link.refuse()
        link.reset()
    cycle.pause(0.3, 2.5)


def silent(cycle, what):
    """New connections are accepted and never answered, as those of a stopped server."""
    cycle.pause()
    links = cycle.links(what)
    for link in links:
        link.silent = True
        link.reset()
    cycle.pause(0.5, 3.5)


@kind("F15", "RST of connections to PostgreSQL")
def postgres_resets(cycle):
    resets(cycle, "postgres")


@kind("F15", "a connection to PostgreSQL breaks after N bytes sent: a transaction in part")
def postgres_cut_up(cycle):
    cuts(cycle, "postgres", ("up",), ("reset", "half", "stall"))


@kind("F15", "a connection to PostgreSQL breaks after N bytes of answers: was it committed?")
def postgres_cut_down(cycle):
    cuts(cycle, "postgres", ("down",), ("reset", "stall"))


@kind("F15", "half-open: receiptd has lost the connection, PostgreSQL has not noticed and holds its locks")
def postgres_half_open(cycle):
    cuts(cycle, "postgres", ("up",), ("half",))


@kind("F16", "black hole to and from PostgreSQL")
def postgres_black_hole(cycle):
    holes(cycle, "postgres", ("up", "down"))


@kind("F16", "one direction to or from PostgreSQL is silent")
def postgres_one_way(cycle):
    holes(cycle, "postgres", cycle.random.choice(DIRECTIONS[:2]))


@kind("F16", "PostgreSQL accepts connections and says nothing")
def postgres_silent(cycle):
    silent(cycle, "postgres")


@kind("F16", "one instance of several is cut off from PostgreSQL: it keeps its partitions or loses them", seats=2)
def one_cut_off(cycle):
    cycle.wait_for_receipts()
    links = cycle.links("postgres", [cycle.victim().name])
    for link in links:
        link.shape(held=True)
    time.sleep(cycle.random.uniform(1, 5))
    for link in links:
        link.heal(reset=cycle.random.random() < 0.5)


@kind("F17", "PostgreSQL answers slowly: delay, jitter, throttle")
def postgres_slow(cycle):
    slow(cycle, "postgres", 0.3)


@kind("F12", "connections to PostgreSQL are refused")
def postgres_refused(cycle):
    refused(cycle, "postgres")


@kind("F34", "Kafka answers slowly: delay, jitter, throttle")
def kafka_slow(cycle):
    slow(cycle, "kafka", 0.6)


@kind("F45", "RST of connections to Kafka")
def kafka_resets(cycle):
    resets(cycle, "kafka")


@kind("F45", "a connection to Kafka breaks after N bytes of answers: a fetch in part")
def kafka_cut(cycle):
    cuts(cycle, "kafka", cycle.random.choice(DIRECTIONS), ("reset", "half", "stall"))


@kind("F45", "black hole to and from Kafka, one way or both")
def kafka_black_hole(cycle):
    holes(cycle, "kafka", cycle.random.choice(DIRECTIONS))


@kind("F30", "connections to Kafka are refused")
def kafka_refused(cycle):
    refused(cycle, "kafka")


@kind("F30", "Kafka accepts connections and says nothing")
def kafka_silent(cycle):
    silent(cycle, "kafka")


@kind("F45 F03", "one instance of several is cut off from Kafka: a zombie that still reaches PostgreSQL", seats=2)
def one_cut_off_from_kafka(cycle):
    cycle.wait_for_receipts()
    links = cycle.links("kafka", [cycle.victim().name])
    for link in links:
        link.shape(held=True)
    time.sleep(cycle.random.uniform(2.2, 4.5))
    for link in links:
        link.heal(reset=cycle.random.random() < 0.5)


@kind("F60 F16", "black hole to PostgreSQL and to Kafka")
def both_black_holes(cycle):
    holes(cycle, "both", cycle.random.choice(DIRECTIONS))


@kind("F38 F36", "instances join and are expelled while PostgreSQL is away for longer than max.poll.interval.ms")
def rebalance_in_an_outage(cycle):
    """The assignment waits for positions that the instance cannot read."""
    for link in cycle.links("postgres", SEATS):
        link.refuse()
        link.reset()
    free = [seat for seat in cycle.era.seats.values() if not seat.running]
    if free:
        free[0].start()
    else:
        seat = cycle.victim()
        seat.kill()
        seat.start()
    time.sleep(cycle.random.choice((1.5, 3, 7)))
