-- An existing table as the inbox: map_inbox() makes the view message_inbox over it. Variables: inbox_schema,
-- inbox_table and the names of the columns there: message_id, org_id, campaign_id, status, prev_status, flags,
-- prev_flags, status_at, updated_at, created_at ('': the table has none). Can be run again.
SELECT map_inbox(:'inbox_schema', :'inbox_table', :'message_id', :'org_id', :'campaign_id', :'status', :'prev_status',
                 :'flags', :'prev_flags', :'status_at', :'updated_at', :'created_at');
