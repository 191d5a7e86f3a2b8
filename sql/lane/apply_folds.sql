-- Optional block of apply.sql and wake.sql: what changed, for the folds of source transitions. One appended row for the
-- transaction, as with counters; which rules it is for is the publisher's business.
folds AS (
    INSERT INTO fold_event (orgs, campaigns, old, new, gained, n, links, size)
    SELECT array_agg(c.org), array_agg(c.campaign), array_agg(c.old), array_agg(c.new), array_agg(c.gained), array_agg(c.n),
           CASE WHEN count(c.link) > 0 THEN array_agg(c.link) END, count(*)
    FROM changed c
    HAVING count(*) > 0
)
