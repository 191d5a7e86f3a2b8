-- Trigger function: refuses an UPDATE that would change by what a message was counted. Its arguments are the columns;
-- install_change_trigger() says which UPDATE gets here. A statement is refused as a whole where it may move rows to
-- other partitions, since no trigger sees both the old and the new row then.
CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    name text;
BEGIN
    IF TG_LEVEL = 'STATEMENT' THEN
        RAISE EXCEPTION USING ERRCODE = '23001',
            MESSAGE = format('an UPDATE of %s may not set %s: that would move messages to other partitions, '
                             'and they were counted by it', TG_RELID::regclass, array_to_string(TG_ARGV, ', ')),
            HINT = 'leave the column out of the UPDATE';
    END IF;
    FOREACH name IN ARRAY TG_ARGV LOOP
        IF to_jsonb(OLD) -> name IS DISTINCT FROM to_jsonb(NEW) -> name THEN
            RAISE EXCEPTION USING ERRCODE = '23001',
                MESSAGE = format('column %s of %s cannot change from %s to %s: receiptd has counted the message by it',
                                 name, TG_RELID::regclass, COALESCE(quote_literal(to_jsonb(OLD) ->> name), 'NULL'),
                                 COALESCE(quote_literal(to_jsonb(NEW) ->> name), 'NULL')),
                HINT = 'insert a new message instead; DELETE of the old one leaves what it has counted';
        END IF;
    END LOOP;
    RETURN NULL;
END
$$;
