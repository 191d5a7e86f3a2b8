-- Why a run of that pipeline cannot enter at a stage; NULL: it can, or stage is NULL. stages: as the pipeline's row has
-- them.
CREATE OR REPLACE FUNCTION action_stage_fault(pipeline text, stages jsonb, stage text)
RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT format('pipeline %s has no stage %s: it has %s', pipeline, left(stage, 100), (
               SELECT COALESCE(left(string_agg(k, ', ' ORDER BY (stages -> k ->> 0)::int4), 500), 'none')
               FROM jsonb_object_keys(stages) k))
    WHERE stage IS NOT NULL AND NOT COALESCE(stages ? stage, false)
$$;
