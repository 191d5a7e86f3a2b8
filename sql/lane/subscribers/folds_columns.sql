-- In place of folds.sql where a rule names columns of the inbox: reads them again, in the snapshot of the transaction, and groups the
-- transitions by them, too. Long values are cut; a column that does not exist is null.
, fold_columns AS MATERIALIZED (
    SELECT array_agg(DISTINCT w.name) AS names
    FROM fold_rule r, unnest(r.columns) AS w (name)
    WHERE r.source = 'transitions' AND r.removed_at IS NULL
),
fold_grouped AS (
    SELECT w.org, w.campaign, w.old, w.new, w.gained, w.columns, count(*) AS n, min(w.link COLLATE "C") AS link
    FROM (SELECT u.org, u.campaign, u.old, u.new, u.gained, u.link,
                 (SELECT jsonb_object_agg(c.name, left(to_jsonb(m) ->> c.name, 1000))::text
                  FROM message_inbox m, fold_columns f, unnest(f.names) AS c (name)
                  WHERE m.message_id = u.id) AS columns
          FROM u) w
    GROUP BY w.org, w.campaign, w.old, w.new, w.gained, w.columns
),
folds AS (
    INSERT INTO fold_event (orgs, campaigns, old, new, gained, n, columns, links, size)
    SELECT array_agg(c.org), array_agg(c.campaign), array_agg(c.old), array_agg(c.new), array_agg(c.gained), array_agg(c.n),
           array_agg(c.columns), CASE WHEN count(c.link) > 0 THEN array_agg(c.link) END, count(*)
    FROM fold_grouped c
    HAVING count(*) > 0
)
