-- The batch: one statement, one snapshot. Applies the folded receipts, decides once for each message whether it is known,
-- parks what is not, and appends one row of counters.
--
-- Messages, sorted by id, one entry each: $1 text[] ids, $2 int2[] highest status, $3 int4[] flags, $4 timestamptz[] event
-- time of that status, $5 int4[] signature (1-based): which statuses the message's receipts name, how often each.
-- Signatures: $6 int4[] first entry of each (1-based, one more than there are), $7 int2[] codes, $8 int4[] counts.
-- Raw events, grouped by message: $9 int4[] first event of each message (1-based, one more), $10 int2[] code,
-- $11 timestamptz[] time, $12 int4[] record (1-based), $13 int4[] index in the record, $14 int4[] first payload byte
-- (1-based, one more), $15 bytea all payloads. Only unknown messages need them: without them (all but $9 and $12 are empty)
-- the batch is rolled back with RD004 if there are some.
-- Records: $16 text[] topic, $17 int4[] partition, $18 int8[] offset, $19 text[] traceparent (NULL: none).
-- $20 int4 lane, $21 text what to do with unknown messages: dead-letter; anything else parks them.
-- $22 int4[] flags that raw events name beside their status, as a mask; empty: none does. $23 text[] gateway of each signature.
--
-- Returns one row: messages_known, messages_changed, events_parked, events_dead, events_counted, and the transitions over all
-- campaigns: old int2[], new int2[], n int8[]. Then, for figures, what became of the messages by what their receipts name:
-- was int2[], is int2[], gained int4[], signature int4[], messages int8[]; and of the receipts of unknown messages: aside int4[]
-- (signature), aside_events int8[]. Of at most 1 000 kinds each, the largest, since the answer must stay small.
--
-- Lines that begin with "--+" are part of the statement only where something wants to hear of transitions (folds, actions): they
-- bring the columns of `u` and `changed` that a block needs, and the blocks themselves (apply_*.sql, wake.sql takes the same
-- ones). Without a block the text has no such line, so what nobody asked for costs nothing.
--
-- A line that begins with "--?" is part only of the form that is without the block of pipelines while there are some: apply_quiet, for
-- batches of which none of them hears. It raises RD003 where one does. $24 int2[] statuses of $2, each once, $25 int4 all flags of $3.
WITH
--+ -- The records' traceparents in one piece, to be reached by number: an element of an array of texts is walked to.
--+ links AS MATERIALIZED (
--+     SELECT convert_to(string_agg(rpad(COALESCE(w.link, ''), 55), '' ORDER BY w.n), 'UTF8') AS texts
--+     FROM unnest($19::text[]) WITH ORDINALITY AS w (link, n)
--+     HAVING count(w.link) > 0
--+ ),
-- The old values are written by the statement itself (both, on every update) and come back by RETURNING: taken from a join
-- they would be those of the snapshot, and wrong exactly when another writer was waited for. The target is found by its
-- key, never by ctid: after such a wait the row is elsewhere. Generic plan: nested loop in the order of the array, which is
-- the order in which everybody locks.
u AS (
    UPDATE message_inbox m
    SET prev_status = m.status,
        prev_flags = m.flags,
        status = GREATEST(m.status, e.top),
        flags = m.flags | e.mask,
        status_at = CASE WHEN e.top > m.status THEN e.at ELSE m.status_at END,
        updated_at = now()
    FROM unnest($1::text[], $2::int2[], $3::int4[], $4::timestamptz[], $5::int4[])
         WITH ORDINALITY AS e (id, top, mask, at, signature, n)
    WHERE m.message_id = e.id AND (e.top > m.status OR (e.mask & ~m.flags) <> 0)
    RETURNING e.n, e.signature, COALESCE(m.campaign_id, '') AS campaign, m.prev_status AS old, m.status AS new,
              m.flags & ~m.prev_flags AS gained
              --+ , m.message_id AS id, COALESCE(m.org_id, '') AS org, m.status_at AS at,
              --+ CASE WHEN (SELECT l.texts FROM links l) IS NOT NULL
              --+      THEN NULLIF(rtrim(convert_from(substr((SELECT l.texts FROM links l),
              --+                                            55 * (($12::int4[])[($9::int4[])[e.n]] - 1) + 1, 55), 'UTF8')), '')
              --+ END AS link
),
-- What was not changed was up to date or does not exist: looked up in the same snapshot, so a receipt is either counted or
-- parked, never both and never neither. NOT IN is a hashed subplan; a join of two CTEs would be a nested loop over both,
-- because a generic plan takes every array for ten elements. Messages that changed need no second look: RETURNING has
-- their campaign; where all did, the arrays are not even unpacked again.
r AS MATERIALIZED (
    SELECT e.n, e.id, e.signature, m.message_id IS NOT NULL AS known, m.status, COALESCE(m.campaign_id, '') AS campaign
    FROM unnest($1::text[], $5::int4[]) WITH ORDINALITY AS e (id, signature, n)
    LEFT JOIN message_inbox m ON m.message_id = e.id
    WHERE (SELECT count(*) FROM u) < cardinality($1::text[]) AND e.n NOT IN (SELECT u.n FROM u)
),
-- From here on everything is per group: messages of a batch share campaigns, transitions and signatures.
changed AS MATERIALIZED (
    SELECT u.campaign, u.old, u.new, u.gained, u.signature, count(*)::int4 AS n
           --+ , u.org, min(u.link COLLATE "C") AS link
    FROM u
    GROUP BY u.campaign, u.old, u.new, u.gained, u.signature
             --+ , u.org
),
same AS MATERIALIZED (
    SELECT r.campaign, r.status, r.signature, count(*)::int4 AS n
    FROM r
    WHERE r.known
    GROUP BY r.campaign, r.status, r.signature
),
-- Few kinds of groups differ in more than their campaign: what a kind of transition does to the counters is looked up once.
kinds AS MATERIALIZED (
    SELECT g.old, g.new, g.gained, g.signature, sum(g.n) AS n
    FROM (SELECT c.old, c.new, c.gained, c.signature, c.n FROM changed c
          UNION ALL
          SELECT s.status, s.status, 0, s.signature, s.n FROM same s) g
    GROUP BY g.old, g.new, g.gained, g.signature
),
steps AS MATERIALIZED (
    SELECT d.old, d.new, d.code, d.delta
    FROM (SELECT k.old, k.new FROM kinds k GROUP BY k.old, k.new) g JOIN path_delta d ON d.old = g.old AND d.new = g.new
),
named AS MATERIALIZED (
    SELECT s.n::int4 AS signature, ($7::int2[])[i] AS code, ($8::int4[])[i] AS count
    FROM unnest($6::int4[]) WITH ORDINALITY AS s (first, n), generate_series(s.first, ($6::int4[])[s.n + 1] - 1) AS i
),
counts AS (
    SELECT c.campaign, d.code, c.n * d.delta AS messages, 0 AS events
    FROM changed c JOIN steps d ON d.old = c.old AND d.new = c.new
    UNION ALL
    SELECT c.campaign, (9001 + b.bit)::int2, c.n, 0
    FROM changed c, generate_series(0, 30) AS b (bit)
    WHERE c.gained <> 0 AND (c.gained >> b.bit) & 1 = 1
    UNION ALL
    SELECT g.campaign, s.code, 0, g.n * s.count
    FROM (SELECT c.campaign, c.signature, c.n FROM changed c UNION ALL
          SELECT s.campaign, s.signature, s.n FROM same s) g
         JOIN named s ON s.signature = g.signature
),
-- One appended row for the whole transaction, none if there is nothing to count: no counter is ever waited for.
delta AS (
    INSERT INTO campaign_funnel_delta (campaign_id, status, messages, events)
    SELECT array_agg(s.campaign), array_agg(s.code), array_agg(s.messages), array_agg(s.events)
    FROM (SELECT c.campaign, c.code, sum(c.messages) AS messages, sum(c.events) AS events
          FROM counts c
          GROUP BY c.campaign, c.code
          HAVING sum(c.messages) <> 0 OR sum(c.events) <> 0) s
    HAVING count(*) > 0
),
-- The raw events of unknown messages; the arrays are sliced here and nowhere else, so known messages cost nothing.
x AS MATERIALIZED (
    SELECT r.id, r.signature, i AS event, ($12::int4[])[i] AS record
    FROM r, generate_series(($9::int4[])[r.n], ($9::int4[])[r.n + 1] - 1) i
    WHERE NOT r.known
),
-- A position can come again only after an operator's reset; then the row that is there stays.
parked AS (
    INSERT INTO parked_event (topic, partition, "offset", index, lane, message_id, status, flags, at, payload,
                              traceparent, gateway)
    SELECT ($16::text[])[x.record], ($17::int4[])[x.record], ($18::int8[])[x.record], ($13::int4[])[x.event], $20::int4,
           x.id, ($10::int2[])[x.event], COALESCE(($22::int4[])[x.event], 0), ($11::timestamptz[])[x.event],
           substr($15::bytea, ($14::int4[])[x.event], ($14::int4[])[x.event + 1] - ($14::int4[])[x.event]),
           ($19::text[])[x.record], ($23::text[])[x.signature]
    FROM x
    WHERE $21::text <> 'dead-letter' AND cardinality($10::int2[]) > 0
    ON CONFLICT DO NOTHING
),
dead AS (
    INSERT INTO dead_letter (topic, partition, "offset", index, lane, reason, detail, payload, traceparent)
    SELECT ($16::text[])[x.record], ($17::int4[])[x.record], ($18::int8[])[x.record], ($13::int4[])[x.event], $20::int4,
           'unknown_message', CASE WHEN l.size > 65536 THEN format('the first of %s bytes', l.size) END,
           substr($15::bytea, ($14::int4[])[x.event], LEAST(l.size, 65536)), ($19::text[])[x.record]
    FROM x, LATERAL (SELECT ($14::int4[])[x.event + 1] - ($14::int4[])[x.event] AS size) l
    WHERE $21::text = 'dead-letter' AND cardinality($10::int2[]) > 0
    ON CONFLICT DO NOTHING
)
--+ :blocks
SELECT c.n + s.n AS messages_known, c.n AS messages_changed,
       CASE WHEN $21::text = 'dead-letter' THEN 0 ELSE x.n END AS events_parked,
       CASE WHEN $21::text = 'dead-letter' THEN x.n ELSE 0 END AS events_dead,
       k.n AS events_counted, t.old, t.new, t.n, f.was, f."is", f.gained, f.signature, f.messages,
       y.aside, y.aside_events
