-- Events into open groups, after fence.sql. Only the owner of lane 0 does this, for the groups of all lanes.
-- Of transitions: what the publisher has read (events.sql) and summed up in its memory. $1 int8[] the rows that it stems from, which
-- go; one entry each, told apart by the first six: $2 text[] orgs, $3 text[] campaigns, $4 int2[] old, $5 int2[] new, $6 int4[] gained,
-- $7 text[] columns (JSON or NULL), $8 int8[] transitions, $9 int8[] first and $10 int8[] last (microseconds since 1970), $11 text[] a
-- traceparent or NULL. $12 int4 the entry (1-based) from which on the answer says which groups they belong to; of 0 transitions nothing
-- else becomes.
-- Of topics: rows are taken here, in the order of their events: $13 int4 most rows, $14 int8 most entries in them (one row comes
-- whatever it holds): so long is one transaction at most, however much has piled up.
-- $15 int8: what was there at this time (microseconds since 1970) is all in groups afterwards, unless rows of topics are left; NULL: it
-- is not.
-- Groups are written in one order, for publishers of other lanes close them meanwhile. Returns rows (taken), rest (bool: there may be more rows of topics), and
-- entries int4[], rules text[], keys text[], windows int8[] (microseconds): groups of the entries asked for.
WITH
gone AS (
    DELETE FROM fold_event e WHERE e.id = ANY ($1::int8[]) RETURNING 1
),
taken AS MATERIALIZED (
    DELETE FROM fold_event e
    WHERE e.id = ANY (ARRAY(
        SELECT q.id
        FROM (SELECT p.id, sum(p.size) OVER (ORDER BY p.id) - p.size AS before
              FROM (SELECT f.id, f.size FROM fold_event f
                    WHERE f.rules IS NOT NULL
                    ORDER BY f.id LIMIT $13::int4) p) q
        WHERE q.before < $14::int8))
    RETURNING e.*
),
moved AS MATERIALIZED (
    SELECT m.org, m.campaign, m.old, m.new, m.gained, m.columns::jsonb AS columns, m.n,
           timestamptz 'epoch' + m.first_us * interval '1 microsecond' AS first_at,
           timestamptz 'epoch' + m.last_us * interval '1 microsecond' AS last_at, m.link, m.entry
    FROM unnest($2::text[], $3::text[], $4::int2[], $5::int2[], $6::int4[], $7::text[], $8::int8[], $9::int8[], $10::int8[],
                $11::text[])
         WITH ORDINALITY AS m (org, campaign, old, new, gained, columns, n, first_us, last_us, link, entry)
),
-- What a transition means: statuses that its path entered (+1) and left (-1), flags that are new.
steps AS (
    SELECT k.old, k.new, k.gained, p.name, d.delta, false AS is_flag, p.code
    FROM (SELECT DISTINCT m.old, m.new, m.gained FROM moved m) k
    JOIN path_delta d ON d.old = k.old AND d.new = k.new
    JOIN message_status_priority p ON p.code = d.code
    UNION ALL
    SELECT k.old, k.new, k.gained, p.name, 1, true, p.code
    FROM (SELECT DISTINCT m.old, m.new, m.gained FROM moved m WHERE m.gained <> 0) k
    JOIN message_status_priority p ON p.flag_bit IS NOT NULL AND (k.gained >> p.flag_bit) & 1 = 1
),
meaning AS MATERIALIZED (
    SELECT s.old, s.new, s.gained, k.name AS status, o.name AS prev_status, s.names, s.deltas, s.entered, s.flags
    FROM (SELECT s.old, s.new, s.gained, array_agg(to_json(s.name)::text) AS names, array_agg(s.delta::int8) AS deltas,
                 COALESCE(array_agg(s.name) FILTER (WHERE s.delta > 0), '{}') AS entered,
                 COALESCE(array_agg(s.name ORDER BY s.code) FILTER (WHERE s.is_flag), '{}') AS flags
          FROM steps s
          GROUP BY s.old, s.new, s.gained) s
    JOIN message_status_priority k ON k.code = s.new
    LEFT JOIN message_status_priority o ON o.code = s.old
),
-- The group's key is the text of a jsonb object: shorter names first. It is put together by hand where it can be: no
-- object is built, parsed and written again.
keyed AS MATERIALIZED (
    SELECT r.rule, r.fields, r.kinds, m.org, m.campaign, e.status, e.prev_status, e.flags, m.columns, e.names,
           e.deltas, m.n, m.first_at, m.last_at, m.link, m.entry, r."window",
           CASE WHEN r.key_columns = '{}' THEN b.base
                ELSE (b.base::jsonb
                      || (SELECT jsonb_object_agg('inbox.' || w.name,
                                     CASE WHEN octet_length(m.columns ->> w.name) <= 200 THEN m.columns ->> w.name
                                          ELSE left(m.columns ->> w.name, 40) || '…' || md5(m.columns ->> w.name) END)
                          FROM unnest(r.key_columns) AS w (name)))::text END AS key
    FROM moved m
    JOIN meaning e ON e.old = m.old AND e.new = m.new AND e.gained = m.gained
    CROSS JOIN fold_rule r
    CROSS JOIN LATERAL (
        SELECT '{' || concat_ws(', ',
                   '"flags": ' || to_json(CASE WHEN r.by_flags THEN array_to_string(e.flags, '+') END)::text,
                   '"org_id": ' || to_json(CASE WHEN r.by_org THEN m.org END)::text,
                   '"status": ' || to_json(CASE WHEN r.by_status THEN e.status END)::text,
                   '"campaign_id": ' || to_json(CASE WHEN r.by_campaign THEN m.campaign END)::text,
                   '"prev_status": ' || to_json(CASE WHEN r.by_prev_status THEN e.prev_status END)::text) || '}' AS base) b
    WHERE r.source = 'transitions' AND (r.removed_at IS NULL OR m.first_at <= r.removed_at)
      AND (r.match = '{}'
           OR ((r.match -> 'campaign_id' IS NULL OR r.match -> 'campaign_id' ? m.campaign)
               AND (r.match -> 'org_id' IS NULL OR r.match -> 'org_id' ? m.org)
               AND (r.match -> 'prev_status' IS NULL OR r.match -> 'prev_status' ? e.prev_status)
               AND (r.match -> 'status' IS NULL
                    OR e.entered && ARRAY(SELECT jsonb_array_elements_text(r.match -> 'status')))
               AND (r.match -> 'flags' IS NULL OR e.flags && ARRAY(SELECT jsonb_array_elements_text(r.match -> 'flags')))
               AND (r.columns = '{}'
                    OR NOT EXISTS (SELECT FROM unnest(r.columns) AS w (name)
                                   WHERE r.match -> ('inbox.' || w.name) IS NOT NULL
                                     AND NOT COALESCE(r.match -> ('inbox.' || w.name) ? (m.columns ->> w.name), false)))))
),
-- Sums first, one row for each part of a group: the group itself (name NULL), a status, something collected. Names are JSON
-- texts, quotes and all.
parts AS (
    SELECT k.rule, k.key, NULL::text AS name, NULL::jsonb AS value, sum(k.n)::int8 AS n, min(k.first_at) AS first_at,
           max(k.last_at) AS last_at
    FROM keyed k
    WHERE k.n > 0
    GROUP BY k.rule, k.key
    UNION ALL
    SELECT k.rule, k.key, s.name, NULL, sum(s.delta * k.n)::int8, NULL, NULL
    FROM keyed k, unnest(k.names, k.deltas) AS s (name, delta)
    WHERE k.n > 0
    GROUP BY k.rule, k.key, s.name
    HAVING sum(s.delta * k.n) <> 0
    UNION ALL
    SELECT k.rule, k.key, to_json(f.key)::text, to_jsonb(sum(k.n)::int8), NULL, NULL, NULL
    FROM keyed k, jsonb_each_text(k.fields) f
    WHERE k.n > 0 AND k.fields <> '{}' AND k.kinds ->> f.key = 'count'
    GROUP BY k.rule, k.key, f.key
    UNION ALL
    SELECT k.rule, k.key, to_json(f.key)::text, jsonb_agg(DISTINCT v.value), NULL, NULL, NULL
    FROM keyed k, jsonb_each_text(k.fields) f,
         unnest(CASE f.value WHEN 'campaign_id' THEN ARRAY[k.campaign] WHEN 'org_id' THEN ARRAY[k.org]
                             WHEN 'status' THEN ARRAY[k.status] WHEN 'prev_status' THEN ARRAY[k.prev_status]
                             WHEN 'flags' THEN k.flags ELSE ARRAY[k.columns ->> substr(f.value, 7)] END) AS v (value)
    WHERE k.n > 0 AND k.fields <> '{}' AND k.kinds ->> f.key = 'set' AND v.value IS NOT NULL
    GROUP BY k.rule, k.key, f.key
    UNION ALL
    SELECT k.rule, k.key, '"traces"', jsonb_agg(DISTINCT k.link), NULL, NULL, NULL
    FROM keyed k
    WHERE k.n > 0 AND k.link IS NOT NULL
    GROUP BY k.rule, k.key
),
-- Of topics: parts that were folded in memory, several of a group where several transactions are gathered. What they hold is
-- summed up by name; fold_merge, which is slow, sees one part of each group.
given AS MATERIALIZED (
    SELECT c.rule, c.key, c.part::jsonb AS part, c.n, t.at, row_number() OVER (ORDER BY t.id, c.i) AS ord
    FROM taken t, unnest(t.rules, t.keys, t.parts, t.n) WITH ORDINALITY AS c (rule, key, part, n, i)
    WHERE t.rules IS NOT NULL
),
named AS MATERIALIZED (
    SELECT g.rule, g.key, g.ord, e.key AS name, e.value, r.kinds ->> e.key AS kind
    FROM given g, fold_rule r, jsonb_each(g.part -> 'v') e
    WHERE r.rule = g.rule AND r.kinds ? e.key
),
merged AS (
    SELECT g.rule, g.key, NULL::text AS name, NULL::jsonb AS value, NULL::int8 AS overflow, sum(g.n)::int8 AS n,
           min(g.at) AS first_at, max(g.at) AS last_at
    FROM given g
    GROUP BY g.rule, g.key
    UNION ALL
    SELECT n.rule, n.key, n.name,
           CASE n.kind WHEN 'min' THEN to_jsonb(min(n.value::text::numeric))
                       WHEN 'max' THEN to_jsonb(max(n.value::text::numeric))
                       ELSE to_jsonb(sum(n.value::text::numeric)) END, NULL, NULL, NULL, NULL
    FROM named n
    WHERE n.kind IN ('sum', 'count', 'min', 'max')
    GROUP BY n.rule, n.key, n.name, n.kind
    UNION ALL
    SELECT n.rule, n.key, n.name,
           CASE n.kind WHEN 'first' THEN (array_agg(n.value ORDER BY n.ord))[1]
                       ELSE (array_agg(n.value ORDER BY n.ord DESC))[1] END, NULL, NULL, NULL, NULL
    FROM named n
    WHERE n.kind IN ('first', 'last')
    GROUP BY n.rule, n.key, n.name, n.kind
    UNION ALL
    SELECT d.rule, d.key, d.name, jsonb_agg(d.item ORDER BY d.ord, d.i), NULL, NULL, NULL, NULL
    FROM (SELECT n.rule, n.key, n.name, e.item, min(n.ord) AS ord, min(e.i) AS i
          FROM named n, jsonb_array_elements(n.value) WITH ORDINALITY AS e (item, i)
          WHERE n.kind IN ('set', 'links')
          GROUP BY n.rule, n.key, n.name, e.item) d
    GROUP BY d.rule, d.key, d.name
    UNION ALL
    SELECT g.rule, g.key, e.key, NULL, sum(e.value::text::int8)::int8, NULL, NULL, NULL
    FROM given g, jsonb_each(g.part -> 'o') e
    GROUP BY g.rule, g.key, e.key
),
grouped AS MATERIALIZED (
    SELECT p.rule, p.key, sum(p.n) FILTER (WHERE p.name IS NULL)::int8 AS events, min(p.first_at) AS first_at,
           max(p.last_at) AS last_at,
           ('{' || CASE WHEN count(p.value) = 0 AND count(p.name) <= 4
                        THEN '"k": [' || COALESCE(string_agg(p.name, ', '), '') || '], ' ELSE '' END
            || '"v": {' || COALESCE(string_agg(p.name || ': ' || p.value::text, ', ') || ', ', '')
            || '"": {' || COALESCE(string_agg(p.name || ': ' || p.n, ', ') FILTER (WHERE p.value IS NULL), '')
            || '}}}')::jsonb AS part
    FROM parts p
    GROUP BY p.rule, p.key
    UNION ALL
    SELECT p.rule, p.key, sum(p.n)::int8, min(p.first_at), max(p.last_at),
           jsonb_build_object('v', COALESCE(jsonb_object_agg(p.name, p.value) FILTER (WHERE p.value IS NOT NULL), '{}'),
                              'o', COALESCE(jsonb_object_agg(p.name, p.overflow) FILTER (WHERE p.overflow IS NOT NULL),
                                            '{}'))
    FROM merged p
    GROUP BY p.rule, p.key
),
opened AS MATERIALIZED (
    INSERT INTO fold_group AS g (rule, key, lane, number, events, first_at, last_at, due_at, collected, opened_at)
    SELECT n.rule, n.key, fold_lane_of(n.rule, n.key), l.number_floor + 1, n.events, n.first_at, n.last_at,
           CASE WHEN n.events >= r.max_events OR r.removed_at IS NOT NULL THEN now()
                ELSE LEAST(n.last_at + r."window", n.first_at + r.max_hold) END,
           CASE WHEN n.part ? 'k' THEN n.part ELSE fold_merge(NULL, r.kinds, r.max_values, n.part) END, now()
    FROM grouped n
    JOIN fold_rule r ON r.rule = n.rule
    JOIN fold_lane l ON l.lane = fold_lane_of(n.rule, n.key)
    ORDER BY n.rule COLLATE "C", n.key COLLATE "C"
    ON CONFLICT (rule, key) DO UPDATE
    SET events = g.events + EXCLUDED.events,
        first_at = LEAST(g.first_at, EXCLUDED.first_at),
        last_at = GREATEST(g.last_at, EXCLUDED.last_at),
        due_at = CASE WHEN g.due_at IS NULL THEN EXCLUDED.due_at
                      WHEN g.events + EXCLUDED.events >= (SELECT r.max_events FROM fold_rule r WHERE r.rule = g.rule)
                      THEN LEAST(g.due_at, now())
                      ELSE LEAST(g.due_at, EXCLUDED.due_at) END, -- it may have been put off while events lay in memory
        collected = COALESCE(fold_sum(g.collected, EXCLUDED.collected),
                             (SELECT fold_merge(g.collected, r.kinds, r.max_values, EXCLUDED.collected)
                              FROM fold_rule r WHERE r.rule = g.rule)),
        opened_at = CASE WHEN g.due_at IS NULL THEN now() ELSE g.opened_at END
    RETURNING g.rule, g.opened_at = now() AS fresh, g.first_at - g.published_at AS since
),
-- The counts, in rows of the lane that does the work.
events AS (
    SELECT n.rule, sum(n.events)::int8 AS n FROM grouped n GROUP BY n.rule
),
groups AS (
    SELECT o.rule, count(*) FILTER (WHERE o.fresh) AS n,
           count(*) FILTER (WHERE o.fresh AND o.since < r."window") AS avoidable
    FROM opened o JOIN fold_rule r USING (rule)
    GROUP BY o.rule
),
total AS (
    INSERT INTO fold_total AS t (rule, lane, events, groups, avoidable)
    SELECT e.rule, 0, e.n, g.n, g.avoidable FROM events e JOIN groups g USING (rule)
    ON CONFLICT (rule, lane) DO UPDATE
    SET events = t.events + EXCLUDED.events, groups = t.groups + EXCLUDED.groups,
        avoidable = t.avoidable + EXCLUDED.avoidable
),
clock AS (
    UPDATE fold_lane l SET gathered_at = timestamptz 'epoch' + $15::int8 * interval '1 microsecond'
    FROM (SELECT count(*) >= $13::int4 OR COALESCE(sum(t.size), 0) >= $14::int8 AS rest FROM taken t) w
    WHERE l.lane = 0 AND $15::int8 IS NOT NULL AND NOT w.rest
)
SELECT t.rows, t.rest, k.entries, k.rules, k.keys, k.windows, fold_check_gone(cardinality($1::int8[]), g.n)
FROM (SELECT count(*) AS rows, count(*) >= $13::int4 OR COALESCE(sum(size), 0) >= $14::int8 AS rest FROM taken) t,
     (SELECT count(*) AS n FROM gone) g,
     (SELECT array_agg(entry) AS entries, array_agg(rule) AS rules, array_agg(key) AS keys,
             array_agg((extract(epoch FROM "window") * 1000000)::int8) AS windows
      FROM keyed WHERE entry >= $12::int4) k;
