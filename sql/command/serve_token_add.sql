-- Stores a token. One row with what was stored (line); none: the name is taken. Parameters: $1 text name, $2 text
-- SHA-256 in hexadecimal digits, $3 text scopes as an array, $4 text organisation (NULL: all), $5 text seconds for
-- which it lasts (NULL: without end).
INSERT INTO serve_token (name, hash, scopes, org_id, expires_at)
VALUES ($1::text, decode($2::text, 'hex'), $3::text::text[], $4::text, now() + $5::text::int8 * interval '1 second')
ON CONFLICT (name) DO NOTHING
RETURNING format('token "%s": %s, organisation %s, until %s. It is shown once:', name, array_to_string(scopes, ','),
                 COALESCE('"' || org_id || '"', 'any'),
                 COALESCE(to_char(expires_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
                          'it is revoked')) AS line;
