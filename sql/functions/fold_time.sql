-- A time as publications show it: RFC 3339 in UTC, with microseconds.
CREATE OR REPLACE FUNCTION fold_time(at timestamptz) RETURNS text LANGUAGE sql STABLE
RETURN to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"');
