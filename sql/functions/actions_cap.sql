-- How many open runs an organisation may have; NULL: no cap.
CREATE OR REPLACE FUNCTION actions_cap(org text) RETURNS int4 LANGUAGE sql STABLE AS $$
    SELECT NULLIF(COALESCE((SELECT o.open_runs FROM org_limit o WHERE o.org_id = actions_cap.org), s.open_runs), 0)
    FROM action_setting s
$$;
