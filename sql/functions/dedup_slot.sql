-- The slot of receipt_counted that holds the receipts of this event time: the number of its day since 1970 (UTC),
-- modulo 16. STABLE as date_part() is, or it would not become part of the statement that asks.
CREATE OR REPLACE FUNCTION dedup_slot(at timestamptz) RETURNS int2 LANGUAGE sql STABLE AS $$
    SELECT (floor(date_part('epoch', at) / 86400)::int8 & 15)::int2
$$;
