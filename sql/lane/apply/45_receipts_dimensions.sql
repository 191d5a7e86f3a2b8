-- In place of 45_receipts.sql where dimensions are counted: with the message's values of them. Messages that did not change are looked up by their key.
, moved AS NOT MATERIALIZED (SELECT u.campaign, u.old, u.new, u.gained, u.dims FROM u),
receipts AS MATERIALIZED (
    SELECT i, k.id, k.campaign, k.old, ($10::int2[])[i] AS code, COALESCE(($22::int4[])[i], 0) AS flags, ($11::timestamptz[])[i] AS at,
           ($27::int8[])[i] AS event, ($29::text[])[f.n] AS gateway, ($30::text[])[f.n] AS channel, ($31::text[])[f.n] AS reason, k.dims
    FROM (SELECT u.n, u.id, u.campaign, u.old, u.dims FROM u
          UNION ALL
          SELECT r.n, r.id, r.campaign, r.status,
                 (SELECT ARRAY[m.:"dimension_1"::text COLLATE "C", m.:"dimension_2"::text COLLATE "C", m.:"dimension_3"::text COLLATE "C"]
                  FROM message_inbox m WHERE m.message_id = r.id)
          FROM r WHERE r.fate = 'known' AND (NOT r.stale OR message_still_there(r.id))) k,
         generate_series(($9::int4[])[k.n], ($9::int4[])[k.n + 1] - 1) i, LATERAL (SELECT ($28::int4[])[i] AS n) f
),
missed AS (
    SELECT ($29::text[])[($28::int4[])[x.event]] AS gateway, count(*) AS n FROM x WHERE x.fate IN ('parked', 'unknown_message') GROUP BY 1
),
subscribable AS (SELECT $25::int2[], $26::int4)
