-- Where dimensions are counted: what lane/rules/dimensions.sql reads, as lane/wake/45_receipts_dimensions.sql gives it. No receipt has come.
, moved AS NOT MATERIALIZED (
    SELECT u.campaign, u.old, u.new, u.gained,
           (SELECT ARRAY[m.:"dimension_1"::text COLLATE "C", m.:"dimension_2"::text COLLATE "C", m.:"dimension_3"::text COLLATE "C"]
            FROM message_inbox m WHERE m.message_id = u.id) AS dims
    FROM u
),
counted AS (SELECT NULL::text AS campaign, NULL::text[] AS dims, NULL::int2 AS code, 0 AS flags WHERE false)
