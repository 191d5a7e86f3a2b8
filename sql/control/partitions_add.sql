-- Rows for new partitions and the raised number, together; after synchronous.sql. $1 text topic, $2 int4 number of
-- partitions that have rows, $3 int8[] start offsets of the partitions from there on. Returns added (bool): false if
-- another instance was first (its lock on the topic's row was waited for); read the pins again then.
WITH
raised AS (
    UPDATE consumer_topic t
    SET partitions = $2::int4 + cardinality($3::int8[])
    WHERE t.topic = $1::text AND t.partitions = $2::int4
    RETURNING t.topic, t.lanes, t.generation
),
made AS (
    INSERT INTO consumer_progress (topic, partition, lane, next_offset, generation)
    SELECT r.topic, $2::int4 + o.n::int4 - 1, lane, o.start, r.generation
    FROM raised r, unnest($3::int8[]) WITH ORDINALITY AS o (start, n), generate_series(0, r.lanes - 1) lane
    ORDER BY o.n, lane
)
SELECT count(*) > 0 AS added FROM raised;
