-- Dead letters to be decoded again, after a key, in the order of their keys. Parameters: $1 text reason (NULL: any),
-- $6 int8 most rows, $7 int8 most bytes of payload (one letter comes even above it). Last key of the page before ('',
-- -1, -1, -1 at first): $2 text topic, $3 int4 partition, $4 int8 offset, $5 int4 index. Columns: topic, partition,
-- offset, index, payload (bytea), at_ms (of its record), indexes (of a letter for many). Further: cut (the payload is
-- not all of it), gone (false; see dead_letters_chosen.sql).
SELECT p.topic, p.partition, p."offset", p.index, d.payload, d.indexes,
       floor(extract(epoch FROM COALESCE(d.at, d.dead_at)) * 1000)::int8 AS at_ms,
       COALESCE(d.indexes IS NULL AND octet_length(d.payload) = 65536
                    AND d.detail ~ 'the first of [0-9]+ bytes$', false) AS cut, false AS gone
FROM (
    SELECT w.*, sum(w.bytes) OVER (ORDER BY w.topic, w.partition, w."offset", w.index) AS total,
           row_number() OVER (ORDER BY w.topic, w.partition, w."offset", w.index) AS n
    FROM (
        SELECT l.topic, l.partition, l."offset", l.index, COALESCE(octet_length(l.payload), 0) AS bytes
        FROM dead_letter l
        WHERE (l.topic, l.partition, l."offset", l.index) > ($2::text, $3::int4, $4::int8, $5::int4)
          AND ($1::text IS NULL OR l.reason = $1::text)
          AND l.index >= -1 -- others are of topics that are folded or begin runs: no receipts
        ORDER BY l.topic, l.partition, l."offset", l.index
        LIMIT $6::int8
    ) w
) p
JOIN dead_letter d ON (d.topic, d.partition, d."offset", d.index) = (p.topic, p.partition, p."offset", p.index)
WHERE p.n = 1 OR p.total <= $7::int8
ORDER BY p.topic, p.partition, p."offset", p.index;
