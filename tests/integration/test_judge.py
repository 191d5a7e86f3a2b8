"""The judge has teeth: each kind of damage in a correct database is seen, and called by its name."""

import pytest

from oracle import broker, ledger
from oracle.compare import compare

FIRST = "WHERE message_id = (SELECT min(message_id) FROM message_inbox)"
FIRST_LETTER = "WHERE ctid = (SELECT min(ctid) FROM dead_letter WHERE index = -1)"
FIRST_PARKED = "WHERE ctid = (SELECT min(ctid) FROM parked_event)"
LANE = "WHERE partition = 1 AND lane = 3"
DELTA = "INSERT INTO counter_delta (kind, campaign_id, status, messages, events) VALUES"
DAMAGE = {
    "wrong status": f"UPDATE message_inbox SET status = CASE status WHEN 0 THEN 800 ELSE 0 END {FIRST}",
    "wrong flag": f"UPDATE message_inbox SET flags = flags # 2 {FIRST}",
    "wrong owner": f"UPDATE message_inbox SET campaign_id = 'c-99' {FIRST}",
    "missing row": f"DELETE FROM message_inbox {FIRST}",
    "extra row": "INSERT INTO message_inbox (message_id, campaign_id) VALUES ('nobody', 'c-00')",
    "drift": f"{DELTA} ('funnel', '{{c-00}}', '{{300}}', '{{1}}', '{{0}}')",
    "duplicate": f"{DELTA} ('funnel', '{{c-00}}', '{{300}}', '{{0}}', '{{1}}')",
    "lost": f"{DELTA} ('funnel', '{{c-00}}', '{{300}}', '{{0}}', '{{-1}}')",
    "wrong position": f"UPDATE consumer_progress SET next_offset = next_offset - 1 {LANE}",
    "missing progress": f"DELETE FROM consumer_progress {LANE}",
    "orphan progress": "INSERT INTO consumer_progress (topic, partition, lane, next_offset, generation)"
    " VALUES ('other', 0, 0, 0, 1)",
    "missing letter": f"DELETE FROM dead_letter {FIRST_LETTER}",
    "extra letter": "INSERT INTO dead_letter (topic, partition, \"offset\", index, lane, reason)"
    " VALUES ('other', 0, 0, 0, 0, 'missing_id')",
    "wrong reason": f"UPDATE dead_letter SET reason = 'aged_out' {FIRST_LETTER}",
    "wrong payload": f"UPDATE dead_letter SET payload = COALESCE(payload, '') || '!' {FIRST_LETTER}",
    "missing parked": f"DELETE FROM parked_event {FIRST_PARKED}",
    "wrong parked": f"UPDATE parked_event SET message_id = 'another' {FIRST_PARKED}",
    "extra parked": "INSERT INTO parked_event (topic, partition, \"offset\", index, lane, message_id, status, at, payload)"
    " VALUES ('other', 0, 0, 0, 0, 'x', 300, now(), '')",
}


class Undo(Exception):
    pass


def test_every_kind_of_damage_is_called_by_its_name(create_world):
    world = create_world(5_000, seed=91, partitions=2)
    world.insert(world.stream.late)
    world.produce()
    process = world.installation.start()
    world.finish(process)
    process.stop()
    records, ends = broker.read_log(world.brokers, str(world.topic))
    expected = ledger.ledger_of(records, world.platform, ends)
    with world.database.connect() as connection:
        connection.execute("SET search_path = receiptd")
        connection.execute("ALTER TABLE message_inbox DISABLE TRIGGER receiptd_refuse_change")
        for name, damage in DAMAGE.items():
            with pytest.raises(Undo), connection.transaction():
                changed = connection.execute(damage).rowcount
                assert changed == 1, f"{name}: {changed} rows damaged"
                report = compare(connection, expected)
                assert name in report.counts, f"{name} was not seen:\n{report}"
                raise Undo
        assert not compare(connection, expected)
