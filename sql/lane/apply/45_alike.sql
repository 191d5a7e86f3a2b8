-- Only with rules: what most of them read. Few messages differ in what their receipts name, so those of one message
-- ($35) are read for all that are of its kind. `old` is the message's status before this batch.
, gateway_receipts AS (
    SELECT ($30::text[])[($29::int4[])[i]] AS gateway, ($10::int2[])[i] AS code, k.old, k.n
    FROM kinds k, LATERAL (SELECT abs(($35::int4[])[k.kind]) AS n) f, generate_series(($9::int4[])[f.n], ($9::int4[])[f.n + 1] - 1) i
),
-- Messages that have another status now, each under the first gateway by name of its receipts.
gateway_messages AS (
    SELECT (SELECT min(($30::text[])[($29::int4[])[i]] COLLATE "C") FROM generate_series(($9::int4[])[f.n], ($9::int4[])[f.n + 1] - 1) i) AS gateway, k.old, k.new, k.n
    FROM kinds k, LATERAL (SELECT abs(($35::int4[])[k.kind]) AS n) f WHERE k.old <> k.new
),
reason_receipts AS (
    SELECT a.campaign, ($30::text[])[f.n] AS gateway, ($31::text[])[f.n] AS reason, ($10::int2[])[a.i] AS code, a.n
    FROM (SELECT k.campaign, k.n, generate_series(($9::int4[])[k.first], ($9::int4[])[k.first + 1] - 1) AS i
          FROM (SELECT k.campaign, -k.first AS first, count(*)::int4 AS n
                FROM (SELECT u.campaign, ($35::int4[])[u.kind] AS first FROM u
                      UNION ALL
                      SELECT r.campaign, ($35::int4[])[($25::int4[])[r.n]] FROM r WHERE r.fate = 'known' AND (NOT r.stale OR message_still_there(r.id))) k
                WHERE k.first < 0
                GROUP BY 1, 2) k) a,
         LATERAL (SELECT ($29::int4[])[a.i] AS n) f
    WHERE ($31::text[])[f.n] IS NOT NULL
),
-- Where all messages are known, each as one row, all receipts count, and their delays need not be read one by one. Each
-- message is in u or in r.
plain AS MATERIALIZED (
    SELECT (SELECT sum(k.n) FROM kinds k) = cardinality($1::text[])
           AND NOT EXISTS (SELECT FROM r WHERE r.fate <> 'known' OR (r.stale AND NOT message_still_there(r.id))) AS whole
),
delays AS (
    SELECT ($30::text[])[($37::int4[])[d]] AS gateway, ($37::int4[])[d + 1]::int2 AS bucket, ($37::int4[])[d + 2] AS n
    FROM generate_series(1, cardinality($37::int4[]), 3) d
    WHERE (SELECT p.whole FROM plain p)
    UNION ALL
    SELECT c.gateway, c.bucket, 1 FROM receipts c WHERE NOT (SELECT p.whole FROM plain p)
)
