-- As apply/45_dimensions.sql: all messages are looked up by their key, since few are woken.
, valued AS MATERIALIZED (
    SELECT u.campaign, (SELECT ARRAY[m.:"dimension_1"::text COLLATE "C", m.:"dimension_2"::text COLLATE "C", m.:"dimension_3"::text COLLATE "C"]
                        FROM message_inbox m WHERE m.message_id = u.id LIMIT 1) AS dims, d.code, d.delta AS messages, 0 AS events
    FROM u JOIN steps d ON d.old = u.old AND d.new = u.new AND d.gained = u.gained
    UNION ALL
    SELECT v.campaign, (SELECT ARRAY[m.:"dimension_1"::text COLLATE "C", m.:"dimension_2"::text COLLATE "C", m.:"dimension_3"::text COLLATE "C"]
                        FROM message_inbox m WHERE m.message_id = v.message_id LIMIT 1), v.code, 0, 1
    FROM named v
    WHERE v.message_id IN (SELECT u.id FROM u) OR message_still_there(v.message_id)
)
