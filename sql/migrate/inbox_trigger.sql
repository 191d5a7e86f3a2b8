-- For inbox.targeted = trigger: the trigger counts the root (TARGETED), since only the platform knows when a row is born.
-- Variables: inbox_schema, inbox_table and the names there of org_id, campaign_id, status, flags. Can be run again;
-- inbox_trigger_drop.sql takes the trigger away.
SELECT install_inbox_trigger(:'inbox_schema', :'inbox_table', :'org_id', :'campaign_id', :'status', :'flags');
