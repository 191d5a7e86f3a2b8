-- Whether the customer's column can be read: raises 42703 or 42804 (check_inbox_columns). $1 text schema, $2 text
-- table, $3 text column.
SELECT check_inbox_columns(to_regclass(format('%I.%I', $1::text, $2::text)), ARRAY[$3::text]);
