-- Stores sums of transitions that were read and are not handed over yet, in place of the rows that they stem from. It
-- runs in the transaction of gather and returns the row's id. Parameters: $1 text[] orgs, $2 text[] campaigns, $3
-- int2[] old, $4 int2[] new, $5 int4[] gained, $6 text[] columns. Sums: $7 int8[] transitions, $8 int8[] first and $9
-- int8[] last (microseconds since 1970), $10 text[] links, $11 int8[] first
-- and $12 int8[] last row that they stem from.
INSERT INTO fold_event (orgs, campaigns, old, new, gained, columns, n, firsts, lasts, links, first_rows, last_rows,
                        size)
VALUES ($1::text[], $2::text[], $3::int2[], $4::int2[], $5::int4[],
        $6::text[], $7::int8[], $8::int8[], $9::int8[], $10::text[], $11::int8[], $12::int8[],
        cardinality($7::int8[]))
RETURNING id;
