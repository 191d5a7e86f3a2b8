-- Columns of $2 text[] that the inbox, in schema $1 text, does not have: name. It returns all of them where there is
-- no inbox yet.
SELECT c.name
FROM unnest($2::text[]) WITH ORDINALITY AS c (name, n)
WHERE NOT EXISTS (SELECT FROM pg_attribute a
                  WHERE a.attrelid = to_regclass(format('%I.message_inbox', $1::text))
                    AND a.attname = c.name::name
                    AND a.attnum > 0
                    AND NOT a.attisdropped)
ORDER BY c.n;
