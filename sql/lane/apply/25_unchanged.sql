-- Messages that did not change were up to date or do not exist: this reads them in the same snapshot, so a receipt is
-- either counted or parked, never both and never neither. NOT IN is a hashed subplan; a join of two CTEs would be a
-- nested loop over both, because a generic plan takes every array for ten elements. Messages that changed need no
-- lookup: RETURNING has their campaign; where all did, the arrays are not even unpacked again. stale: the UPDATE waited
-- for another transaction, and that one brought the message up to date or deleted it. With first times, their condition
-- (14_or_earlier.sql) and 26_unchanged.sql follow.
, r AS MATERIALIZED (
    SELECT e.n, e.id, e.signature, m.status, COALESCE(m.campaign_id, '') AS campaign, m.org_id AS org,
           receipt_fate(m.message_id IS NOT NULL, m.org_id, e.org, $21::text) AS fate, (e.top > m.status OR (e.mask & ~m.flags) <> 0
