-- The columns of a message's row that rules of source transitions name, as a JSON object. Long values are cut; a column
-- that does not exist is null. A plain query, so that it becomes part of the statement that asks.
CREATE OR REPLACE FUNCTION fold_columns(message text) RETURNS TABLE (columns text) LANGUAGE sql STABLE ROWS 1 AS $$
    SELECT jsonb_object_agg(c.name, left(to_jsonb(m.*) ->> c.name, 1000))::text
    FROM message_inbox m, unnest((SELECT array_agg(DISTINCT w.name)
                                  FROM fold_rule r, unnest(r.columns) AS w (name)
                                  WHERE r.source = 'transitions' AND r.removed_at IS NULL)) AS c (name)
    WHERE m.message_id = fold_columns.message
$$;
