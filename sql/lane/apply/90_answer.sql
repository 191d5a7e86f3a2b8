-- One row: messages_known, messages_changed, events_parked, events_dead, events_counted. Then, for figures, the
-- messages by what their receipts name: was int2[], is int2[], gained int4[], kind int4[], messages int8[]; and by kind
-- the receipts of unknown messages: unknown int4[], unknown_events int8[], and those that were refused, since their
-- message is of another organisation: refused int4[], refused_events int8[], and those of deleted messages: retired
-- int4[], retired_events int8[]. At most the 1 000 largest kinds of each, since the answer must stay small.
-- events_refused, events_retired: all of these.
SELECT g.known AS messages_known, g.changed AS messages_changed, x.parked AS events_parked, x.dead AS events_dead,
       k.n AS events_counted, f.was, f."is", f.gained, f.kind, f.messages,
       y.unknown, y.unknown_events, y.refused, y.refused_events, x.refused AS events_refused, y.retired, y.retired_events, x.retired AS events_retired
FROM (SELECT COALESCE(sum(n), 0)::int8 AS known, COALESCE(sum(n) FILTER (WHERE old <> new OR gained <> 0), 0)::int8 AS changed FROM kinds) g,
     (SELECT count(*) FILTER (WHERE fate = 'unknown_message') AS dead, count(*) FILTER (WHERE fate = 'other_organisation') AS refused,
             count(*) FILTER (WHERE fate = 'retired_message') AS retired,
             CASE WHEN count(*) > 0 AND cardinality($13::int4[]) = 0 THEN raw_events_needed() ELSE count(*) FILTER (WHERE fate = 'parked') END AS parked
      FROM x) x,
     (SELECT COALESCE(sum(k.n * s.count), 0)::int8 AS n FROM known k JOIN named s ON s.signature = k.signature) k,
     (SELECT array_agg(g.old) AS was, array_agg(g.new) AS "is", array_agg(g.gained) AS gained, array_agg(g.kind) AS kind, array_agg(g.n) AS messages
      FROM (SELECT k.old, k.new, k.gained, k.kind, k.n FROM figures k ORDER BY k.n DESC LIMIT 1000) g) f,
     (SELECT array_agg(g.kind) FILTER (WHERE g.fate = 0) AS unknown, array_agg(g.n) FILTER (WHERE g.fate = 0) AS unknown_events,
             array_agg(g.kind) FILTER (WHERE g.fate = 1) AS refused, array_agg(g.n) FILTER (WHERE g.fate = 1) AS refused_events,
             array_agg(g.kind) FILTER (WHERE g.fate = 2) AS retired, array_agg(g.n) FILTER (WHERE g.fate = 2) AS retired_events
      FROM (SELECT o.kind, CASE o.fate WHEN 'other_organisation' THEN 1 WHEN 'retired_message' THEN 2 ELSE 0 END AS fate, count(*) AS n
            FROM others o GROUP BY 1, 2 ORDER BY 3 DESC LIMIT 1000) g) y
