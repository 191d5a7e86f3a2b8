-- Where the series is counted: what 53_series.sql reads. No receipt has
-- come; a change counts in the hour of the expiry.
, minute_cells AS MATERIALIZED (
    SELECT u.campaign, floor(date_part('epoch', u.at) / 60)::int8 AS minute, d.code, sum(d.delta) AS messages, 0::int8 AS events
    FROM u JOIN steps d ON d.old = u.old AND d.new = u.new AND d.gained = u.gained
    GROUP BY 1, 2, 3
),
echoed AS (SELECT NULL::text AS campaign, NULL::timestamptz AS at, NULL::int2 AS code, NULL::int4 AS flags WHERE false)
