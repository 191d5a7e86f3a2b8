-- Stores sums of transitions that were read and are not handed over yet, in place of the rows that they stem from. It
-- runs in the transaction of gather and returns the row's id. Parameters: $1 text[] orgs, $2 text[] campaigns, $3
-- int2[] old, $4 int2[] new, $5 int4[] gained, $6 text[] columns. Sums: $7 int8[] transitions, $8 int8[] first and $9
-- int8[] last (microseconds since 1970), $10 text[] links.
INSERT INTO fold_event (orgs, campaigns, old, new, gained, columns, n, firsts, lasts, links, size)
VALUES ($1::text[], $2::text[], $3::int2[], $4::int2[], $5::int4[],
        $6::text[], $7::int8[], $8::int8[], $9::int8[], $10::text[], cardinality($7::int8[]))
RETURNING id;
