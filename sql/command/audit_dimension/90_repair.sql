-- Adds the differences of those campaigns that have any, after audit_dimension_lock.sql: repaired, how many cells were
-- off.
, delta AS (
    INSERT INTO counter_delta (kind, campaign_id, key, status, messages, events)
    SELECT :'kind', array_agg(c.campaign_id), array_agg(c.key),
           array_agg(c.status), array_agg(c.rows - c.counter), array_agg(0::int8)
    FROM cell c
    WHERE c.rows <> c.counter AND c.campaign_id IN (SELECT d.campaign_id FROM compared d WHERE d.rows <> d.counter)
    HAVING count(*) > 0
)
SELECT count(*) AS repaired FROM compared c WHERE c.rows <> c.counter
