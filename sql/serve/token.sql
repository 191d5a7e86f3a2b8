-- Who asks: $1 text SHA-256 of the token in hexadecimal digits. One row, or none: scopes (separated by commas), org_id (NULL: all), name.
SELECT array_to_string(t.scopes, ',') AS scopes, t.org_id, t.name
FROM serve_token t
WHERE t.hash = decode($1::text, 'hex') AND (t.expires_at IS NULL OR t.expires_at > now());
