"""The judge has teeth: each kind of damage in a correct database is seen, and called by its name."""

import pytest

from oracle import broker, ledger
from oracle.compare import compare

DAMAGE = {
    "wrong status": "UPDATE receiptd.message_inbox SET status = 800 WHERE message_id = (SELECT min(message_id) FROM"
    " receiptd.message_inbox WHERE status < 800)",
    "wrong flag": "UPDATE receiptd.message_inbox SET flags = flags # 2 WHERE message_id = (SELECT min(message_id) FROM"
    " receiptd.message_inbox)",
    "missing row": "DELETE FROM receiptd.message_inbox WHERE message_id = (SELECT min(message_id) FROM"
    " receiptd.message_inbox)",
    "extra row": "INSERT INTO receiptd.message_inbox (message_id, campaign_id) VALUES ('nobody', 'c-00')",
    "wrong owner": "UPDATE receiptd.message_inbox SET campaign_id = 'c-99' WHERE message_id = (SELECT min(message_id) FROM"
    " receiptd.message_inbox)",
    "drift": "UPDATE receiptd.campaign_funnel_total SET messages = messages + 1 WHERE campaign_id = 'c-00' AND status = 300",
    "duplicate": "INSERT INTO receiptd.campaign_funnel_delta (campaign_id, status, messages, events)"
    " VALUES ('{c-00}', '{300}', '{0}', '{1}')",
    "lost": "INSERT INTO receiptd.campaign_funnel_delta (campaign_id, status, messages, events)"
    " VALUES ('{c-00}', '{300}', '{0}', '{-1}')",
    "wrong position": "UPDATE receiptd.consumer_progress SET next_offset = next_offset - 1 WHERE partition = 1 AND lane = 3",
    "missing progress": "DELETE FROM receiptd.consumer_progress WHERE partition = 1 AND lane = 3",
    "orphan progress": "INSERT INTO receiptd.consumer_progress (topic, partition, lane, next_offset, generation)"
    " VALUES ('other', 0, 0, 0, 1)",
    "missing letter": "DELETE FROM receiptd.dead_letter WHERE ctid = (SELECT min(ctid) FROM receiptd.dead_letter)",
    "extra letter": "INSERT INTO receiptd.dead_letter (topic, partition, \"offset\", index, lane, reason)"
    " VALUES ('other', 0, 0, 0, 0, 'missing_id')",
    "wrong reason": "UPDATE receiptd.dead_letter SET reason = 'aged_out' WHERE ctid = (SELECT min(ctid) FROM"
    " receiptd.dead_letter)",
    "wrong payload": "UPDATE receiptd.dead_letter SET payload = payload || '!' WHERE ctid = (SELECT min(ctid) FROM"
    " receiptd.dead_letter WHERE index = -1)",
    "missing parked": "DELETE FROM receiptd.parked_event WHERE ctid = (SELECT min(ctid) FROM receiptd.parked_event)",
    "extra parked": "INSERT INTO receiptd.parked_event (topic, partition, \"offset\", index, lane, message_id, status, at,"
    " payload) VALUES ('other', 0, 0, 0, 0, 'x', 300, now(), '')",
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
        for name, damage in DAMAGE.items():
            with pytest.raises(Undo), connection.transaction():
                changed = connection.execute(damage).rowcount
                assert changed == 1, f"{name}: {changed} rows damaged"
                report = compare(connection, expected)
                assert name in report.counts, f"{name} was not seen:\n{report}"
                raise Undo
        assert not compare(connection, expected)
