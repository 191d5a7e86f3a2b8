-- Messages of partitions that have left the inbox and are not booked yet, for audits: per campaign ('': without one)
-- how many have which status and flags. Messages of inbox_detached are not among them. It sees the snapshot of the
-- statement that calls it, so a partition that is booked meanwhile counts once. The statement has locked
-- message_inbox before, so none leaves meanwhile. Raises 55006 (object_in_use) where a DETACH CONCURRENTLY is not
-- through: then the plan of the inbox may have the partition, or not. Raises 42501 where the session may not read a
-- partition.
CREATE OR REPLACE FUNCTION detached_messages(campaigns text[])
RETURNS TABLE (campaign_id text, status int2, flags int4, messages int8)
LANGUAGE plpgsql STABLE PARALLEL RESTRICTED ROWS 100 AS $$
DECLARE
    part record;
BEGIN
    FOR part IN SELECT s.* FROM inbox_partition_state s WHERE s.state IN ('detached', 'leaving') ORDER BY s.name LOOP
        IF part.state = 'leaving' THEN
            RAISE EXCEPTION USING ERRCODE = '55006',
                MESSAGE = format('partition %s is just being detached from the inbox', part.part),
                HINT = format('try again; if its DETACH CONCURRENTLY was interrupted, run ALTER TABLE %s DETACH '
                              'PARTITION %s FINALIZE', part.inbox, part.part);
        END IF;
        IF NOT has_schema_privilege(part.part_schema::text, 'USAGE')
           OR NOT has_column_privilege(part.part, part.campaign_id, 'SELECT')
           OR NOT has_column_privilege(part.part, part.status, 'SELECT')
               OR NOT has_column_privilege(part.part, part.flags, 'SELECT') THEN
            RAISE EXCEPTION USING ERRCODE = '42501',
                MESSAGE = format('partition %s has left the inbox, role %I may not read it, and it is not booked yet: '
                                 'receiptd maintain books it',
                                 part.part, current_user);
        END IF;
        RETURN QUERY EXECUTE format('SELECT COALESCE(p.%1$I::text COLLATE "C", ''''), p.%2$I::int2, p.%3$I::int4, '
                                    'count(*) FROM ONLY %4$s p'
                                    ' WHERE COALESCE(p.%1$I::text COLLATE "C", '''') = ANY ($1) GROUP BY 1, 2, 3',
                                    part.campaign_id, part.status, part.flags,
                                    part.part) USING detached_messages.campaigns;
    END LOOP;
END
$$;
