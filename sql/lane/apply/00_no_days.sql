-- In place of apply_days (10_days.sql) while the inbox is not the newest partitions of a table in ranges of created_at:
-- it is not sent then.
SELECT NULL
