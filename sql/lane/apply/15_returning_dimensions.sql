              -- Only where dimensions are counted (rules/dimensions.sql): the message's values of them. Variables: dimension_1 to dimension_3, columns of
              -- the inbox; where there are fewer dimensions, the last one again.
              , ARRAY[m.:"dimension_1"::text COLLATE "C", m.:"dimension_2"::text COLLATE "C", m.:"dimension_3"::text COLLATE "C"] AS dims
