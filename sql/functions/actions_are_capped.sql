-- Whether any organisation has a cap of its open runs: if not, whoever begins runs does nothing more.
CREATE OR REPLACE FUNCTION actions_are_capped() RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT s.open_runs > 0 OR EXISTS (SELECT FROM org_limit o WHERE o.open_runs > 0) FROM action_setting s
$$;
