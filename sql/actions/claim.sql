-- One round of shards: actions_claim() says what it does and returns. src/actions/claim.c decodes its columns by
-- their order. Parameters: $1 int4[] shards, $2 text instance, $3 int4 due rows to read, $4 int4 actions to claim at
-- most, $5 int8 lease in ms, $6 text[] endpoints whose breaker is open. Capacities: $7 text[] targets, $8 int4[]
-- their capacity. Limits, each as interval (us), burst and concurrency: $9 int8, $10 int8, $11 int4 of each
-- organisation; $12 int8, $13 int8, $14 int4 of all together. Windows: $15 text zone, $16 text field of the zone.
SELECT c.action_id, c.token, c.attempt, c.run_id, c.op, c.target, c.key, c.age_ms, c.wait_ms, c.late_ms, c.body,
       c.went_on, c.deferred, c.drained, c.open_ms, c.trace, c.lookup, c.step, c.subject, c.org_id, c.campaign_id,
       c.message_id
FROM actions_claim($1::int4[], $2::text, $3::int4, $4::int4, $5::int8, $6::text[], $7::text[], $8::int4[], $9::int8,
                   $10::int8, $11::int4, $12::int8, $13::int8, $14::int4, $15::text, $16::text) c;
