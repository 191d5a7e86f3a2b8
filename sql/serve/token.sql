-- The owners of tokens: $1 text[] SHA-256 of tokens in hexadecimal digits. A row for each that is known: hash (as it
-- was given), scopes (separated by commas), org_id (NULL: all), name.
SELECT g.hash, array_to_string(t.scopes, ',') AS scopes, t.org_id, t.name
FROM unnest($1::text[]) AS g (hash)
JOIN serve_token t ON t.hash = decode(g.hash, 'hex')
WHERE t.expires_at IS NULL OR t.expires_at > now();
