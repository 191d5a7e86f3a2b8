-- For our own inbox, what map_inbox() makes for a mapped one: the columns of a new row.
CREATE VIEW message_inbox_new AS SELECT message_id, org_id, campaign_id FROM message_inbox;
