-- Writes down the decision of a push: once, whoever decides. stage: a variant's; NULL: nobody. by: who decides.
-- Returns whether this call decided. The figures of this moment are kept with the decision.
CREATE OR REPLACE FUNCTION push_decide(push text, stage text, by text, now_at timestamptz) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE push p
    SET decided_at = now_at, winner = push_decide.stage, decided_by = push_decide.by,
        figures = (SELECT jsonb_agg(jsonb_build_object('stage', f.stage, 'numerator', f.numerator,
                                                       'denominator', f.denominator) ORDER BY f.nth)
                   FROM push_figures(p.rule) f)
    WHERE p.name = push_decide.push AND p.decided_at IS NULL;
    RETURN FOUND;
END
$$;
