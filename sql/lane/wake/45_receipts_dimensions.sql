-- In place of 45_receipts.sql where dimensions are counted, as apply/45_receipts_dimensions.sql: all messages are looked up by their key, since few are woken.
, moved AS NOT MATERIALIZED (
    SELECT u.campaign, u.old, u.new, u.gained,
           (SELECT ARRAY[m.:"dimension_1"::text COLLATE "C", m.:"dimension_2"::text COLLATE "C", m.:"dimension_3"::text COLLATE "C"]
            FROM message_inbox m WHERE m.message_id = u.id) AS dims
    FROM u
),
receipts AS MATERIALIZED (
    SELECT row_number() OVER () AS i, t.message_id AS id, t.campaign, (SELECT m.status FROM message_inbox m WHERE m.message_id = t.message_id) AS old,
           t.status AS code, t.flags, t.at, t.event_key AS event, t.gateway, t.channel, t.reason_class AS reason,
           (SELECT ARRAY[m.:"dimension_1"::text COLLATE "C", m.:"dimension_2"::text COLLATE "C", m.:"dimension_3"::text COLLATE "C"]
            FROM message_inbox m WHERE m.message_id = t.message_id) AS dims
    FROM taken t
    WHERE t.message_id IN (SELECT u.id FROM u) OR message_still_there(t.message_id)
),
missed AS (SELECT NULL::text AS gateway, 0::int8 AS n WHERE false)
