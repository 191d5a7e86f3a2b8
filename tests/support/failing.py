"""Statements that fail now and then, as when a lock is not granted in time: their senders must go on."""

from contextlib import contextmanager

FUNCTION = """
CREATE FUNCTION receiptd.fail_at_random() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF random() < TG_ARGV[0]::float8 THEN
        RAISE EXCEPTION 'refused by the test: % of %', TG_OP, TG_TABLE_NAME USING ERRCODE = 'lock_not_available';
    END IF;
    RETURN NULL;
END $$"""


def drop(database, tables):
    for table in tables:
        database.execute(f"DROP TRIGGER IF EXISTS fail_at_random ON receiptd.{table}")
    database.execute("DROP FUNCTION IF EXISTS receiptd.fail_at_random")


@contextmanager
def failing(database, tables, share, writes="INSERT OR UPDATE OR DELETE", each="STATEMENT"):
    """Such writes to these tables of receiptd fail with this probability while the block runs, whole transactions with them. With each="ROW" only writes
    that find a row."""
    database.execute(FUNCTION)
    for table in tables:
        database.execute(f"CREATE TRIGGER fail_at_random AFTER {writes} ON receiptd.{table}"
                         f" FOR EACH {each} EXECUTE FUNCTION receiptd.fail_at_random({share})")
    try:
        yield
    finally:
        drop(database, tables)
