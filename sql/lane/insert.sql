-- Policy `unknown: insert`, right after the batch: bare rows for the messages that the batch has just parked, from the first
-- of their receipts that names the organisation or the campaign. The parked receipts are applied by the next wake, which
-- finds the rows: so there is one way in which a receipt is counted late, not two.
-- $1 text[] topic, $2 int4[] partition, $3 int8[] offset of the batch's records; $4 int4 lane. Returns rows (inserted).
WITH
seen AS (
    SELECT p.message_id, p.topic, p.partition, p."offset", p.index, j.event
    FROM unnest($1::text[], $2::int4[], $3::int8[]) AS w (topic, partition, at_offset)
    JOIN parked_event p ON p.topic = w.topic AND p.partition = w.partition AND p."offset" = w.at_offset
    CROSS JOIN LATERAL (SELECT convert_from(p.payload, 'UTF8')::json AS event OFFSET 0) j
    WHERE p.lane = $4::int4
),
bare AS (
    SELECT s.message_id,
           (array_agg(o.value ORDER BY s.topic, s.partition, s."offset", s.index)
               FILTER (WHERE o.value IS NOT NULL))[1] AS org_id,
           (array_agg(c.value ORDER BY s.topic, s.partition, s."offset", s.index)
               FILTER (WHERE c.value IS NOT NULL))[1] AS campaign_id
    FROM seen s
    CROSS JOIN LATERAL (SELECT CASE WHEN json_typeof(s.event -> 'org_id') IN ('string', 'number')
                                    THEN s.event ->> 'org_id' END AS value) o
    CROSS JOIN LATERAL (SELECT CASE WHEN json_typeof(s.event -> 'campaign_id') IN ('string', 'number')
                                    THEN s.event ->> 'campaign_id' END AS value) c
    GROUP BY s.message_id
),
-- Sorted by id: the order in which everybody locks messages.
made AS (
    INSERT INTO message_inbox (message_id, org_id, campaign_id)
    SELECT b.message_id, b.org_id, b.campaign_id FROM bare b ORDER BY b.message_id
    ON CONFLICT DO NOTHING
    RETURNING 1
)
SELECT count(*) AS rows FROM made;
