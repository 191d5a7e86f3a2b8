-- $1 int8 how long what is done is kept, in ms; $2 int4 most rows of a table. Returns how many rows went away.
SELECT actions_tidy($1::int8, $2::int4) AS rows;
