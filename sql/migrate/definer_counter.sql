-- count_inserted(), count_deleted() and claim_push() work with the rights of a role of its own (SECURITY DEFINER): the
-- rights that are written here and no others. Code that an attacker could run in them has those, and not the owner's.
-- Variables: schema, counter_role. Can be run again; an owner has to be allowed to create in the schema at the moment
-- when it becomes owner. Comments above grants: role.sql.
REVOKE ALL ON ALL TABLES IN SCHEMA :"schema" FROM :"counter_role";
REVOKE ALL ON ALL SEQUENCES IN SCHEMA :"schema" FROM :"counter_role";
-- It names objects of the schema.
GRANT USAGE, CREATE ON SCHEMA :"schema" TO :"counter_role";
-- The triggers look up which statuses a message counts for.
GRANT SELECT (code, ancestor) ON status_path TO :"counter_role";
-- Inserted messages count at once, for their campaign and their group.
GRANT INSERT (kind, campaign_id, key, status, messages, events) ON counter_delta TO :"counter_role";
GRANT INSERT (kind, campaign_id, key, old, new, gained) ON group_delta TO :"counter_role";
GRANT USAGE ON SEQUENCE counter_delta_id_seq, group_delta_id_seq TO :"counter_role";
GRANT SELECT, INSERT ON campaign_organisation TO :"counter_role";
-- The key of a group is a hash with this salt.
GRANT SELECT (salt) ON group_salt TO :"counter_role";
-- The stream gets a tombstone for each deleted message.
GRANT INSERT (ids, kind) ON stream_event TO :"counter_role";
GRANT USAGE ON SEQUENCE stream_event_id_seq TO :"counter_role";
-- Deleted messages are booked; TRUNCATE is booked from the rows themselves.
GRANT SELECT (message_id, campaign_id, status, flags) ON message_inbox TO :"counter_role";
GRANT INSERT ON campaign_retired, retired_message TO :"counter_role";
GRANT SELECT (message_id), DELETE ON message_part TO :"counter_role";
-- Its triggers check the table that they stand on, and compute keys.
GRANT EXECUTE ON FUNCTION check_counted(oid, oid), check_inbox_columns(oid, text[]), dimension_key(text),
    group_key(bytea, text, text, text, text), partition_is_counted(oid, name)
    TO :"counter_role";
-- `claim_push()` writes the claim of a sender.
GRANT SELECT (once_key), INSERT (pipeline_id, org_id, subject, subject_hash, once_key, status, ended_at) ON run
    TO :"counter_role";
GRANT EXECUTE ON FUNCTION action_once_key(text, text, jsonb), action_subject_hash(text, text) TO :"counter_role";
-- The triggers on the inbox and `claim_push()` run with these rights and no others.
ALTER FUNCTION claim_push OWNER TO :"counter_role";
ALTER FUNCTION count_inserted() OWNER TO :"counter_role";
ALTER FUNCTION count_deleted() OWNER TO :"counter_role";
REVOKE CREATE ON SCHEMA :"schema" FROM :"counter_role";
