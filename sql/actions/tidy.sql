-- $1 int8 how long what is done is kept, in ms; $2 int4 most rows of a table; $3 int8 how long once_per remembers, in ms, 0 for ever.
-- Returns how many rows went away.
SELECT actions_tidy($1::int8, $2::int4, $3::int8) AS rows;
