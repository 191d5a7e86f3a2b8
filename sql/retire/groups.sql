-- Groups of messages (counters.groups) of campaigns whose messages are all gone, of at most $1 int4 campaigns: their
-- counters stay. A campaign with a change that is not folded yet waits for the next run. Returns rows (deleted).
WITH ended AS MATERIALIZED (
    SELECT r.campaign_id
    FROM campaign_retired r
    WHERE r.status IS NOT NULL AND EXISTS (SELECT FROM message_group g WHERE g.campaign_id = r.campaign_id)
      AND NOT EXISTS (SELECT FROM group_delta d WHERE r.campaign_id = ANY (d.campaign_id))
    GROUP BY r.campaign_id
    HAVING sum(r.messages) >= (SELECT sum(c.messages)
                               FROM campaign_count c
                               WHERE c.campaign_id = r.campaign_id AND c.status = 0)
    LIMIT $1::int4
),
gone AS (
    DELETE FROM message_group g WHERE g.campaign_id IN (SELECT e.campaign_id FROM ended e) RETURNING 1
)
SELECT count(*) AS rows FROM gone;
