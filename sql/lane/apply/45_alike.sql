-- Only with rules: what most of them read. Few messages differ in what their receipts name, so the receipts of those that are alike ($31, $32) are read
-- once, those of the first of them, for all `n`. Whether a change counts in one minute or another follows from what the receipts name, too.
, minutes_alike AS MATERIALIZED (
    SELECT k.campaign, k.old, k.new, k.gained, k.first, count(*)::int4 AS n
    FROM (SELECT u.campaign, u.old, u.new, u.gained, ($31::int4[])[u.n] AS first FROM u
          UNION ALL
          SELECT r.campaign, r.status, r.status, 0, ($31::int4[])[r.n] FROM r WHERE r.fate = 'known' AND (NOT r.stale OR message_still_there(r.id))) k
    GROUP BY 1, 2, 3, 4, 5
),
minute_changes AS (
    SELECT a.campaign, floor(date_part('epoch', ($4::timestamptz[])[a.first]) / 60)::int8 AS minute, a.old, a.new, a.gained, a.n FROM minutes_alike a
),
minute_receipts AS (
    SELECT a.campaign, floor(date_part('epoch', ($11::timestamptz[])[i]) / 60)::int8 AS minute, ($10::int2[])[i] AS code, COALESCE(($22::int4[])[i], 0) AS flags, a.n
    FROM minutes_alike a, generate_series(($9::int4[])[a.first], ($9::int4[])[a.first + 1] - 1) i
),
-- `old` is the message's status before this batch.
gateway_receipts AS (
    SELECT ($29::text[])[($28::int4[])[i]] AS gateway, ($10::int2[])[i] AS code, a.old, a.n
    FROM (SELECT k.old, k.first, count(*)::int4 AS n
          FROM (SELECT u.old, abs(($32::int4[])[u.n]) AS first FROM u
                UNION ALL
                SELECT r.status, abs(($32::int4[])[r.n]) FROM r WHERE r.fate = 'known' AND (NOT r.stale OR message_still_there(r.id))) k
          GROUP BY 1, 2) a,
         generate_series(($9::int4[])[a.first], ($9::int4[])[a.first + 1] - 1) i
),
reason_receipts AS (
    SELECT a.campaign, ($29::text[])[f.n] AS gateway, ($30::text[])[f.n] AS reason, ($10::int2[])[i] AS code, a.n
    FROM (SELECT k.campaign, -k.first AS first, count(*)::int4 AS n
          FROM (SELECT u.campaign, ($32::int4[])[u.n] AS first FROM u
                UNION ALL
                SELECT r.campaign, ($32::int4[])[r.n] FROM r WHERE r.fate = 'known' AND (NOT r.stale OR message_still_there(r.id))) k
          WHERE k.first < 0
          GROUP BY 1, 2) a,
         generate_series(($9::int4[])[a.first], ($9::int4[])[a.first + 1] - 1) i, LATERAL (SELECT ($28::int4[])[i] AS n) f
    WHERE ($30::text[])[f.n] IS NOT NULL
),
-- The times of receipts differ. Where all messages are known, each as one row, they need not be found by their messages.
plain AS MATERIALIZED (
    SELECT count(*) = cardinality($1::text[]) AND count(DISTINCT k.n) = cardinality($1::text[]) AS whole
    FROM (SELECT u.n FROM u UNION ALL SELECT r.n FROM r WHERE r.fate = 'known') k
),
delays AS (
    SELECT ($29::text[])[d.facet] AS gateway, d.bucket, d.n
    FROM (SELECT e.facet, delay_bucket(now() - e.at) AS bucket, count(*)::int4 AS n FROM unnest($28::int4[], $11::timestamptz[]) AS e (facet, at)
          WHERE (SELECT p.whole FROM plain p) GROUP BY 1, 2) d
    UNION ALL
    SELECT c.gateway, delay_bucket(now() - c.at), 1 FROM receipts c WHERE NOT (SELECT p.whole FROM plain p)
)
