-- Puts the triggers on the inbox that book messages that go, by DELETE or TRUNCATE, and makes their function,
-- count_deleted(). migrate runs this again where this file has changed. Parameters and errors: as for
-- install_inbox_trigger().
--
-- count_deleted() books the counts of the messages (campaign_retired), in the transaction that deletes them. Counters
-- stay, and they are live and retired messages together. It remembers the ids, so that a late receipt is not taken
-- for one that came too early. It forgets which parts of them are delivered (message_part): another message may get
-- the id. It also books their counts in the histograms of times, where the table has the columns (inbox_forgotten()).
-- In a session with the setting receiptd.stream = 'on' it writes their tombstones for the stream. The rows are locked
-- by then, so a tombstone's id is larger than those of all transitions of its message. receiptd's commands set it
-- where stream.topic is configured. A platform that deletes messages itself may set it, too.
-- It has the rights of the same role as count_inserted(), by the same rules.
--
-- Each partition gets the trigger for DELETE as well, as for inserts. TRUNCATE of the table fires the triggers of its
-- partitions, too, so there is one, the parent's. A partition that is truncated alone is not booked (`receiptd audit
-- --repair` finds that).
--
-- TRUNCATE brings no rows: the function reads them. It has waited for all writers, so a new snapshot sees every row.
-- An older one, of REPEATABLE READ, might not.
CREATE OR REPLACE FUNCTION install_retired_trigger(in_schema text, in_table text,
                                                   message_id text, campaign_id text, status text, flags text)
RETURNS void LANGUAGE plpgsql AS $install$
DECLARE
    base text := format('%I.%I', in_schema, in_table);
    columns text[] := ARRAY[message_id, campaign_id, status, flags]
        || CASE WHEN inbox_has_times(to_regclass(base))
                THEN '{first_gateway,first_sent_at,first_delivered_at,first_opened_at}'::text[] END;
    target record;
BEGIN
    PERFORM check_inbox_columns(to_regclass(base), columns);
    EXECUTE format($function$
        CREATE OR REPLACE FUNCTION count_deleted() RETURNS trigger
        LANGUAGE plpgsql SECURITY DEFINER SET search_path = %1$I, pg_temp AS $body$
        BEGIN
            IF TG_NARGS > 0 THEN
                IF NOT partition_is_counted(TG_RELID, TG_NAME) THEN
                    RETURN NULL;
                END IF;
            ELSIF TG_TABLE_SCHEMA <> %6$L OR TG_TABLE_NAME <> %7$L THEN
                PERFORM check_counted(TG_RELID, to_regclass(%8$L));
            END IF;
            IF (SELECT count(*) FROM pg_attribute a
                WHERE a.attrelid = TG_RELID AND a.attname = ANY (%9$L::name[]) AND a.atttypid < 16384) <> %10$s THEN
                PERFORM check_inbox_columns(TG_RELID, %9$L);
            END IF;
            IF TG_OP = 'DELETE' THEN
                INSERT INTO campaign_retired (campaign_id, status, flags, messages)
                SELECT COALESCE(d.%3$I::text COLLATE "C", ''), d.%4$I, d.%5$I, count(*) FROM deleted d GROUP BY 1, 2, 3;
                INSERT INTO retired_message (hash)
                SELECT hashtextextended(d.%2$I::text COLLATE "C", 0) FROM deleted d;
                INSERT INTO stream_event (ids, kind)
                SELECT array_agg(g.id), 'gone'
                FROM (SELECT d.%2$I::text AS id, row_number() OVER () / 1000 AS page FROM deleted d) g
                WHERE current_setting('receiptd.stream', true) = 'on' GROUP BY g.page;%11$s
                DELETE FROM message_part p
                WHERE p.message_id = ANY (ARRAY(SELECT d.%2$I::text COLLATE "default" FROM deleted d))
                  AND (SELECT true FROM message_inbox m WHERE m.message_id = p.message_id LIMIT 1) IS NULL;
                RETURN NULL;
            END IF;
            IF current_setting('transaction_isolation') <> 'read committed' THEN
                RAISE EXCEPTION USING ERRCODE = '25001',
                    MESSAGE = format('TRUNCATE of inbox table %%s in a %%s transaction might not see all messages '
                                     'that it has to book',
                                     TG_RELID::regclass, current_setting('transaction_isolation')),
                    HINT = 'run it in a READ COMMITTED transaction';
            END IF;
            INSERT INTO campaign_retired (campaign_id, status, flags, messages)
            SELECT COALESCE(m.campaign_id, ''), m.status, m.flags, count(*) FROM message_inbox m GROUP BY 1, 2, 3;
            INSERT INTO retired_message (hash)
            SELECT hashtextextended(m.message_id COLLATE "C", 0) FROM message_inbox m;
            INSERT INTO stream_event (ids, kind)
            SELECT array_agg(g.id), 'gone'
            FROM (SELECT m.message_id AS id, row_number() OVER () / 1000 AS page FROM message_inbox m) g
            WHERE current_setting('receiptd.stream', true) = 'on' GROUP BY g.page;%12$s
            DELETE FROM message_part p USING message_inbox m WHERE m.message_id = p.message_id;
            RETURN NULL;
        END
        $body$
    $function$, current_schema(), message_id, campaign_id, status, flags, in_schema, in_table,
        format('%I.message_inbox', current_schema()), columns, cardinality(columns),
        inbox_forgotten(to_regclass(base), 'deleted', campaign_id, status),
        inbox_forgotten(to_regclass(base), 'message_inbox', 'campaign_id', 'status'));
    REVOKE ALL ON FUNCTION count_deleted() FROM PUBLIC;
    FOR target IN SELECT * FROM inbox_trigger_targets(to_regclass(base)) LOOP
        EXECUTE format('CREATE OR REPLACE TRIGGER receiptd_count_deleted AFTER DELETE ON %s '
                       'REFERENCING OLD TABLE AS deleted FOR EACH STATEMENT EXECUTE FUNCTION count_deleted(%s)',
                       target.name, target.argument);
    END LOOP;
    EXECUTE format('CREATE OR REPLACE TRIGGER receiptd_count_truncated BEFORE TRUNCATE ON %s '
                   'FOR EACH STATEMENT EXECUTE FUNCTION count_deleted()', base);
END
$install$;
