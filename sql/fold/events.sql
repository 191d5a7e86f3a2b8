-- Rows of transitions that have not been read yet, oldest first; they stay until gather has their sums. Parameters:
-- $1 int8[] rows that have been read, $2 int4 most rows, $3 int8 most entries in them (one row comes even above it).
-- Returns id, at (microseconds since 1970), size, orgs, campaigns, old, new, gained, n, columns, links, firsts,
-- lasts, first_rows, last_rows. Where sums were kept back, firsts and lasts (microseconds) stand in place of at, and
-- first_rows and last_rows in place of id. An array of one value over
-- and over comes with one element: writing and reading it as text costs more than comparing.
SELECT e.id, (extract(epoch FROM e.at) * 1000000)::int8 AS at, cardinality(e.n) AS size,
       CASE WHEN e.orgs[1] = ALL (e.orgs) THEN e.orgs[1:1] ELSE e.orgs END AS orgs, e.campaigns,
       CASE WHEN e.old[1] = ALL (e.old) THEN e.old[1:1] ELSE e.old END AS old,
       CASE WHEN e.new[1] = ALL (e.new) THEN e.new[1:1] ELSE e.new END AS new,
       CASE WHEN e.gained[1] = ALL (e.gained) THEN e.gained[1:1] ELSE e.gained END AS gained,
       CASE WHEN e.n[1] = ALL (e.n) THEN e.n[1:1] ELSE e.n END AS n, e.columns, e.links, e.firsts, e.lasts,
       e.first_rows, e.last_rows
FROM (SELECT p.id, sum(p.size) OVER (ORDER BY p.id) - p.size AS before
      FROM (SELECT f.id, f.size FROM fold_event f
            WHERE f.rules IS NULL AND f.id NOT IN (SELECT unnest($1::int8[]))
            ORDER BY f.id LIMIT $2::int4) p) q
JOIN fold_event e ON e.id = q.id
WHERE q.before < $3::int8
ORDER BY e.id;
