-- count_inserted() and count_deleted() work with the rights of a role of its own (SECURITY DEFINER): the rights that
-- are written here and no others. Code that an attacker could run in them has those, and not the owner's. Variables:
-- schema, counter_role. Can be run again; an owner has to be allowed to create in the schema at the moment when it
-- becomes owner.
REVOKE ALL ON ALL TABLES IN SCHEMA :"schema" FROM :"counter_role";
REVOKE ALL ON ALL SEQUENCES IN SCHEMA :"schema" FROM :"counter_role";
GRANT USAGE, CREATE ON SCHEMA :"schema" TO :"counter_role";
GRANT SELECT (code, ancestor) ON status_path TO :"counter_role";
GRANT INSERT (kind, campaign_id, key, status, messages, events) ON counter_delta TO :"counter_role";
GRANT SELECT (message_id, campaign_id, status, flags) ON message_inbox TO :"counter_role"; -- what TRUNCATE takes away
GRANT INSERT (kind, campaign_id, key, old, new, gained) ON group_delta TO :"counter_role"; -- groups
GRANT SELECT (salt) ON group_salt TO :"counter_role";
GRANT INSERT ON campaign_retired, retired_message TO :"counter_role";
GRANT SELECT (message_id), DELETE ON message_part TO :"counter_role";
GRANT SELECT, INSERT ON campaign_organisation TO :"counter_role";
GRANT USAGE ON SEQUENCE counter_delta_id_seq, group_delta_id_seq TO :"counter_role";
GRANT EXECUTE ON FUNCTION check_counted(oid, oid), check_inbox_columns(oid, text[]), dimension_key(text), group_key(bytea, text, text, text, text),
    partition_is_counted(oid, name)
    TO :"counter_role";
ALTER FUNCTION count_inserted() OWNER TO :"counter_role";
ALTER FUNCTION count_deleted() OWNER TO :"counter_role";
REVOKE CREATE ON SCHEMA :"schema" FROM :"counter_role";
