-- Moves the positions of a reader of topics: as fence() does for lanes, RD001 if another instance has moved one. Topics
-- and partitions come in order, so that two instances lock the rows in one order. reader: its name in the error;
-- progress: its table.
CREATE OR REPLACE FUNCTION topic_fence(reader text, progress regclass, topics text[], partitions int4[],
                                       expected int8[], next int8[])
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    moved int;
BEGIN
    FOR i IN 1 .. cardinality(topics) LOOP
        EXECUTE format('UPDATE %s SET next_offset = $1 '
                       'WHERE topic = $2 AND partition = $3 AND next_offset = $4', progress)
            USING next[i], topics[i], partitions[i], expected[i];
        GET DIAGNOSTICS moved = ROW_COUNT;
        IF moved = 0 THEN
            RAISE EXCEPTION USING ERRCODE = 'RD001', MESSAGE = format(
                'position of %s in topic %s partition %s: expected %s, found another', reader, topics[i], partitions[i],
                expected[i]);
        END IF;
    END LOOP;
END
$$;
