-- Stores the status of this instance, for receiptd serve. Parameters: $1 text its name, $2 text the document of
-- /statusz, $3 int4 partitions that it has, $4 int4 of how many (0: not known), $5 int8 by how many milliseconds it
-- is behind at most. Rows of instances that have said nothing for an hour go. It skips rows that another instance
-- deletes: two instances that come back after an hour would wait for each other.
WITH gone AS (
    DELETE FROM instance_status i
    WHERE i.name IN (SELECT o.name
                     FROM instance_status o
                     WHERE o.at < now() - interval '1 hour' AND o.name <> $1::text FOR UPDATE SKIP LOCKED)
)
INSERT INTO instance_status (name, at, document, partitions, all_partitions, behind_ms)
VALUES ($1::text, now(), $2::text::json, $3::int4, $4::int4, $5::int8)
ON CONFLICT (name) DO UPDATE SET at = excluded.at, document = excluded.document, partitions = excluded.partitions,
    all_partitions = excluded.all_partitions, behind_ms = excluded.behind_ms;
