-- With dedup.sql, before dimensions.sql: what echoes name is in valued and is taken off again.
, revalued AS MATERIALIZED (
    SELECT v.campaign, v.dims, v.code, v.messages, v.events FROM valued v
    UNION ALL
    SELECT j.campaign, (SELECT ARRAY[m.:"dimension_1"::text COLLATE "C", m.:"dimension_2"::text COLLATE "C", m.:"dimension_3"::text COLLATE "C"]
                        FROM message_inbox m WHERE m.message_id = j.id LIMIT 1), c.code, 0, -1
    FROM echoed j CROSS JOIN LATERAL receipt_codes(j.code, j.flags) c
)
