-- In place of audit_dimension/90_repair.sql behind audit_times.sql: adds the differences, after
-- audit_dimension_lock.sql. Where this run has booked messages that went without being booked ($2), counts that no
-- row has are theirs. They are booked as forgotten, and the histogram stays. Returns repaired: how many cells were
-- off.
, off AS MATERIALIZED (
    SELECT c.*, $2::bool AND c.counter > c.rows AS gone FROM cell c WHERE c.rows <> c.counter
),
delta AS (
    INSERT INTO counter_delta (kind, campaign_id, key, status, messages, events)
    SELECT CASE WHEN o.gone THEN 'forgotten_' ELSE '' END || :'kind',
           array_agg(o.campaign_id), array_agg(o.key), array_agg(o.status),
           array_agg(CASE WHEN o.gone THEN o.counter - o.rows ELSE o.rows - o.counter END), array_agg(0::int8)
    FROM off o
    GROUP BY o.gone
)
SELECT count(*) AS repaired FROM off
