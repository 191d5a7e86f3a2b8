-- The record of a change: $1 text reader, $2 text topic, $3 int4 partition, $4 text positions before, $5 int8 after, $6
-- text reason.
INSERT INTO position_change (reader, topic, partition, before, after, reason)
VALUES ($1::text, $2::text, $3::int4, $4::text, $5::int8, $6::text);
