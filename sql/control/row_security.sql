-- Tables of the inbox whose policies decide which rows we see and change: tables (their names; NULL: none). A view reads with the
-- rights of its owner, unless it is security_invoker. A hidden message counts as unknown, and as a drift of its campaign.
SELECT string_agg(DISTINCT t.oid::regclass::text, ', ') AS tables
FROM pg_class i
JOIN pg_roles u ON u.oid = CASE WHEN i.relkind = 'v' AND NOT (i.reloptions::text ~ 'security_invoker=(true|on|1|yes)') IS TRUE
                                THEN i.relowner ELSE (SELECT m.oid FROM pg_roles m WHERE m.rolname = current_user) END
CROSS JOIN LATERAL (
    SELECT i.oid
    UNION ALL
    SELECT d.refobjid
    FROM pg_rewrite w
    JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid AND d.refclassid = 'pg_class'::regclass
    WHERE w.ev_class = i.oid
) r
JOIN pg_class t ON t.oid = r.oid AND t.relkind IN ('r', 'p')
WHERE i.oid = to_regclass('message_inbox') AND t.relrowsecurity AND NOT u.rolsuper AND NOT u.rolbypassrls
  AND (t.relforcerowsecurity OR NOT pg_has_role(u.oid, t.relowner, 'USAGE'));
