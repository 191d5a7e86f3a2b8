-- Adds what is booked for one kind of message of a campaign together, of at most $1 int4 campaigns. One statement: a
-- reader sees the rows or their sum. Two at once skip each other's rows. Returns rows (that went into sums).
WITH gone AS (
    DELETE FROM campaign_retired r
    WHERE r.ctid = ANY (ARRAY(
        SELECT t.ctid
        FROM campaign_retired t
        WHERE t.campaign_id = ANY (ARRAY(
            SELECT c.campaign_id FROM campaign_retired c GROUP BY c.campaign_id
            HAVING count(*) > count(DISTINCT (c.status, c.flags)) LIMIT $1::int4))
        FOR UPDATE SKIP LOCKED))
    RETURNING r.campaign_id, r.status, r.flags, r.messages
),
added AS (
    INSERT INTO campaign_retired (campaign_id, status, flags, messages)
    SELECT g.campaign_id, g.status, g.flags, sum(g.messages) FROM gone g GROUP BY g.campaign_id, g.status, g.flags
)
SELECT count(*) AS rows FROM gone;
