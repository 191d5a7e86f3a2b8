-- An existing table as the inbox: map_inbox() makes the view message_inbox over it. Can be run again. Variables:
-- inbox_schema, inbox_table and inbox_columns, JSON (src/commands/inbox/place.h).
SELECT map_inbox(:'inbox_schema', :'inbox_table', :'inbox_columns');
