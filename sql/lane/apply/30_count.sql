same AS MATERIALIZED (
    SELECT r.campaign, r.status AS old, r.status AS new, 0 AS gained, r.signature, count(*)::int4 AS n
    FROM r WHERE r.fate = 'known' AND (NOT r.stale OR message_still_there(r.id)) GROUP BY r.campaign, r.status, r.signature
),
-- All groups of known messages, changed or not.
known AS NOT MATERIALIZED (SELECT c.campaign, c.old, c.new, c.gained, c.signature, c.n FROM changed c UNION ALL SELECT * FROM same),
-- Few messages differ in more than their campaign: the effect of a kind of transition on the counters is read once.
-- Receipts of one kind name the same, so any of its signatures says what.
kinds AS MATERIALIZED (
    SELECT k.old, k.new, k.gained, k.kind, min(k.signature) AS signature, count(*)::int4 AS n
    FROM (SELECT u.old, u.new, u.gained, u.kind, u.signature FROM u
          UNION ALL
          SELECT r.status, r.status, 0, ($25::int4[])[r.n], r.signature FROM r WHERE r.fate = 'known' AND (NOT r.stale OR message_still_there(r.id))) k
    GROUP BY k.old, k.new, k.gained, k.kind
),
steps AS MATERIALIZED (
    SELECT g.old, g.new, g.gained, d.code, d.delta
    FROM (SELECT DISTINCT k.old, k.new, k.gained FROM kinds k) g CROSS JOIN LATERAL transition_codes(g.old, g.new, g.gained) d
),
named AS MATERIALIZED (
    SELECT s.n::int4 AS signature, i AS entry, ($7::int2[])[i] AS code, ($8::int4[])[i] AS count
    FROM unnest($6::int4[]) WITH ORDINALITY AS s (first, n), generate_series(s.first, ($6::int4[])[s.n + 1] - 1) AS i
)
