-- Merges two states of a group, as {"v": {name: value}, "o": {name: values that did not fit into a full set}}: b is
-- later than a.
CREATE OR REPLACE FUNCTION fold_merge(a jsonb, kinds jsonb, most int4, b jsonb)
RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    v jsonb := COALESCE(a -> 'v', '{}');
    o jsonb := COALESCE(a -> 'o', '{}');
    name text;
    kind text;
    mine jsonb;
    theirs jsonb;
    item jsonb;
    part text;
BEGIN
    FOR name, kind IN SELECT * FROM jsonb_each_text(kinds) LOOP
        mine := v -> name;
        theirs := b -> 'v' -> name;
        IF theirs IS NULL THEN
            CONTINUE;
        ELSIF kind IN ('set', 'links') THEN
            mine := COALESCE(mine, '[]');
            FOR item IN SELECT * FROM jsonb_array_elements(theirs) LOOP
                IF mine @> jsonb_build_array(item) THEN
                    CONTINUE;
                ELSIF jsonb_array_length(mine) < (CASE kind WHEN 'links' THEN 8 ELSE most END) THEN
                    mine := mine || jsonb_build_array(item);
                ELSIF kind = 'set' THEN
                    o := jsonb_set(o, ARRAY[name], to_jsonb(COALESCE((o ->> name)::int8, 0) + 1));
                END IF;
            END LOOP;
        ELSIF kind = 'tally' THEN
            mine := COALESCE(mine, '{}');
            FOR part, item IN SELECT * FROM jsonb_each(theirs) LOOP
                mine := jsonb_set(mine, ARRAY[part],
                                  to_jsonb(COALESCE((mine ->> part)::numeric, 0) + item::text::numeric));
            END LOOP;
        ELSIF mine IS NULL THEN
            mine := theirs;
        ELSIF kind IN ('sum', 'count') THEN
            mine := to_jsonb(mine::text::numeric + theirs::text::numeric);
        ELSIF kind = 'min' THEN
            mine := LEAST(mine, theirs);
        ELSIF kind = 'max' THEN
            mine := GREATEST(mine, theirs);
        ELSIF kind = 'last' THEN
            mine := theirs;
        END IF;
        v := jsonb_set(v, ARRAY[name], mine);
    END LOOP;
    -- A part may itself have overflown.
    FOR part, item IN SELECT * FROM jsonb_each(COALESCE(b -> 'o', '{}')) LOOP
        o := jsonb_set(o, ARRAY[part], to_jsonb(COALESCE((o ->> part)::int8, 0) + item::text::int8));
    END LOOP;
    RETURN jsonb_build_object('v', v, 'o', o);
END
$$;
