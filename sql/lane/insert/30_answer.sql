      AND (SELECT true FROM inbox_detached d WHERE d.message_id = w.message_id) IS NULL
      AND NOT message_is_retired(w.message_id)
    ON CONFLICT DO NOTHING
    RETURNING 1
)
SELECT count(*) AS rows FROM made;
