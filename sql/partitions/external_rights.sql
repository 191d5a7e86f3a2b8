-- Lets the roles that read inbox_partition read the counted columns of its partitions, and those of first times,
-- where the session may give that. Then their audits count a partition that has left and is not booked yet. No
-- variables; search_path = the schema.
DO $$
DECLARE
    given text;
BEGIN
    FOR given IN
        SELECT format('GRANT SELECT (%I, %I, %I%s) ON %s TO %I', s.campaign_id, s.status, s.flags,
                      CASE WHEN inbox_has_times(s.part)
                           THEN ', first_gateway, first_sent_at, first_delivered_at, first_opened_at' END,
                      s.part, r.rolname)
        FROM inbox_partition_state s
        JOIN pg_class t ON t.oid = 'inbox_partition'::regclass
        CROSS JOIN LATERAL aclexplode(t.relacl) a
        JOIN pg_roles r ON r.oid = a.grantee
        WHERE s.state = 'attached' AND a.privilege_type = 'SELECT' AND pg_has_role(s.owner, 'USAGE')
          AND (NOT has_column_privilege(r.oid, s.part::oid, s.campaign_id::text, 'SELECT')
               OR CASE WHEN inbox_has_times(s.part)
                       THEN NOT has_column_privilege(r.oid, s.part::oid, 'first_delivered_at', 'SELECT') END)
    LOOP
        EXECUTE given;
    END LOOP;
END
$$;
