-- Whether the person is suppressed in the organisation, over all campaigns: for `unless: suppressed`, and for the
-- platform's own senders. An organisation of NULL is '', as in messages without one. Nobody (NULL) is not suppressed.
CREATE OR REPLACE FUNCTION is_suppressed(org text, who text) RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
BEGIN
    RETURN EXISTS (SELECT FROM suppression_state s
                   WHERE s.key = suppression_key(COALESCE(org, ''), who) AND s.suppresses);
END
$$;