FROM (SELECT COALESCE(sum(n), 0)::int8 AS n FROM changed) c,
     --? actions_quiet($24::int2[], $25::int4) q,
     (SELECT COALESCE(sum(n), 0)::int8 AS n FROM same) s,
     (SELECT CASE WHEN count(*) > 0 AND cardinality($10::int2[]) = 0 THEN raw_events_wanted() ELSE count(*) END AS n FROM x) x,
     (SELECT COALESCE(sum(k.n * s.count), 0)::int8 AS n FROM kinds k JOIN named s ON s.signature = k.signature) k,
     (SELECT array_agg(g.old) AS old, array_agg(g.new) AS new, array_agg(g.n) AS n
      FROM (SELECT k.old, k.new, sum(k.n)::int8 AS n FROM kinds k WHERE k.new > k.old GROUP BY k.old, k.new) g) t,
     (SELECT array_agg(g.old) AS was, array_agg(g.new) AS "is", array_agg(g.gained) AS gained,
             array_agg(g.signature) AS signature, array_agg(g.n) AS messages
      FROM (SELECT k.old, k.new, k.gained, k.signature, k.n FROM kinds k ORDER BY k.n DESC LIMIT 1000) g) f,
     (SELECT array_agg(g.signature) AS aside, array_agg(g.n) AS aside_events
      FROM (SELECT x.signature, count(*) AS n FROM x GROUP BY x.signature ORDER BY 2 DESC LIMIT 1000) g) y;
