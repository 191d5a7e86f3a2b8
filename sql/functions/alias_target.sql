-- The message id that an alias of the account leads to from a gateway's id, NULL: there is none. An alias may lead to
-- another one: the search ends at an id that has a message or no further alias. NULL also where aliases form a ring,
-- where there are more than eight, and where the id that is found is no message id (1 to 255 bytes). Reads with the
-- snapshot of the statement that calls it.
CREATE OR REPLACE FUNCTION alias_target(account text, gateway_id text) RETURNS text LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_variable
DECLARE
    target text COLLATE "default" := gateway_id; -- it gives way to the collation of the inbox's key
    next text;
BEGIN
    FOR step IN 1 .. 9 LOOP
        SELECT a.message_id INTO next FROM message_alias a WHERE a.channel_account = account AND a.gateway_id = target;
        IF next IS NULL OR step > 1 AND EXISTS (SELECT FROM message_inbox m WHERE m.message_id = target) THEN
            RETURN CASE WHEN step > 1 AND octet_length(target) BETWEEN 1 AND 255 THEN target END;
        END IF;
        target := next;
    END LOOP;
    RETURN NULL;
END
$$;
