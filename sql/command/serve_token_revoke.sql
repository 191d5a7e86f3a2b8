-- Takes a token away: $1 text name. One row (line); none: there is no such token.
DELETE FROM serve_token WHERE name = $1::text RETURNING format('token "%s" is revoked', name) AS line;
