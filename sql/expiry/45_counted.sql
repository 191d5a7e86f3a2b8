-- Where the series is counted: what lane/rules/series.sql reads of receipts. None has come; a change counts in the hour of the expiry.
, counted AS (SELECT NULL::text AS campaign, NULL::timestamptz AS at, NULL::int2 AS code, NULL::int4 AS flags WHERE false)
