-- An erasure is complete: $1 int8 id.
UPDATE erasure SET finished_at = clock_timestamp() WHERE id = $1::int8;
