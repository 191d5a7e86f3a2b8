-- Detail of the dead letter of a receipt whose message exists in another organisation, or existed; NULL: the reason
-- says it all.
CREATE OR REPLACE FUNCTION fate_detail(fate text, of_receipt text, of_message text)
RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE fate
               WHEN 'other_organisation'
               THEN format('the receipt is of organisation "%s", its message of %s', left(of_receipt, 100),
                           COALESCE('"' || left(NULLIF(of_message, ''), 100) || '"', 'none'))
               WHEN 'retired_message' THEN 'its message was deleted' END
$$;
