-- Part of apply and wake where a fold of source transitions subscribes to them: appends what changed, one row for the
-- transaction, as with counters. The publisher finds out for which rules it is.
, folds AS (
    INSERT INTO fold_event (orgs, campaigns, old, new, gained, n, links, size)
    SELECT array_agg(c.org), array_agg(c.campaign), array_agg(c.old), array_agg(c.new), array_agg(c.gained), array_agg(c.n),
           CASE WHEN count(c.link) > 0 THEN array_agg(c.link) END, count(*)
    FROM changed c
    WHERE c.old <> c.new OR c.gained <> 0
    HAVING count(*) > 0
)
