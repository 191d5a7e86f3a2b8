-- Groups of events that were read, one row: $1 text[] rules, $2 text[] keys, $3 text[] parts (JSON), $4 int8[] events.
INSERT INTO fold_event (rules, keys, parts, n, size)
VALUES ($1::text[], $2::text[], $3::text[], $4::int8[], cardinality($4::int8[]));
