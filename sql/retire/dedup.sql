-- Partitions of the receipts that dedup.window remembers: $1 int8 window in ms, $2 int4 days to be made from today on.
-- made, dropped.
SELECT made, dropped FROM dedup_partitions($1::int8, $2::int4);
