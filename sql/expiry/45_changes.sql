-- Where the series is counted: what lane/rules/series.sql reads, as lane/wake/45_alike.sql gives it. No receipt has come; a change counts in the hour of the expiry.
, minute_changes AS (
    SELECT u.campaign, floor(date_part('epoch', u.at) / 60)::int8 AS minute, u.old, u.new, u.gained, 1 AS n FROM u
),
minute_receipts AS (SELECT NULL::text AS campaign, NULL::int8 AS minute, NULL::int2 AS code, NULL::int4 AS flags, NULL::int4 AS n WHERE false),
echoed AS (SELECT NULL::text AS campaign, NULL::timestamptz AS at, NULL::int2 AS code, NULL::int4 AS flags WHERE false)
