-- Where dimensions are counted: what lane/rules/dimensions.sql reads, as lane/wake/45_dimensions.sql gives it. No receipt has come.
, valued AS MATERIALIZED (
    SELECT u.campaign, (SELECT ARRAY[m.:"dimension_1"::text COLLATE "C", m.:"dimension_2"::text COLLATE "C", m.:"dimension_3"::text COLLATE "C"]
                        FROM message_inbox m WHERE m.message_id = u.id LIMIT 1) AS dims, d.code, d.delta AS messages, 0 AS events
    FROM u JOIN steps d ON d.old = u.old AND d.new = u.new AND d.gained = u.gained
)
