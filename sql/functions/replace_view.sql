-- Makes a view of ours, or makes it again; also where columns of it go or change their types, which CREATE OR REPLACE cannot do. Its
-- grants stay. Called by map_inbox().
CREATE OR REPLACE FUNCTION replace_view(name text, query text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    grants text[];
    given text;
BEGIN
    EXECUTE format('CREATE OR REPLACE VIEW %I AS %s', name, query);
EXCEPTION WHEN invalid_table_definition THEN
    SELECT array_agg(format('GRANT %s%s ON %I TO %s%s', a.privilege_type, a.columns, name,
                            CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END,
                            CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END))
    INTO grants
    FROM (SELECT x.*, '' AS columns FROM pg_class c, aclexplode(c.relacl) x WHERE c.oid = to_regclass(quote_ident(name))
          UNION ALL
          SELECT x.*, format(' (%I)', t.attname) FROM pg_attribute t, aclexplode(t.attacl) x
          WHERE t.attrelid = to_regclass(quote_ident(name)) AND t.attname IN ('message_id', 'org_id', 'campaign_id', 'status', 'prev_status',
                                                                              'flags', 'prev_flags', 'status_at', 'updated_at')) a;
    EXECUTE format('DROP VIEW %I', name);
    EXECUTE format('CREATE VIEW %I AS %s', name, query);
    FOREACH given IN ARRAY COALESCE(grants, '{}') LOOP
        EXECUTE given;
    END LOOP;
END
$$;
