-- Positions of the reader of topics: as fence() does for lanes.
CREATE OR REPLACE FUNCTION fold_topic_fence(topics text[], partitions int4[], expected int8[], next int8[])
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 1 .. cardinality(topics) LOOP
        UPDATE fold_progress p
        SET next_offset = next[i]
        WHERE p.topic = topics[i] AND p.partition = partitions[i] AND p.next_offset = expected[i];
        IF NOT FOUND THEN
            RAISE EXCEPTION USING ERRCODE = 'RD001', MESSAGE = format(
                'position of folds in topic %s partition %s: expected %s, found another', topics[i], partitions[i],
                expected[i]);
        END IF;
    END LOOP;
END
$$;
