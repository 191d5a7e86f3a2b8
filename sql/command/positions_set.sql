-- Moves the position of a partition, after synchronous.sql and positions_lock.sql. Returns rows. Parameters: $1 text
-- topic, $2 int4 partition, $3 int8 offset, $4 text which lanes: all, below (those below the offset), missing (rows
-- that were deleted by hand). The raised generation fences off every batch that was made for the position before.
WITH
raised AS (
    UPDATE consumer_topic SET generation = generation + 1 WHERE topic = $1::text RETURNING generation, lanes
),
moved AS (
    INSERT INTO consumer_progress AS p (topic, partition, lane, next_offset, generation)
    SELECT $1::text, $2::int4, lane, $3::int8, r.generation
    FROM raised r, generate_series(0, r.lanes - 1) lane
    ORDER BY lane
    ON CONFLICT (topic, partition, lane) DO UPDATE
    SET generation = excluded.generation,
        (next_offset, anchor_offset, anchor_timestamp, anchor_crc) = (
            SELECT CASE WHEN s.stays THEN p.next_offset ELSE excluded.next_offset END,
                   CASE WHEN s.stays THEN p.anchor_offset END, CASE WHEN s.stays THEN p.anchor_timestamp END,
                   CASE WHEN s.stays THEN p.anchor_crc END
            FROM (SELECT $4::text = 'missing'
                         OR $4::text = 'below' AND p.next_offset >= excluded.next_offset AS stays) s)
    RETURNING 1
)
SELECT count(*) AS rows FROM moved;
