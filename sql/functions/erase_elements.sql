-- The elements of an array of stream_event that do not belong to erased messages. An array with one element for all
-- messages stays as it is.
CREATE OR REPLACE FUNCTION erase_elements(elements anyarray, ids text[], erased text[]) RETURNS anyarray
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN cardinality(elements) = cardinality(ids)
                THEN ARRAY(SELECT i.element FROM unnest(ids, elements) WITH ORDINALITY AS i (id, element, n)
                           WHERE i.id NOT IN (SELECT unnest(erased)) ORDER BY i.n)
                ELSE elements END
$$;
