-- As fold_merge, where b holds nothing but counts by status, of four statuses at most, whose names are listed in b's
-- "k": the common case, without a loop in PL/pgSQL. NULL: this is not that case.
CREATE OR REPLACE FUNCTION fold_sum(a jsonb, b jsonb) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    k jsonb := b -> 'k';
    t jsonb := a #> '{v,""}';
    u jsonb := b #> '{v,""}';
BEGIN
    IF k IS NULL OR t IS NULL THEN
        RETURN CASE WHEN k IS NOT NULL AND a = '{}' THEN b END;
    END IF;
    RETURN jsonb_set(a, '{v,""}', t || CASE jsonb_array_length(k)
        WHEN 0 THEN '{}'::jsonb
        WHEN 1 THEN jsonb_build_object(
            k ->> 0, COALESCE((t -> (k ->> 0))::int8, 0) + (u -> (k ->> 0))::int8)
        WHEN 2 THEN jsonb_build_object(
            k ->> 0, COALESCE((t -> (k ->> 0))::int8, 0) + (u -> (k ->> 0))::int8,
            k ->> 1, COALESCE((t -> (k ->> 1))::int8, 0) + (u -> (k ->> 1))::int8)
        WHEN 3 THEN jsonb_build_object(
            k ->> 0, COALESCE((t -> (k ->> 0))::int8, 0) + (u -> (k ->> 0))::int8,
            k ->> 1, COALESCE((t -> (k ->> 1))::int8, 0) + (u -> (k ->> 1))::int8,
            k ->> 2, COALESCE((t -> (k ->> 2))::int8, 0) + (u -> (k ->> 2))::int8)
        WHEN 4 THEN jsonb_build_object(
            k ->> 0, COALESCE((t -> (k ->> 0))::int8, 0) + (u -> (k ->> 0))::int8,
            k ->> 1, COALESCE((t -> (k ->> 1))::int8, 0) + (u -> (k ->> 1))::int8,
            k ->> 2, COALESCE((t -> (k ->> 2))::int8, 0) + (u -> (k ->> 2))::int8,
            k ->> 3, COALESCE((t -> (k ->> 3))::int8, 0) + (u -> (k ->> 3))::int8) END);
END
$$;
