-- Deletes what ended long ago: $1 int8 how long to keep it, in ms; $2 int4 rows at most of a table; $3 int8 how long once_per remembers, in
-- ms, 0: without end. Returns how many rows it deleted.
SELECT actions_tidy($1::int8, $2::int4, $3::int8) AS rows;
