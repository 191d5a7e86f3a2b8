-- Appends the messages that changed alike, for folds of source transitions: one row of arrays. The publisher finds
-- out for which rules it is. Parameters: $1 text[] organisations, $2 text[] campaigns, $3 int2[] status before, $4
-- int2[] status now, $5 int4[] flags gained, $6 int8[] how many messages. Further: $7 text[] columns of the inbox as
-- JSON (empty: no rule names any), $8 text[] a traceparent of each (empty: none has one).
INSERT INTO fold_event (orgs, campaigns, old, new, gained, n, columns, links, size)
VALUES ($1::text[], $2::text[], $3::int2[], $4::int2[], $5::int4[], $6::int8[], NULLIF($7::text[], '{}'),
        NULLIF($8::text[], '{}'), cardinality($1::text[]));
