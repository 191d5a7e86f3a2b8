-- How long the oldest row of the stream has waited: seconds (0: none waits), and unknown: columns among $1 text[] that
-- the inbox does not have (NULL: none).
SELECT COALESCE((SELECT GREATEST(extract(epoch FROM now() - e.at), 0.001)
                 FROM stream_event e ORDER BY e.id LIMIT 1), 0)::float8 AS seconds,
       (SELECT string_agg(w.name, ', ' ORDER BY w.name)
        FROM unnest($1::text[]) AS w (name)
        WHERE NOT EXISTS (SELECT FROM pg_attribute a
                          WHERE a.attrelid = 'message_inbox'::regclass AND a.attname = w.name AND a.attnum > 0
                            AND NOT a.attisdropped)) AS unknown;
