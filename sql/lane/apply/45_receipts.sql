-- Only with rules (../rules): the receipts of known messages, one row each, before echoes are taken out; `old` is the
-- message's status before this batch. And how many receipts came for messages that are unknown. $26 and $27 belong to
-- 91_unsubscribed.sql, $32 and $33 to 31_delta_minutes.sql, $34 to 85_figures_ruled.sql, $38 and $39 to
-- 11_set_times.sql. They stand here so that they have a type in each form.
, receipts AS MATERIALIZED (
    SELECT i, k.id, k.campaign, k.old, ($10::int2[])[i] AS code, COALESCE(($22::int4[])[i], 0) AS flags, ($11::timestamptz[])[i] AS at,
           ($28::int8[])[i] AS event, ($30::text[])[f.n] AS gateway, ($31::text[])[f.n] AS reason, ($36::int2[])[i] AS bucket
    FROM (SELECT u.n, u.id, u.campaign, u.old FROM u
          UNION ALL SELECT r.n, r.id, r.campaign, r.status FROM r WHERE r.fate = 'known' AND (NOT r.stale OR message_still_there(r.id))) k,
         generate_series(($9::int4[])[k.n], ($9::int4[])[k.n + 1] - 1) i, LATERAL (SELECT ($29::int4[])[i] AS n) f
),
missed AS (
    SELECT ($30::text[])[($29::int4[])[x.event]] AS gateway, count(*) AS n FROM x WHERE x.fate IN ('parked', 'unknown_message') AND NOT x.known GROUP BY 1
),
parameters AS (SELECT $26::int2[], $27::int4, $32::int8[], $33::int8[], $34::int4[], $38::timestamptz[], $39::int4[])
