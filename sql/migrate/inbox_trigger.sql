-- For inbox.targeted = trigger. A trigger counts the root (TARGETED), since only the platform knows when a row is
-- born. Two others book the rows that go. One refuses to change columns by which a row was counted. Variables:
-- inbox_schema, inbox_table and the names there of message_id, org_id, campaign_id, status, flags; dimension_kinds
-- and dimension_columns, group_kinds and group_columns, arrays. Can be run again; inbox_trigger_drop.sql takes the
-- triggers away.
SELECT install_inbox_trigger(:'inbox_schema', :'inbox_table', :'message_id',
                             :'org_id', :'campaign_id', :'status', :'flags',
                             :'dimension_kinds', :'dimension_columns', :'group_kinds', :'group_columns');
SELECT install_retired_trigger(:'inbox_schema', :'inbox_table', :'message_id', :'campaign_id', :'status', :'flags');
SELECT install_change_trigger(:'inbox_schema', :'inbox_table',
                              ARRAY[:'message_id', :'org_id', :'campaign_id'] || :'dimension_columns'::text[]
                                  || :'group_columns'::text[]);
