-- Rows that are held: one row for `parked` (receipts that wait for their message) and one for `letters` (dead
-- letters). rows is exact up to 10 000. Above it, where is_estimate is true, it is PostgreSQL's estimate, and 10 001
-- at least: counting all of millions would take long.
CREATE OR REPLACE VIEW held_count AS
SELECT c.what,
       CASE WHEN c.counted > 10000
            THEN GREATEST((SELECT k.reltuples::int8 FROM pg_class k WHERE k.oid = c.relation), c.counted)
            ELSE c.counted END AS rows,
       c.counted > 10000 AS is_estimate
FROM (SELECT 'parked' AS what, 'parked_event'::regclass AS relation,
             (SELECT count(*) FROM (SELECT FROM parked_event LIMIT 10001) p) AS counted
      UNION ALL
      SELECT 'letters', 'dead_letter'::regclass, (SELECT count(*) FROM (SELECT FROM dead_letter LIMIT 10001) d)) c;
