"""The inbox can be a table that the platform has already, under its own names."""

from oracle.compare import Inbox

TABLE = """
    CREATE SCHEMA platform;
    CREATE TABLE platform."Outbound" (
        "Id" text PRIMARY KEY, account text, wave text, body text DEFAULT 'hello', state smallint NOT NULL DEFAULT 0,
        bits integer NOT NULL DEFAULT 0, created timestamptz DEFAULT now()
    )
"""
MAPPING = {
    "table": "platform.Outbound",
    "columns": {"message_id": "Id", "org_id": "account", "campaign_id": "wave", "status": "state", "flags": "bits"},
}
INBOX = Inbox('platform."Outbound"', '"Id"', "account", "wave", "state", "bits")


def test_a_mapped_table_is_exact(create_world):
    world = create_world(30_000, seed=61, migrate=False, inbox=MAPPING)
    world.inbox = INBOX
    world.database.execute(TABLE)
    world.installation.migrate()
    world.insert(world.stream.early)
    process = world.installation.start()
    feeder = world.feed()
    world.insert(world.stream.late)
    feeder.join()
    world.finish(process)
    process.stop()
    assert world.database.value('SELECT count(*) FROM platform."Outbound" WHERE body <> %s', "hello") == 0
    kind = "SELECT relkind FROM pg_class WHERE oid = 'receiptd.message_inbox'::regclass"
    assert world.database.value(kind) == "v", "our name for it is a view; there is no second table"


def test_rows_that_were_there_before_count_after_a_repair(create_world):
    world = create_world(2_000, seed=62, migrate=False, inbox=MAPPING)
    world.inbox = INBOX
    world.database.execute(TABLE)
    world.insert(world.stream.platform)
    world.installation.migrate()
    assert world.installation.command("audit", check=False).returncode == 1
    world.installation.command("audit", "--repair")
    world.audit()
    world.produce()
    process = world.installation.start()
    world.finish(process)
    process.stop()
