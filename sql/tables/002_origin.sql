-- What a parked receipt says about its origin. With account and gateway_id it finds its message when an alias lands,
-- org_id is compared with that of the message, and campaign_id is for the row that `unknown: insert` makes. No
-- variables; search_path = the schema.
ALTER TABLE parked_event
    ADD COLUMN org_id text COLLATE "C",
    ADD COLUMN account text COLLATE "C", -- that the event names as its gateway: channel_account of message_alias
    ADD COLUMN campaign_id text COLLATE "C",
    ADD COLUMN gateway_id text COLLATE "C"; -- under which it came; equal to message_id: it waits for an alias

-- Which organisations have messages in a campaign. Appended by count_inserted() when it sees a pair that is not there:
-- two transactions may both append it, and neither waits for the other.
CREATE TABLE campaign_organisation (
    campaign_id text COLLATE "C" NOT NULL,
    org_id text COLLATE "C" NOT NULL -- '': messages without one
);
CREATE INDEX campaign_organisation_campaign ON campaign_organisation (campaign_id, org_id);

-- Has another parameter now.
DROP FUNCTION IF EXISTS install_inbox_trigger(text, text, text, text, text);

INSERT INTO schema_version (version) VALUES (2) ON CONFLICT DO NOTHING;
