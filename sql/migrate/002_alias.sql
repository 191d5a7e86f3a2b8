-- Version 2: ids that gateways give to messages. The platform inserts a row when a gateway has answered a submission; the
-- intake looks up what a receipt names. Ids of different accounts are different things, even when they are equal.
CREATE TABLE message_alias (
    channel_account text COLLATE "C" NOT NULL,  -- name of the account in intake.accounts
    gateway_id text COLLATE "C" NOT NULL,
    message_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (channel_account, gateway_id)
);

INSERT INTO schema_version (version) VALUES (2);
