-- Deletes what ended long ago: see actions_tidy(). Parameters: $1 int8 how long to keep it, in ms, $2 int4 rows at
-- most of a table. Times: $3 int8 how long once_per remembers, in ms (0: without end), $4 int8 the longest wait
-- before another attempt, in ms. Returns how many rows it changed.
SELECT actions_tidy($1::int8, $2::int4, $3::int8, $4::int8) AS rows;
