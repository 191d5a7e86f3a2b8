-- The size of each dead letter's payload, for roles that may not read it: it may hold telephone numbers and
-- addresses.
CREATE OR REPLACE VIEW dead_letter_size AS
SELECT d.topic, d.partition, d."offset", d.index, octet_length(d.payload) AS size FROM dead_letter d;
