              -- Only where dimensions are counted (rules/dimensions.sql): the keys of the message's values of them.
              -- Variables: dimension_1 to dimension_3, columns of the inbox; where there are fewer dimensions, the last
              -- one again, which is not read; dimension_kinds, an array of what they are.
              , dimension_key(m.:"dimension_1"::text COLLATE "C") AS key_1,
              CASE WHEN cardinality(:'dimension_kinds'::text[]) > 1 THEN dimension_key(m.:"dimension_2"::text COLLATE "C") END AS key_2,
              CASE WHEN cardinality(:'dimension_kinds'::text[]) > 2 THEN dimension_key(m.:"dimension_3"::text COLLATE "C") END AS key_3
