-- Rows of the stream become publications, oldest first, after fence.sql. $1 int4 shard, $2 int4 most rows, $3 int8 most
-- bytes of their ids and columns (one row comes even above it), $4 text topic. An outbox row stands for a whole row, so
-- a message costs nothing here. Returns examined ($2 if rows are left), claimed.
WITH
waiting AS MATERIALIZED (
    SELECT w.id, sum(w.bytes) OVER (ORDER BY w.id) - w.bytes AS before
    FROM (SELECT e.id, pg_column_size(e.ids) + COALESCE(pg_column_size(e.columns), 0) AS bytes
          FROM stream_event e
          WHERE NOT EXISTS (SELECT FROM fold_outbox o WHERE o.lane = $1::int4 AND o.event = e.id)
          ORDER BY e.id LIMIT $2::int4) w
),
numbered AS MATERIALIZED (
    SELECT w.id, l.next_seq + row_number() OVER (ORDER BY w.id) - 1 AS seq
    FROM waiting w CROSS JOIN (SELECT f.next_seq FROM fold_lane f WHERE f.lane = $1::int4) l
    WHERE w.before < $3::int8
),
made AS (
    INSERT INTO fold_outbox (lane, seq, rule, id, destination, payload, event)
    SELECT $1::int4, n.seq, '', '', $4::text, '{}', n.id FROM numbered n
),
lane AS (
    UPDATE fold_lane l SET next_seq = l.next_seq + c.n
    FROM (SELECT count(*) AS n FROM numbered) c
    WHERE l.lane = $1::int4 AND c.n > 0
)
SELECT CASE WHEN n.n < w.n THEN $2::int4 ELSE w.n END AS examined, n.n AS claimed
FROM (SELECT count(*) AS n FROM waiting) w CROSS JOIN (SELECT count(*) AS n FROM numbered) n;
