-- Detail of the dead letter of a receipt that names another organisation than its message has.
CREATE OR REPLACE FUNCTION organisations_differ(of_receipt text, of_message text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT format('the receipt is of organisation "%s", its message of %s', left(of_receipt, 100),
                  COALESCE('"' || left(NULLIF(of_message, ''), 100) || '"', 'none'))
$$;
