-- The slot of receipt_counted that holds the receipts of this event time: the number of its day since 1970 (UTC), modulo 16.
CREATE OR REPLACE FUNCTION dedup_slot(at timestamptz) RETURNS int2 LANGUAGE sql IMMUTABLE AS $$
    SELECT (floor(extract(epoch FROM at) / 86400)::int8 & 15)::int2
$$;
