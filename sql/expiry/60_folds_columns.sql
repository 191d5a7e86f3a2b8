-- In place of folds.sql where a rule names columns of the inbox: reads them again, in the snapshot of the transaction,
-- and groups the transitions by them, too.
, folds AS (
    INSERT INTO fold_event (orgs, campaigns, old, new, gained, n, columns, links, size)
    SELECT array_agg(c.org), array_agg(c.campaign), array_agg(c.old), array_agg(c.new), array_agg(c.gained), array_agg(c.n),
           array_agg(c.columns), CASE WHEN count(c.link) > 0 THEN array_agg(c.link) END, count(*)
    FROM (SELECT u.org, u.campaign, u.old, u.new, u.gained, f.columns, count(*) AS n, min(u.link COLLATE "C") AS link
          FROM u CROSS JOIN LATERAL fold_columns(u.id) f
          WHERE u.old <> u.new OR u.gained <> 0
          GROUP BY u.org, u.campaign, u.old, u.new, u.gained, f.columns) c
    HAVING count(*) > 0
)
