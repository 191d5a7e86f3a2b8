-- With dedup.sql, before dimensions.sql: what echoes name is in cells and is taken off again.
, echo_cells AS (
    SELECT array_agg(v.campaign) AS campaign, array_agg(dimension_key(d.value_1)) AS key_1, array_agg(dimension_key(d.value_2)) AS key_2, array_agg(dimension_key(d.value_3)) AS key_3,
           array_agg(c.code) AS code, array_agg(0::int8) AS messages, array_agg(-1::int8) AS events
    FROM echoed v CROSS JOIN LATERAL receipt_codes(v.code, v.flags) c
    LEFT JOIN LATERAL (SELECT m.:"dimension_1"::text COLLATE "C" AS value_1, m.:"dimension_2"::text COLLATE "C" AS value_2, m.:"dimension_3"::text COLLATE "C" AS value_3
                       FROM message_inbox m WHERE m.message_id = v.id LIMIT 1) d ON true
    HAVING count(*) > 0
)
