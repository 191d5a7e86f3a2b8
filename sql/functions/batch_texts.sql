-- The eight texts of a raw event that stand behind the payloads of a batch, each from its first byte to that of the
-- next: organisation, account, campaign, the gateway's id, class of the reason, key of the event (a number), the one
-- gateway of its message's receipts, part and total ("2/3"); NULL: it is empty. NULL as a whole without raw events.
-- event: 1-based.
CREATE OR REPLACE FUNCTION batch_texts(bytes bytea, first_bytes int4[], event int4) RETURNS text[] LANGUAGE sql STABLE AS $$
    SELECT array_agg(NULLIF(convert_from(substr(bytes, first_bytes[i], first_bytes[i + 1] - first_bytes[i]), 'UTF8'), '') ORDER BY i)
    FROM generate_series(8 * event - 7, 8 * event) i
$$;
