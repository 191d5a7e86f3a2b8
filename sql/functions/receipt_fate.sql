-- What becomes of receipts that changed nothing: known (they count), parked, or the reason of a dead letter. org: that
-- they name; '' where they name several: then they are parked, and the wake decides one by one. A plain expression, so
-- that it becomes part of the statement that asks.
CREATE OR REPLACE FUNCTION receipt_fate(message_exists boolean, message_org text, org text, unknown_policy text)
RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN message_exists AND (org IS NULL OR COALESCE(NULLIF(message_org, '') = org, false)) THEN 'known'
                WHEN message_exists AND org <> '' THEN 'other_organisation'
                WHEN message_exists OR unknown_policy <> 'dead-letter' THEN 'parked'
                ELSE 'unknown_message' END
$$;
