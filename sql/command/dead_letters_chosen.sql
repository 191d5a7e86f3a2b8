-- Dead letters by their keys, to be decoded again, in the order of their keys; each key comes once. Keys: $1 text[]
-- topic, $2 int4[] partition, $3 int8[] offset, $4 int4[] index. Last key of the page before (at first '', -1, -1,
-- -1): $5 text topic, $6 int4 partition, $7 int8 offset, $8 int4 index. Parameter $9 int8: most bytes of payload (one
-- letter comes even above it). Columns as of dead_letters_for_redrive.sql; gone is true where there is no such
-- letter.
SELECT p.topic, p.partition, p."offset", p.index, d.payload, d.indexes,
       floor(extract(epoch FROM COALESCE(d.at, d.dead_at)) * 1000)::int8 AS at_ms,
       COALESCE(d.indexes IS NULL AND octet_length(d.payload) = 65536
                    AND d.detail ~ 'the first of [0-9]+ bytes$', false) AS cut, d.topic IS NULL AS gone
FROM (
    SELECT k.*, row_number() OVER w AS n, sum(COALESCE(octet_length(l.payload), 0)) OVER w AS total
    FROM (SELECT DISTINCT *
          FROM unnest($1::text[], $2::int4[], $3::int8[], $4::int4[]) AS k (topic, partition, "offset", index)) k
    LEFT JOIN dead_letter l ON (l.topic, l.partition, l."offset", l.index) = (k.topic, k.partition, k."offset", k.index)
    WHERE (k.topic COLLATE "C", k.partition, k."offset", k.index) > ($5::text, $6::int4, $7::int8, $8::int4)
    WINDOW w AS (ORDER BY k.topic COLLATE "C", k.partition, k."offset", k.index)
) p
LEFT JOIN dead_letter d ON (d.topic, d.partition, d."offset", d.index) = (p.topic, p.partition, p."offset", p.index)
WHERE p.n = 1 OR p.total <= $9::int8
ORDER BY p.n;
