-- As rollup.sql, for group_delta: $1 int4 most changes (groups_fold()), $2 int8 only ids above this one. Returns rows
-- and last.
SELECT f.rows, f.last FROM groups_fold($1::int4, $2::int8) f;
