-- Whether a run is a customer's: by its subject, by what once_per remembers of it, or by what an import brought. A
-- claim (claim_push()) is the customer's if one of its values is. customer_column: of the inbox. Where it or the
-- customer is NULL, no run is. A key of more than 1000 bytes is a hash, and says nothing (action_once_key()).
CREATE OR REPLACE FUNCTION erase_run_is_of(r run, customer text, customer_column text) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT COALESCE(
        r.data ->> customer_column = customer
        OR (r.pipeline_id = 0 AND CASE WHEN customer_column IS NULL THEN false
                                       WHEN left(r.once_key, 1) = '[' THEN r.once_key::jsonb - 0 - 0 ? customer
                                       ELSE r.subject = customer END)
        OR (r.subject = customer OR (left(r.once_key, 1) = '[' AND position(to_json(customer)::text IN r.once_key) > 0))
           AND EXISTS (SELECT FROM pipeline p
                       WHERE p.id = r.pipeline_id
                         AND (r.subject = customer AND p.subject_field IN (customer_column, 'subject')
                              OR EXISTS (
                                  SELECT FROM unnest(p.once_fields) WITH ORDINALITY AS f (name, n)
                                  WHERE CASE f.name WHEN 'subject' THEN p.subject_field ELSE f.name END
                                        IN (customer_column, 'subject')
                                    AND CASE WHEN left(r.once_key, 1) = '[' THEN r.once_key::jsonb
                                             ->> (f.n + (p.push IS NOT NULL)::int4)::int4 END
                                        = customer))), false)
$$;
