"""How the inbox of support/retiring.py is laid out: a flat one with random ids, or partitions by the time in ids."""

import time
import uuid

from oracle.ledger import Row

# Seconds that a message stays: a campaign counts before an organisation, and both before the rest. 0: without limit.
CAMPAIGNS, ORGANISATIONS, REST = {"longer": 8, "kept": 0}, {"bank": 6}, 4
RETENTION = {"retention": f"{REST}s", "retention_overrides": [
    *({"campaign": name, "keep": f"{keep}s"} for name, keep in CAMPAIGNS.items()),
    *({"org_id": name, "keep": f"{keep}s"} for name, keep in ORGANISATIONS.items())]}
NAMES, ORGANISATION_NAMES = ("c0", "c1", "c2", "c3", "longer", "kept"), ("shop", "shop", "bank")
WALK = {"delete": "%picked AS (%", "add together": "%campaign_retired r%"}
HOUR = 3_600_000


def keep_of(row):
    return CAMPAIGNS.get(row.campaign_id, ORGANISATIONS.get(row.org_id, REST))


class Flat:
    """Random ids, and a recent set whose boundary moves."""

    name, per_second, backdated = "flat", 500, False
    inbox = RETENTION | {"recent_rows": 500}
    # What the last statement of a run's session has in it, once the run has come to that step.
    steps = WALK | {"sample": "%TABLESAMPLE%", "make the index": "%CREATE UNIQUE INDEX%", "move the boundary": "%INSERT INTO inbox_recent%",
                    "drop the index": "%DROP INDEX%"}

    def make_rows(self, draw, count):
        return {str(uuid.UUID(int=draw.getrandbits(128), version=4)): Row(draw.choice(ORGANISATION_NAMES), draw.choice(NAMES)) for _ in range(count)}

    @staticmethod
    def is_backdated(_):
        return False

    def check(self, database):
        """One index is left, that of the boundary."""
        indexes = database.query("SELECT c.relname::text, x.indisvalid FROM pg_index x JOIN pg_class c ON c.oid = x.indexrelid WHERE x.indrelid ="
                                 " 'receiptd.message_inbox'::regclass AND (c.relname LIKE 'message_inbox_recent%' OR NOT x.indisvalid)")
        named = database.query("SELECT index_name, true FROM receiptd.inbox_recent")
        assert indexes == named, f"indexes {indexes}, boundaries {named}"


class Partitions:
    """Ids whose time goes back, an hour in a second. So new messages come into the default partition until a run makes one of
    their hours, and soon all messages of an hour are past their retention: most runs make a partition or drop one. One hour
    in ten has messages that stay for good, and its partition stays, too. `backdated`: one message in a hundred has an id of an hour that
    has just been; such an hour is read and comes back, or is gone already, and then the message stays in the default partition."""

    name = "partitions"
    inbox = RETENTION | {"partitions": "own", "ids": "uuidv7", "partition_span": "1h", "recent_rows": 0}
    steps = WALK | {"make": "%LIKE message_inbox%", "prove bounds": "%VALIDATE CONSTRAINT%", "detach": "%INHERIT inbox_detached%",
                    "hold": "%IN SHARE MODE%", "book": "%FROM ONLY%GROUP BY%", "drop": "%DROP TABLE%"}
    HOUR_SECONDS = 1.0

    def __init__(self, backdated):
        # With many messages in it, and no others, the default partition itself becomes that of their time.
        self.backdated, self.per_second = backdated, 300 if backdated else 700
        self.began, self.last_ms, self.hours, self.mixed = time.monotonic(), (int(time.time() * 1000) // HOUR - 48) * HOUR, {}, set()

    def make_rows(self, draw, count):
        hour = int((time.monotonic() - self.began) / self.HOUR_SECONDS)
        rows = {}
        for _ in range(count):
            row_hour = hour
            if self.backdated and draw.random() < 0.01:
                row_hour = max(0, hour - draw.randrange(1, 15))
                self.mixed.add(row_hour)
            names = NAMES if row_hour % 10 == 5 else NAMES[:-1]
            id = self.make_id(draw, row_hour)
            self.hours[id] = row_hour
            rows[id] = Row(draw.choice(ORGANISATION_NAMES), draw.choice(names))
        return rows

    def make_id(self, draw, hour):
        bits = (self.last_ms - hour * HOUR + draw.randrange(HOUR)) << 80 | 7 << 76 | draw.getrandbits(12) << 64 | 2 << 62 | draw.getrandbits(62)
        return str(uuid.UUID(int=bits))

    def is_backdated(self, id):
        """Whether it may have come into a partition that was leaving the inbox just then: until that is back, its receipts are late."""
        return self.hours.get(id) in self.mixed

    def check(self, database):
        """No partition is between two states, and the default one has no messages of a time before the first partition."""
        assert database.query("SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'receiptd.inbox_detached'::regclass") == []
        assert database.query("SELECT conrelid::regclass::text FROM pg_constraint WHERE conname = 'receiptd_bounds'") == []
