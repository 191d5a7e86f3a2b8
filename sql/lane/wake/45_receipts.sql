-- Only with rules: as apply/45_receipts.sql. A parked receipt was counted as one of an unknown message when it was
-- parked.
, receipts AS MATERIALIZED (
    SELECT row_number() OVER () AS i, t.message_id AS id, t.campaign, (SELECT m.status FROM message_inbox m WHERE m.message_id = t.message_id LIMIT 1) AS old,
           t.status AS code, t.flags, t.at, t.event_key AS event, t.gateway, t.reason_class AS reason,
           delay_bucket(now() - t.at) AS bucket
    FROM taken t
    WHERE t.message_id IN (SELECT u.id FROM u) OR message_still_there(t.message_id)
),
missed AS (SELECT NULL::text AS gateway, 0::int8 AS n WHERE false)
