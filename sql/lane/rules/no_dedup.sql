-- In place of dedup.sql where echoes are not recognised: every receipt counts.
, echoed AS (
    SELECT NULL::text AS id, NULL::text AS campaign, NULL::int2 AS old, NULL::int2 AS code, NULL::int4 AS flags, NULL::timestamptz AS at, NULL::text AS gateway, NULL::text AS reason,
           NULL::int2 AS bucket
    WHERE false
),
echoes AS (SELECT NULL::text AS campaign, NULL::text AS gateway, NULL::int2 AS code, 0::int8 AS n WHERE false)
