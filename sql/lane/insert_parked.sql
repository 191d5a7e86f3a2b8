-- Policy `unknown: insert`: inserts bare rows for the messages of parked receipts that have waited long enough for an
-- alias, or for the platform's row. Returns rows (inserted). These receipts came under the gateway's id, were led to
-- another message by an alias, or were redriven. The next wake applies them. It comes after a fence with new =
-- expected, and after address.sql. Parameters: $1 text[] topics, $2 int4[] partitions, $3 int4 lane, $4 int4 most
-- rows, $5 int8 how long in ms.
WITH
picked AS (
    SELECT p.message_id, p.org_id, p.campaign_id, p.topic, p.partition, p."offset" AS at_offset, p.index
    FROM unnest($1::text[], $2::int4[]) AS w (topic, partition)
    JOIN parked_event p ON p.lane = $3::int4 AND p.topic = w.topic AND p.partition = w.partition
    CROSS JOIN LATERAL (SELECT (SELECT true FROM message_inbox m WHERE m.message_id = p.message_id LIMIT 1) AS known
                        OFFSET 0) c
    WHERE p.parked_at < now() - $5::int8 * interval '1 millisecond' AND c.known IS NULL
      AND (SELECT true FROM inbox_detached d WHERE d.message_id = p.message_id) IS NULL
      AND (SELECT true FROM retired_message r
           WHERE r.hash IN (hashtextextended(p.message_id COLLATE "C", 0), erased_alias_hash(p.account, p.gateway_id))
           LIMIT 1) IS NULL
      AND COALESCE(alias_target(p.account, COALESCE(p.gateway_id, p.message_id)) = p.message_id, true)
    LIMIT $4::int4
),
-- As in insert: the first that names an organisation, the first that names a campaign; sorted as all transactions lock.
made AS (
    INSERT INTO message_inbox (message_id, org_id, campaign_id)
    SELECT k.message_id,
           (array_agg(k.org_id ORDER BY k.topic, k.partition, k.at_offset, k.index)
               FILTER (WHERE k.org_id IS NOT NULL))[1],
           (array_agg(k.campaign_id ORDER BY k.topic, k.partition, k.at_offset, k.index)
               FILTER (WHERE k.campaign_id IS NOT NULL))[1]
    FROM picked k
    GROUP BY k.message_id
    ORDER BY k.message_id COLLATE "C"
    ON CONFLICT DO NOTHING
    RETURNING 1
)
SELECT count(*) AS rows FROM made;
