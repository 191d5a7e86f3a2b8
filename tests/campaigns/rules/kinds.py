"""Which faults meet the rules: kinds of the faults campaign that disturb a batch or its way, and one that only matters where receipts are remembered."""

import random
import re
import subprocess

from faults import kinds
from faults.kinds import Kind
from faults.servers import as_service
from support.wait import wait_for

# Not among them: what moves the wall clock (times are what rules read), adds records or refuses rows (the oracle knows neither), or is not about batches.
NAMES = """
kill-9 kill-9-of-all sigterm zombie zombies half-a-batch members-come-and-go
backends-terminated backends-terminated-on-sight backend-killed crashed crashed-twice postmaster-killed restarted promoted old-primary-comes-back restored
cancelled locked rows-held server-frozen drift revoked read-only disk-full maintenance
postgres-resets postgres-cut-up postgres-cut-down postgres-half-open postgres-black-hole one-cut-off
broker-killed broker-stopped broker-frozen kafka-resets kafka-cut kafka-black-hole one-cut-off-from-kafka
broker-and-backends crash-and-kills promotion-and-zombie restore-and-resets restless both-crash
""".split()

# Tables of rules: what remembers receipts, parts, ranges and groups. Nothing else depends on them.
STORES = {"receipt_counted": "receipt_counted*", "message_part": "message_part", "range_receipt": "range_receipt", "message_group": "message_group"}

RENAMED = "ALTER TABLE receiptd.{0} RENAME TO away", "ALTER TABLE receiptd.away RENAME TO {0}"
DRIFTS = (
    *(tuple(text.format(table) for text in RENAMED) for table in (*STORES, "counter_delta", "group_delta")),
)


def store_dropped(cycle):
    """An instance names the table. None runs when the table is put back as a backup has it: what came meanwhile was not applied without it."""
    lab, store = cycle.lab, cycle.random.choice(list(STORES))
    cycle.wait_for_receipts()
    logs = {seat.name: len(seat.process.log()) for seat in cycle.era.occupied()}
    dump = subprocess.run(as_service(lab.primary.bin / "pg_dump", "--schema-only", "-t", f"receiptd.{STORES[store]}", cycle.era.database.dsn),
                          check=True, capture_output=True, text=True).stdout
    with cycle.era.database.connect() as operator:
        with operator.transaction():
            operator.execute(f"LOCK TABLE receiptd.{store} IN ACCESS EXCLUSIVE MODE")
            operator.execute(f"CREATE TABLE public.kept AS TABLE receiptd.{store}")
            operator.execute(f"DROP TABLE receiptd.{store}")
        wait_for(lambda: any(f'relation \\"{store}' in seat.process.log()[logs[seat.name]:] for seat in cycle.era.occupied()), 15,
                 f"an instance says that there is no {store}", details=cycle.era.group_log)
        cycle.pause(0, 1)
        here = cycle.era.occupied()
        for seat in here:
            seat.kill()
        with operator.transaction():
            operator.execute(re.sub(r"^\\.*", "", dump, flags=re.MULTILINE))  # without psql's own commands
            operator.execute(f"INSERT INTO receiptd.{store} SELECT * FROM public.kept")
            operator.execute("DROP TABLE public.kept")
    for seat in here:
        seat.start()


def load(disk):
    """{name: Kind}, without those that this machine does not allow."""
    known = kinds.load()
    chosen = [*map(known.__getitem__, NAMES), Kind("store-dropped", ("F20",), "a table of a rule is dropped by hand, and put back", 1, 0, None, store_dropped)]
    return {kind.name: kind for kind in chosen if kind.needs is None or (kind.needs == "disk" and disk)}


def draw(seed, names, turn):
    """Each name once before any comes again."""
    names = sorted(names)
    random.Random(f"{seed} kinds {turn // len(names)}").shuffle(names)
    return names[turn % len(names)]
