-- Ids that gateways give to messages. No variables; search_path = the schema.

-- The platform inserts a row when a gateway has answered a submission; the intake looks up what a receipt names. Ids of
-- different accounts are different things, even when they are equal.
CREATE TABLE message_alias (
    channel_account text COLLATE "C" NOT NULL, -- name of the account in intake.accounts
    gateway_id text COLLATE "C" NOT NULL,
    message_id text COLLATE "C" NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(), -- for retention
    -- The part of the message that the id is of, and of how many, where the platform knows and the gateway does not
    -- say.
    part smallint,
    parts smallint,
    PRIMARY KEY (channel_account, gateway_id),
    CONSTRAINT message_alias_part
        CHECK ((part IS NULL) = (parts IS NULL) AND part BETWEEN 1 AND parts AND parts <= 255) -- both or none
) WITH (
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.02,
    autovacuum_vacuum_cost_delay = 1
);
