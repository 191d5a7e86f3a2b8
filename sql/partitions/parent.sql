-- Puts a partitioned table in the place of the own inbox, which becomes the table message_inbox_before, in no
-- partition. Rights and owner go along; triggers do not. No variables; search_path = the schema. Within a transaction
-- that holds ACCESS EXCLUSIVE on message_inbox.
ALTER TABLE message_inbox RENAME TO message_inbox_before;
ALTER INDEX message_inbox_pkey RENAME TO message_inbox_before_pkey;
ALTER INDEX IF EXISTS message_inbox_campaign RENAME TO message_inbox_before_campaign;
CREATE TABLE message_inbox (LIKE message_inbox_before INCLUDING DEFAULTS,
                            PRIMARY KEY (message_id)) PARTITION BY RANGE (message_id);
CREATE INDEX message_inbox_campaign ON message_inbox (campaign_id);
DO $$
DECLARE
    given text;
BEGIN
    FOR given IN
        SELECT format('GRANT %s%s ON message_inbox TO %s%s', a.privilege_type, a.columns,
                      CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END,
                      CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END)
        FROM pg_class c
        CROSS JOIN LATERAL (SELECT x.*, '' AS columns FROM aclexplode(c.relacl) x
                            UNION ALL
                            SELECT x.*, format(' (%I)', t.attname)
                            FROM pg_attribute t, aclexplode(t.attacl) x
                            WHERE t.attrelid = c.oid AND NOT t.attisdropped) a
        WHERE c.oid = 'message_inbox_before'::regclass AND a.grantee <> c.relowner
    LOOP
        EXECUTE given;
    END LOOP;
    EXECUTE format('ALTER TABLE message_inbox OWNER TO %s',
                   (SELECT c.relowner::regrole FROM pg_class c WHERE c.oid = 'message_inbox_before'::regclass));
END
$$;
