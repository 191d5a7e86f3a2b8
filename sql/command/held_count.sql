-- How many rows of a kind there are: $1 text parked or letters. One row: rows, is_estimate.
SELECT h.rows, h.is_estimate FROM held_count h WHERE h.what = $1::text;
