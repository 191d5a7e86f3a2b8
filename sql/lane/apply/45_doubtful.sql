-- Only where echoes are recognised by the row as well (../rules/dedup.sql): the receipts that may be echoes, with the
-- keys that the row has. The others need no look-up: a status only grows, so a receipt that names more than the row's
-- status cannot have been applied before. The UPDATE, which changes the row anyway, adds its key there
-- (11_set_counted.sql), so the row has one key for each status at most.
--
-- Why this is exact in every interleaving. Writers of a row come one after the other, and what the row says only grows.
-- * The first receipt with a key names more than the status that its UPDATE found: the row has the key from then on. A
--   copy finds a later version of the row,
--   which names as much, so it is doubtful and finds the key.
-- * It does not: then no copy does, since each finds a later version, or the same one. All are looked up in the store,
--   whose index decides.
-- * counted: of a changed message as the UPDATE found the row, after it had waited for others; of one that did not
--   change as the snapshot has it, whose row names
--   as much as the receipt; where the UPDATE had waited in vain (stale) as it is now, by a new snapshot. What a later
--   version has more are keys that a
--   committed transaction has counted.
, doubtful AS MATERIALIZED (
    SELECT i, k.id, k.campaign, k.old, ($10::int2[])[i] AS code, COALESCE(($22::int4[])[i], 0) AS flags, ($11::timestamptz[])[i] AS at,
           ($28::int8[])[i] AS event, ($30::text[])[f.n] AS gateway, ($31::text[])[f.n] AS reason, ($36::int2[])[i] AS bucket,
           k.counted
    FROM (SELECT u.n, u.id, u.campaign, u.old, u.counted FROM u WHERE u.counted IS NOT NULL
          UNION ALL
          SELECT r.n, r.id, r.campaign, r.status,
                 CASE WHEN r.stale THEN counted_keys(r.id, :'counted') ELSE (SELECT string_agg(m.:"counted", '') FROM message_inbox m WHERE m.message_id = r.id) END
          FROM r WHERE r.fate = 'known' AND (NOT r.stale OR message_still_there(r.id))) k,
         generate_series(($9::int4[])[k.n], ($9::int4[])[k.n + 1] - 1) i, LATERAL (SELECT ($29::int4[])[i] AS n) f
)
