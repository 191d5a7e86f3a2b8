-- As apply/45_alike.sql: one by one, since few are woken.
, minute_changes AS (
    SELECT u.campaign, floor(date_part('epoch', u.at) / 60)::int8 AS minute, u.old, u.new, u.gained, 1 AS n FROM u
),
minute_receipts AS (SELECT c.campaign, floor(date_part('epoch', c.at) / 60)::int8 AS minute, c.code, c.flags, 1 AS n FROM receipts c),
gateway_receipts AS (SELECT c.gateway, c.code, c.old, 1 AS n FROM receipts c),
reason_receipts AS (SELECT c.campaign, c.gateway, c.reason, c.code, 1 AS n FROM receipts c WHERE c.reason IS NOT NULL),
delays AS (SELECT c.gateway, delay_bucket(now() - c.at) AS bucket, 1 AS n FROM receipts c)
