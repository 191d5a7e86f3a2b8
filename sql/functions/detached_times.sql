-- As detached_messages(), for histograms of times (counters.times): of the campaigns (NULL: all) how many messages
-- count where (time_place()). A partition without the columns has none that counts. Raises as detached_messages() does.
CREATE OR REPLACE FUNCTION detached_times(campaigns text[])
RETURNS TABLE (campaign_id text, place text, messages int8) LANGUAGE plpgsql STABLE PARALLEL RESTRICTED ROWS 100 AS $$
DECLARE
    part record;
BEGIN
    FOR part IN SELECT s.*
                FROM inbox_partition_state s
                WHERE s.state IN ('detached', 'leaving') AND inbox_has_times(s.part)
                ORDER BY s.name LOOP
        IF part.state = 'leaving' THEN
            RAISE EXCEPTION USING ERRCODE = '55006',
                MESSAGE = format('partition %s is just being detached from the inbox', part.part),
                HINT = format('try again; if its DETACH CONCURRENTLY was interrupted, run ALTER TABLE %s DETACH '
                              'PARTITION %s FINALIZE', part.inbox, part.part);
        END IF;
        IF NOT has_schema_privilege(part.part_schema::text, 'USAGE')
           OR NOT has_column_privilege(part.part, part.campaign_id, 'SELECT')
           OR NOT has_column_privilege(part.part, 'first_delivered_at', 'SELECT') THEN
            RAISE EXCEPTION USING ERRCODE = '42501',
                MESSAGE = format('partition %s has left the inbox, role %I may not read its first times, and it is '
                                 'not booked yet: receiptd maintain books it',
                                 part.part, current_user);
        END IF;
        RETURN QUERY EXECUTE format($statement$
            SELECT COALESCE(p.%1$I::text COLLATE "C", ''),
                   time_place(p.first_gateway,
                              CASE WHEN p.%3$I IN (SELECT s.code
                                                   FROM status_path s
                                                   JOIN message_status_priority d ON d.code = s.ancestor
                                                   WHERE d.name = 'DELIVERED') THEN p.first_sent_at END,
                              p.first_delivered_at, p.first_opened_at),
                   count(*)
            FROM ONLY %2$s p
            WHERE $1 IS NULL OR COALESCE(p.%1$I::text COLLATE "C", '') = ANY ($1)
            GROUP BY 1, 2$statement$,
            part.campaign_id, part.part, part.status) USING detached_times.campaigns;
    END LOOP;
END
$$;
