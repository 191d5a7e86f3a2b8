"""Faults at the same time."""

from faults import kinds_kafka, kinds_links, kinds_postgres, kinds_process
from faults.kinds import kind


@kind("F60 F11 F37", "PostgreSQL crashes while members join and leave")
def crash_while_members_move(cycle):
    cycle.beside(kinds_postgres.crashed, kinds_process.members_come_and_go)


@kind("F60 F13 F03", "a lagging replica is promoted while an instance is a zombie", seats=2)
def promotion_and_zombie(cycle):
    cycle.beside(kinds_postgres.promoted, kinds_process.zombie)


@kind("F60 F30 F10", "the broker dies while backends are terminated", brokers=1)
def broker_and_backends(cycle):
    cycle.beside(kinds_kafka.broker_killed, kinds_postgres.backends_terminated)


@kind("F60 F11 F01", "PostgreSQL crashes while instances are killed")
def crash_and_kills(cycle):
    cycle.beside(kinds_postgres.crashed, kinds_process.kill_9)


@kind("F60 F31 F15", "a leader dies while connections to PostgreSQL break", brokers=3)
def leader_and_cuts(cycle):
    cycle.beside(kinds_kafka.leader_killed, kinds_links.postgres_cut_down)


@kind("F60 F14 F45", "the database is restored while connections to Kafka break")
def restore_and_resets(cycle):
    cycle.beside(kinds_postgres.restored, kinds_links.kafka_resets)


@kind("F60 F37 F15 F18", "members come and go, answers are cut off, statements cancelled")
def restless(cycle):
    cycle.beside(kinds_process.members_come_and_go, kinds_links.postgres_cut_down, kinds_postgres.cancelled)


@kind("F60 F30 F11", "Kafka and PostgreSQL crash at the same time", brokers=1)
def both_crash(cycle):
    cycle.wait_for_receipts()
    cycle.lab.brokers_list[0].kill()
    cycle.lab.primary.crash()
    cycle.pause(0, 1)
    cycle.lab.brokers_list[0].start(wait=False)
    cycle.lab.primary.start()
    cycle.lab.brokers_list[0].await_answer()
