-- Tokens by name, one line each.
SELECT format('%s  %s  %s  made %s by %s  %s', name, array_to_string(scopes, ','),
              COALESCE('organisation "' || org_id || '"', 'all organisations'),
              to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD'), created_by,
              CASE WHEN expires_at IS NULL THEN 'does not expire' WHEN expires_at <= now() THEN 'is over'
                   ELSE 'until ' || to_char(expires_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') END) AS line
FROM serve_token
ORDER BY name;
