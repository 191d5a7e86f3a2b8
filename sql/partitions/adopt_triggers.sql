-- The triggers go from the table that was the inbox to the whole, as install_inbox_trigger() and those beside it put
-- them there; with them the comment of the mapping. No variables.
CREATE TRIGGER receiptd_count_inserted AFTER INSERT ON message_inbox REFERENCING NEW TABLE AS inserted
    FOR EACH STATEMENT EXECUTE FUNCTION count_inserted();
CREATE TRIGGER receiptd_count_deleted AFTER DELETE ON message_inbox REFERENCING OLD TABLE AS deleted
    FOR EACH STATEMENT EXECUTE FUNCTION count_deleted();
CREATE TRIGGER receiptd_count_truncated BEFORE TRUNCATE ON message_inbox
    FOR EACH STATEMENT EXECUTE FUNCTION count_deleted();
DO $$
DECLARE
    counted text[] := ARRAY(SELECT a.attname
                            FROM pg_trigger g
                            JOIN pg_attribute a ON a.attrelid = g.tgrelid AND a.attnum = ANY (g.tgattr)
                            WHERE g.tgrelid = 'message_inbox_before'::regclass AND g.tgname = 'receiptd_refuse_change');
BEGIN
    DROP TRIGGER receiptd_refuse_change ON message_inbox_before;
    PERFORM install_change_trigger(current_schema(), 'message_inbox', counted);
    EXECUTE format('COMMENT ON TRIGGER receiptd_count_inserted ON message_inbox IS %L',
                   (SELECT obj_description(g.oid, 'pg_trigger') FROM pg_trigger g
                    WHERE g.tgrelid = 'message_inbox_before'::regclass AND g.tgname = 'receiptd_count_inserted'));
END
$$;
DROP TRIGGER receiptd_count_inserted ON message_inbox_before;
DROP TRIGGER receiptd_count_deleted ON message_inbox_before;
DROP TRIGGER receiptd_count_truncated ON message_inbox_before;
