-- Where dimensions are counted: what 51_dimensions.sql reads. No
-- receipt has come.
, cells AS MATERIALIZED (
    SELECT array_agg(v.campaign) AS campaign, array_agg(dimension_key(d.value_1)) AS key_1, array_agg(dimension_key(d.value_2)) AS key_2, array_agg(dimension_key(d.value_3)) AS key_3,
           array_agg(v.code) AS code, array_agg(v.messages::int8) AS messages, array_agg(v.events::int8) AS events
    FROM (SELECT u.campaign, u.id, d.code, d.delta AS messages, 0 AS events FROM u JOIN steps d ON d.old = u.old AND d.new = u.new AND d.gained = u.gained) v
    LEFT JOIN LATERAL (SELECT m.:"dimension_1"::text COLLATE "C" AS value_1, m.:"dimension_2"::text COLLATE "C" AS value_2, m.:"dimension_3"::text COLLATE "C" AS value_3
                       FROM message_inbox m WHERE m.message_id = v.id LIMIT 1) d ON true
    HAVING count(*) > 0
)
