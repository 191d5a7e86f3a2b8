"""The defects to plant. Each entry: the file, and pairs of an old text and what takes its place.

An old text stands once in its file. White space inside it does not count, since the formatter decides where lines break; at
its ends it does. Keep old texts short: then a change of the code around them leaves them alone.

name        what `--only` takes
defect      what is wrong with it
integration-c, integration
            the tests of the slow layers that are worth running; unit tests and the simulation run anyway
witness     the program of these two that found it the last time
simulation  True: `scripts/campaign simulate --mutants` has to find it, too
"""

MUTANTS = [
    {"name": "anchors-not-compared", "integration": "test_kafka_faults.py", "simulation": True,
     "defect": "a topic that was made anew is taken for the old one",
     "file": "src/core/partition.c", "edits": [
         ("record->timestamp_ms != part->anchor.timestamp_ms || rcpt_record_crc(record) != part->anchor.crc",
          "record->offset < 0")]},
    {"name": "broken-number-taken", "integration": "test_bad_input.py",
     "defect": "the scan of common records takes a number that ends behind its point",
     "file": "src/core/record_scan.c", "edits": [
         ("!take(scan, '.') || scan_digits(scan)", "!take(scan, '.') || scan_digits(scan) || true")]},
    {"name": "commit-taken-before-sync", "integration-c": "test_connection", "integration": "test_database_faults.py",
     "defect": "a transaction is taken for committed when its last statement has succeeded, before the result of the Sync",
     "file": "src/postgres/submissions.c", "edits": [
         ("check_count(submissions->first);\n            return rcpt_submissions_take(submissions);",
          "if (submissions->first->failed)\n                return rcpt_submissions_take(submissions);"),
         ("keep(submissions, result);\n",
          "keep(submissions, result);\n"
          "            if (!submissions->first->failed && submissions->first->received == submissions->first->commands)\n"
          "                return rcpt_submissions_take(submissions);\n")]},
    {"name": "contradictions-turned-round", "integration": "test_rules.py",
     "defect": "a contradiction that won counts as lost",
     "file": "src/core/rules/gateways.c", "edits": [("code > old ? RCPT_COUNT_GATEWAY_WON", "code < old ? RCPT_COUNT_GATEWAY_WON")]},
    {"name": "cost-without-its-fraction", "integration": "test_sql_said.py", "simulation": True,
     "defect": "a cost counts its whole units alone",
     "file": "src/core/rules/costs.c", "edits": [("place, whole, rest", "place, whole, 0")]},
    {"name": "counter-before-condition", "integration": "test_sql_statements.py test_exact.py",
     "defect": "counters move to what the receipt says, before the condition has decided what the row becomes",
     "file": "src/core/count.c", "edits": [("message->top > row->was ? message->top : row->was", "message->top")]},
    {"name": "customer-of-two-channels-counted-twice", "integration": "test_sql_groups.py",
     "defect": "each message makes a customer of its own",
     "file": "sql/functions/group_key.sql", "edits": [("ELSE NULLIF(value, '') END", "ELSE NULLIF(value, '') || id END")]},
    {"name": "deleted-times-not-booked", "integration": "test_retire.py",
     "defect": "what deleted messages have counted in the histograms of times is not booked",
     "file": "sql/functions/inbox_forgotten.sql", "edits": [("CASE WHEN inbox_has_times(base)", "CASE WHEN false AND inbox_has_times(base)")]},
    {"name": "delivered-with-a-part-missing", "integration": "test_sql_parts.py test_parts.py",
     "defect": "a message in parts is delivered when all but one are",
     "file": "sql/lane/wake.sql", "edits": [("count(*) = p.parts THEN", "count(*) >= p.parts - 1 THEN")]},
    {"name": "earlier-time-leaves-its-bucket", "integration": "test_rules.py", "simulation": True,
     "defect": "a first time that gets earlier counts in its new bucket and stays in the old one",
     "file": "src/core/rules/times.c", "edits": [("\n    add(state, row, before, -1);", "")]},
    {"name": "echoes-kept-in-dimensions", "integration": "test_sql_dimensions.py test_rules.py",
     "defect": "a copy that is no event counts in the dimensions",
     "file": "src/core/rules/dimensions.c", "edits": [(".receipt = on_receipt", ".receipt = on_receipt, .echo = on_receipt")]},
    {"name": "echoes-taken-off-twice", "integration": "test_rules.py",
     "defect": "a copy of a receipt is taken off the events twice",
     "file": "src/core/rules/funnel.c", "edits": [("receipt->raw, -1", "receipt->raw, -2")]},
    {"name": "epoch-ignored", "integration": "test_rebalance.py", "witness": "test_simulation", "simulation": True,
     "defect": "events of a batch in flight over a revoke return to the queue of the next assignment",
     "file": "src/core/lane_queue.c", "edits": [(" && engine->slots[record->slot].epoch == record->epoch", "")]},
    {"name": "expiry-by-the-last-entry", "integration": "test_expire.py",
     "defect": "the last entry of inbox.expiry that fits a message counts, and not the first",
     "file": "sql/expiry/candidates.sql", "edits": [("min(f.n)", "max(f.n)")]},
    {"name": "fence-conflict-ignored", "integration": "test_rebalance.py", "simulation": True,
     "defect": "a batch that was fenced is taken for committed",
     "file": "src/core/lane.c", "edits": [
         ("engine->stats.fenced++;\n",
          "engine->stats.fenced++;\n        on_committed(engine, lane, result, now_ms);\n        return;\n")]},
    {"name": "flag-counted-before-condition", "integration": "test_sql_statements.py test_exact.py",
     "defect": "a flag counts its message again each time it is received with something new",
     "file": "src/core/count.c", "edits": [("message->mask & ~row->had", "message->mask")]},
    {"name": "folded-batch-sent-again", "integration": "test_rebalance.py", "simulation": True,
     "defect": "after a fence the folded batch is sent again with new positions, instead of being rebuilt from raw events",
     "file": "src/core/lane.c", "edits": [
         ("    rcpt_batch_reset(&lane->batch, RCPT_BATCH_APPLY);\n",
          "    if (lane->fences > 0 && lane->batch.kind == RCPT_BATCH_APPLY &&\n"
          "        lane->batch.record_count == record_count) {\n"
          "        lane->batch.move_count = 0;\n"
          "        plan_moves(engine, lane, record_count, true);\n"
          "        lane->in_flight = record_count;\n"
          "        submit(engine, lane, now_ms);\n"
          "        return;\n"
          "    }\n"
          "    rcpt_batch_reset(&lane->batch, RCPT_BATCH_APPLY);\n")]},
    {"name": "forgotten-idle-lane", "integration": "test_exact.py", "witness": "test_simulation",
     "defect": "a lane without receipts of its own never moves its position",
     "file": "src/core/lane.c", "edits": [
         ("lane->count == 0 && now_ms - lane->moved_ms", "lane->count > 0 && now_ms - lane->moved_ms")]},
    {"name": "gap-accepted-after-a-rewind", "integration": "test_database_faults.py", "witness": "test_engine_rewind", "simulation": True,
     "defect": "while a rewind is under way, records above the place it goes to are taken for a gap and accepted",
     "file": "src/core/partition.c", "edits": [
         ("slot_is_rewinding(part) && offset > part->rewind_to", "slot_is_rewinding(part) && offset < 0")]},
    {"name": "generation-not-compared-in-sql", "integration": "test_sql_statements.py test_sql_positions.py",
     "defect": "the fence takes a batch of an older generation",
     "file": "sql/functions/fence.sql", "edits": [(" AND p.generation = generations[i];", ";")]},
    {"name": "generation-not-compared", "integration": "test_start_stop.py", "simulation": True,
     "defect": "positions of another generation are believed",
     "file": "src/core/engine.c", "edits": [(" || rows[row].generation != part->generation", "")]},
    {"name": "keys-of-unknown-messages-kept", "integration": "test_rules.py test_parking.py", "simulation": True,
     "defect": "the keys of parked receipts stay stored, so the receipts are copies when they are woken",
     "file": "src/postgres/decided_count.c", "edits": [("rcpt_keys_missed(keys, number)", "(void)keys")]},
    {"name": "lane-hash-of-another-kind", "integration": "test_exact.py -k lanes_and_connections",
     "defect": "the lane of a message in C is not the one that SQL computes",
     "file": "src/core/hash.c", "edits": [("3923095u", "3923096u")]},
    {"name": "last-click-for-the-first", "integration": "test_sql_said.py", "simulation": True,
     "defect": "the first click of a message is the latest in its batch",
     "file": "src/core/rules/links.c", "edits": [
         ("!named || raw->event->at_us > first_us", "!named"),
         ("raw->event->at_us < first_us ||", "raw->event->at_us != first_us ||")]},
    {"name": "later-time-wins", "integration": "test_exact.py",
     "defect": "the time of a status is that of the last of equal receipts instead of the smallest",
     "file": "src/core/batch_build.c", "edits": [("event->at_us < message->at_us", "event->at_us > message->at_us")]},
    {"name": "letters-left-out", "integration": "test_sql_statements.py test_bad_input.py",
     "defect": "dead letters are sent only with a batch that has messages too: alone they are lost",
     "file": "src/postgres/statements.c", "edits": [("if (letter_count == 0)", "if (letter_count == 0 || batch->message_count == 0)")]},
    {"name": "lost-connection-taken-for-rolled-back", "integration": "test_sql_statements.py test_database_faults.py",
     "defect": "a batch whose connection was lost is taken for rolled back, without reading the positions again",
     "file": "src/postgres/lane_errors.c", "edits": [
         ("is_end_of_session(error->code))\n        return RCPT_ENGINE_UNKNOWN", "is_end_of_session(error->code))\n        return RCPT_ENGINE_RETRY")]},
    {"name": "lost-wake-of-parked-rows", "integration": "test_parking.py",
     "defect": "the look that found parked rows whose message exists wakes nobody",
     "file": "src/core/engine.c", "edits": [("wake_applicable |= applicable", "wake_applicable &= applicable")]},
    {"name": "lost-wake-up", "integration-c": "test_connection", "integration": "test_exact.py",
     "defect": "after a part of a batch has been written nobody waits for the socket to take the rest",
     "file": "src/postgres/connection.c", "edits": [("flushed == 1 ? UV_READABLE | UV_WRITABLE : UV_READABLE", "UV_READABLE")]},
    {"name": "machine-rule-of-the-other-kind",
     "defect": "a policy for opens decides about clicks, too",
     "file": "src/core/machine.c", "edits": [("rule->kind == kind && fits", "fits")]},
    {"name": "multiplicity-lost", "integration": "test_exact.py", "simulation": True,
     "defect": "three equal receipts of one message in a batch count once",
     "file": "src/core/batch_build.c", "edits": [("\n        codes[at - 1].count++;", "")]},
    {"name": "no-resync-on-connect", "integration": "test_database_faults.py", "simulation": True,
     "defect": "a lane goes on after a new connection without reading its positions",
     "file": "src/core/engine.c", "edits": [
         ("        lane_resync(engine, &engine->lanes[index], now_ms, 0);\n    pump",
          "    {\n"
          "        lane_set_state(&engine->lanes[index], LANE_UNSYNCED);\n"
          "        lane_set_state(&engine->lanes[index], LANE_READING);\n"
          "        lane_set_state(&engine->lanes[index], LANE_READY);\n"
          "    }\n"
          "    pump")]},
    {"name": "old-value-from-a-join", "integration": "test_sql_statements.py test_sql_apply.py test_sql_races.py",
     "defect": "the old status comes from the statement's snapshot, not from the row as it was found after a wait",
     "file": "sql/lane/decide.sql", "edits": [
         ("m.prev_status AS status", "(SELECT o.status FROM message_inbox o WHERE o.message_id = m.message_id) AS status")]},
    {"name": "parked-receipt-counted", "integration": "test_sql_statements.py test_parking.py",
     "defect": "a receipt of an unknown message is parked and counted, and counted again when it is woken",
     "file": "src/postgres/decided.c", "edits": [
         ("known && decided->messages[number].fate == RCPT_FATE_KNOWN", "known || decided->messages[number].fate == RCPT_FATE_ABSENT")]},
    {"name": "parked-row-counted-twice", "integration": "test_sql_statements.py test_sql_parking.py test_parking.py",
     "defect": "a wake counts the receipts and leaves the parked rows for the next one",
     "file": "sql/lane/wake.sql", "edits": [
         ("    DELETE FROM parked_event p\n    USING picked, unnest",
          "    SELECT p.*, k.org, p.org_id IS NULL OR COALESCE(p.org_id = k.org, false) AS fits,\n"
          "           CASE WHEN p.parts IS NOT NULL AND p.status = (SELECT s.code FROM message_status_priority s WHERE s.name = 'DELIVERED')\n"
          "                THEN p.part END AS delivered\n"
          "    FROM parked_event p, picked, unnest"),
         ("    RETURNING p.*, k.org, p.org_id IS NULL OR COALESCE(p.org_id = k.org, false) AS fits,\n"
          "              CASE WHEN p.parts IS NOT NULL AND p.status = (SELECT s.code FROM message_status_priority s WHERE s.name = 'DELIVERED')\n"
          "                   THEN p.part END AS delivered\n", "")]},
    {"name": "positions-older-than-the-assignment", "witness": "test_engine",
     "defect": "positions that were asked for before an assignment are taken for its own",
     "file": "src/core/engine.c", "edits": [
         ("part->epoch > lane->epochs_at_read", "part->epoch > lane->epochs_at_read && now_ms < 0")]},
    {"name": "prev-status-not-written", "integration": "test_sql_statements.py test_sql_apply.py",
     "defect": "the update leaves prev_status alone, so the transition starts from an old value",
     "file": "sql/lane/decide.sql", "edits": [("SET prev_status = m.status, ", "SET ")]},
    {"name": "queue-kept-when-the-database-went-back", "integration": "test_database_faults.py", "simulation": True,
     "defect": "what a lane had queued stays there although the database lost what came before it",
     "file": "src/core/engine.c", "edits": [("    lane_drop(engine, lane, slot, INT64_MAX);\n", "")]},
    {"name": "range-beyond-its-time", "integration": "test_sql_ranges.py",
     "defect": "a range moves messages that were sent after it",
     "file": "sql/lane/range_resolve.sql", "edits": [("AND m.:\"range_sent\" <= d.until", "")]},
    {"name": "ranges-of-one-person-at-once", "integration": "test_sql_ranges.py",
     "defect": "two instances resolve ranges of one person at the same time",
     "file": "sql/lane/range_lock.sql", "edits": [(" FOR UPDATE;", ";")]},
    {"name": "reasons-of-copies", "integration": "test_rules.py", "simulation": True,
     "defect": "a copy that is no event counts its reason again",
     "file": "src/core/rules/reasons.c", "edits": [(".receipt = on_receipt", ".receipt = on_receipt, .echo = on_receipt")]},
    {"name": "redelivery-accepted", "integration": "test_rebalance.py", "witness": "test_engine", "simulation": True,
     "defect": "a record that was delivered before is dropped only below the committed position, not below the accepted one",
     "file": "src/core/partition.c", "edits": [
         ("positions[slot].accepted;", "positions[slot].expected;"),
         ("record->offset < position->accepted", "record->offset < position->expected")]},
    {"name": "rewind-never-asked", "integration": "test_database_faults.py -k went_back", "simulation": True,
     "defect": "the database went back, and Kafka is not asked to go back with it",
     "file": "src/core/assignment_range.c", "edits": [
         ("    assignment->ports.seek(assignment->ports.context, slot, offset);\n", ""),
         ("slot, offset, 0);\n    reassign(assignment, slot, offset);\n", "slot, offset, 0);\n")]},
    {"name": "roll-up-loses-events", "integration": "test_sql_funnel.py",
     "defect": "the roll-up adds the messages to a total that is there and forgets the events",
     "file": "sql/control/rollup.sql", "edits": [(", events = t.events + excluded.events\n),\nnoted", "\n),\nnoted")]},
    {"name": "root-counted-by-statement", "integration": "test_sql_funnel.py",
     "defect": "the trigger counts one targeted message for each INSERT statement, not for each row",
     "file": "sql/functions/install_inbox_trigger.sql", "edits": [("i.%4$I AS flags, count(*) AS n", "i.%4$I AS flags, 1::bigint AS n")]},
    {"name": "series-forgets-corrections", "integration": "test_rules.py",
     "defect": "the series adds what a correction enters and keeps what it leaves",
     "file": "src/core/rules/series.c", "edits": [
         ("    rcpt_rule_add_steps(state, place_of(state, row, row->message->at_us), row);\n",
          "    struct rcpt_tally_place place = place_of(state, row, row->message->at_us);\n"
          "    for (uint32_t index = 0; index < row->step_count; index++) {\n"
          "        place.status = row->steps[index].code;\n"
          "        if (row->steps[index].delta > 0)\n"
          "            rcpt_tally_add(state->tally, place, row->steps[index].delta, 0);\n"
          "    }\n")]},
    {"name": "skipped-fence", "integration": "test_sql_statements.py test_sql_positions.py",
     "defect": "the fence moves positions whatever it expected to find: a zombie's batch lands",
     "file": "sql/functions/fence.sql", "edits": [
         ("AND p.generation = generations[i];\n        IF NOT FOUND", "AND p.generation = generations[i];\n        IF false")]},
    {"name": "stale-message-left-as-it-was", "integration": "test_sql_statements.py test_sql_apply.py test_sql_races.py test_exact.py",
     "defect": "a message that another writer has changed meanwhile is not decided again: what its receipts raise is lost",
     "file": "sql/lane/decide.sql", "edits": [("THEN 't'", "THEN 's'")]},
    {"name": "unknown-taken-for-committed", "integration": "test_database_faults.py", "simulation": True,
     "defect": "a batch whose connection was lost is taken for committed",
     "file": "src/core/lane.c", "edits": [
         ("engine->stats.unknown++;\n        lane_requeue(engine, lane);",
          "engine->stats.unknown++;\n        on_committed(engine, lane, result, now_ms);")]},
    {"name": "woken-receipts-not-counted", "integration": "test_sql_parking.py test_parking.py",
     "defect": "a receipt that changes no row when it is woken is not counted as an event",
     "file": "src/postgres/decided_count.c", "edits": [
         ("        rcpt_count_add(counters->count, &decided->rows[row]);\n",
          "        if (batch->kind != RCPT_BATCH_WAKE || decided->rows[row].changed)\n"
          "            rcpt_count_add(counters->count, &decided->rows[row]);\n")]},
    {"name": "wrong-sort-order", "integration": "test_sql_apply.py", "witness": "test_simulation",
     "defect": "messages of a batch are sorted by the last bytes of their ids' beginnings: two lanes lock rows in different orders",
     "file": "src/core/batch_build.c", "edits": [("__builtin_bswap64(prefix)", "prefix")]},
]

# Defects that only the simulation has to find. tests/simulation plays PostgreSQL: a defect planted there is one of a statement.
SIMULATED = [
    {"name": "accepted-not-raised-on-idle", "file": "src/core/partition.c", "edits": [
        ("        position->accepted = record->offset + 1;\n", ""),
        ("record->refs++;", "record->refs++;\n        position->accepted = record->offset + 1;")]},
    {"name": "rewind-ends-below-the-old-position", "file": "src/core/partition.c", "edits": [
        ("slot_is_rewinding(part) && offset > part->rewind_to", "slot_is_rewinding(part) && offset >= part->rewind_from")]},
    {"name": "rewind-time-out-forgotten", "file": "src/core/partition.c", "edits": [
        ("now_ms < part->rewind_deadline_ms", "now_ms >= 0")]},
    {"name": "queue-kept-when-others-went-ahead", "file": "src/core/engine.c", "edits": [
        ("lane_drop(engine, lane, slot, current);", ";")]},
    {"name": "queue-kept-on-revoke", "file": "src/core/partition.c", "edits": [
        ("lane_drop(engine, &engine->lanes[index], slot, INT64_MAX);", ";")]},
    {"name": "no-rewind-when-the-database-went-back", "file": "src/core/engine.c", "edits": [
        ("engine_rewind(engine, slot, current, now_ms);", "(void)now_ms;")]},
    {"name": "no-idle-verify", "file": "src/core/lane.c", "edits": [
        ("now_ms - lane->verified_ms < engine->settings.verify_interval_ms", "now_ms >= 0")]},
    {"name": "idle-advance-past-queued-events", "file": "src/core/lane.c", "edits": [
        ("position->queued == engine->taken[slot].records", "position->queued >= engine->taken[slot].records")]},
    {"name": "epoch-of-a-move-not-checked", "file": "src/core/lane.c", "edits": [
        (" && engine->slots[move->slot].epoch == move->epoch", "")]},
    {"name": "lane-of-a-reject-by-instance", "file": "src/core/record.c", "edits": [
        ("return (uint32_t)hash &", "return (uint32_t)(hash ^ ((uintptr_t)decoder >> 6)) &")]},
    {"name": "wake-with-the-wrong-fence", "file": "src/core/lane.c", "edits": [
        ("plan_moves(engine, lane, 0, false);",
         "plan_moves(engine, lane, 0, false);\n"
         "    for (uint32_t at = 0; at < lane->batch.move_count; at++)\n"
         "        lane->batch.moves[at].next = lane->positions[lane->batch.moves[at].slot].accepted;")]},
    {"name": "wake-forgotten-when-more-are-left", "file": "src/core/lane.c", "edits": [
        ("wake_applicable = more;", "wake_applicable = false;"),
        ("engine->settings.wake_limit;\n        break;\n    case RCPT_BATCH_EXPIRE",
         "1;\n        lane->wake_applicable = more && now_ms < 0;\n        break;\n    case RCPT_BATCH_EXPIRE"),
        ("has_wake(lane) && has_assignment(engine)", "has_wake(lane) && has_assignment(engine) && lane->last_kind != RCPT_BATCH_WAKE")]},
    {"name": "record-of-a-refused-event-skipped", "file": "src/core/lane_search.c", "edits": [
        ("event->refused = true;",
         "for (uint32_t at = 0; at < search->records; at++) {\n"
         "        struct rcpt_record *whole = sources[at].record;\n"
         "        if (event >= whole->events && event < whole->events + whole->event_count)\n"
         "            for (uint32_t each = 0; each < whole->event_count; each++)\n"
         "                whole->events[each].refused = true;\n"
         "    }")]},
    {"name": "a-record-cut-in-two", "file": "src/core/lane.c", "edits": [
        ("record_count, RCPT_BATCH_ALL", "record_count, (struct rcpt_batch_range){0, engine->settings.batch_max_events}")]},
    {"name": "order-of-ids-turned-round", "file": "src/core/batch_build.c", "edits": [
        ("left->prefix < right->prefix", "left->prefix > right->prefix")]},
    {"name": "wait-for-a-reading-forgotten-at-an-assignment", "file": "src/core/assignment_range.c", "edits": [
        ("assignment->ranges[slot].asked_low = 0;", "assignment->ranges[slot] = (struct range){.state = RANGE_FOLLOWED};")]},
    {"name": "answer-to-an-ended-assignment-believed", "file": "src/core/assignment.c", "edits": [
        ("assignment->serial++;\n    read_now", "read_now"),
        ("assignment->serial++;\n    assignment->count = 0;", "assignment->count = 0;")]},
    {"name": "rows-read-again-but-kafka-stays-where-it-is", "file": "src/core/assignment.c", "edits": [
        ("range_go_on(assignment, starts[index].slot, starts[index].offset);", ";")]},
    {"name": "missing-rows-not-noticed", "file": "src/core/assignment_rows.c", "edits": [
        ("assignment->found.count == lanes", "assignment->found.count <= lanes")]},
    {"name": "anchor-of-the-lane-that-is-furthest-ahead", "file": "src/core/assignment_rows.c", "edits": [
        ("row->next_offset >= lowest", "row->next_offset < lowest && lowest < INT64_MAX")]},
    # ---- the time between the flights
    {"name": "positions-read-between-the-flights", "file": "src/core/lane.c", "edits": [
        ("now_ms < lane->retry_at_ms || engine->connections[lane->connection].in_flight >= engine->settings.depth",
         "now_ms < lane->retry_at_ms")]},
    {"name": "a-batch-sent-between-the-flights-of-another", "file": "src/core/lane.c", "edits": [
        ("lane->state != LANE_READY || engine->connections[lane->connection].in_flight >= engine->settings.depth",
         "lane->state != LANE_READY")]},
    {"name": "rows-written-without-the-stale-ones-being-decided-again", "file": "src/postgres/decided.c", "edits": [
        ("decided->messages[number].fate != RCPT_FATE_STALE", "number < count"),
        ("return RCPT_FATE_STALE;", "return RCPT_FATE_KNOWN;")]},
    {"name": "stale-messages-taken-for-absent-ones", "file": "src/postgres/decided.c", "edits": [
        ("return RCPT_FATE_STALE;", "return RCPT_FATE_ABSENT;")]},
    {"name": "an-answer-about-stale-messages-read-as-one-about-all", "file": "src/postgres/decided.c", "edits": [
        ("asked[place] : place", "place : place")]},
    {"name": "old-values-from-the-snapshot", "file": "tests/simulation/decide.c", "edits": [
        ("fold->changed ? fold->was : fold->status", "fold->status"),
        ("fold->changed ? fold->had : fold->flags", "fold->flags")]},
    {"name": "rows-not-locked-until-the-end", "file": "tests/simulation/server.c", "edits": [
        ("change == CHANGE_NONE && !had_it", "!had_it")]},
    {"name": "second-flight-written-after-the-first-was-rolled-back", "file": "tests/simulation/server.c", "edits": [
        ("sim_backend_end(sim, number, sim_backend_work_us(sim));\n        } else {",
         "unlock_all(sim, backend);\n            backend->idle_until_us = INT64_MAX / 2;\n        } else {")]},
    {"name": "a-wake-that-was-overtaken-is-written", "file": "tests/simulation/flights.c", "edits": [
        ("is_overtaken(request) ? FLIGHT_ROLLBACK : FLIGHT_WRITE", "FLIGHT_WRITE")]},
    {"name": "keys-of-others-undone", "file": "src/core/keys.c", "edits": [
        (" && keys->fates[place] == RCPT_KEY_STORED", "")]},
    {"name": "keys-stored-although-they-were-there", "file": "tests/simulation/server.c", "edits": [
        ("twin->key_stored ? RCPT_KEY_THERE : RCPT_KEY_STORED", "RCPT_KEY_STORED")]},
    {"name": "keys-stored-beside-a-transaction-that-has-them", "file": "tests/simulation/server.c", "edits": [
        ("        if (!twin->key_stored && !lock_or_wait(sim, number, &twin->key_owner))\n            return false;\n", "")]},
    {"name": "keys-asked-of-unknown-receipts-kept-for-the-next-batch", "file": "src/core/keys.c", "edits": [
        ("memset(keys->missed, 0,", "memset(keys->missed, 1,")]},
    # ---- counting
    {"name": "the-later-of-two-copies-counts", "file": "src/core/keys.c", "edits": [
        ("order(a->at_us, b->at_us)", "order(b->at_us, a->at_us)")]},
    {"name": "a-receipt-outside-of-the-window-taken-for-a-copy", "file": "src/core/keys.c", "edits": [
        ("place == NONE || keys->fates[place] == RCPT_KEY_OUTSIDE", "place == NONE")]},
    {"name": "copies-counted-in-the-funnel", "file": "src/core/rules/funnel.c", "edits": [
        ("rcpt_rule_add_codes(state, place, receipt->raw, -1);", "(void)place;")]},
    {"name": "copies-counted-as-receipts", "file": "src/core/rules/rules.c", "edits": [("rules->echoes[event] == 0 && ", "")]},
    {"name": "copies-not-counted", "file": "src/postgres/decided_count.c", "edits": [("rcpt_rules_echo(rules, event);", ";")]},
    {"name": "unknown-receipts-not-counted-by-gateway", "file": "src/postgres/decided_count.c", "edits": [
        ("rcpt_rules_missed(rules, number);", ";")]},
    {"name": "a-lower-status-taken-for-the-new-one", "file": "src/postgres/decided_count.c", "edits": [
        (".now = raised ?", ".now = row->changed ?")]},
    {"name": "flags-that-were-there-gained-again", "file": "src/postgres/decided_count.c", "edits": [
        ("message->mask & ~row->had", "message->mask")]},
    {"name": "series-in-the-minute-of-the-transaction", "file": "src/core/rules/series.c", "edits": [
        ("receipt->raw->event->at_us", "state->now_us")]},
    {"name": "series-of-the-future", "file": "src/core/rules/rule.c", "edits": [
        ("minute < state->last_minute ? minute : state->last_minute", "minute")]},
    {"name": "dimensions-of-another-column", "file": "src/core/rules/dimensions.c", "edits": [
        ("row->columns[index]", "row->columns[0]")]},
    {"name": "columns-of-another-rule", "file": "src/core/rules/rules.c", "edits": [
        ("given->columns + rules->first_columns[index]", "given->columns")]},
    {"name": "the-last-gateway-instead-of-the-first", "file": "src/core/rules/gateways.c", "edits": [
        ("rcpt_text_compare(gateway->text, first->text) < 0", "rcpt_text_compare(gateway->text, first->text) > 0")]},
    {"name": "disorder-by-the-status-after-the-batch", "file": "src/core/rules/gateways.c", "edits": [
        ("row->given->was, code);", "row->given->now, code);")]},
    {"name": "final-statuses-never-taken-off", "file": "src/core/rules/gateways.c", "edits": [
        ("is_final(state, now) - is_final(state, was)", "is_final(state, now) > is_final(state, was)")]},
    {"name": "members-that-did-not-change", "file": "src/core/rules/groups.c", "edits": [("row->is_transition && group <", "group <")]},
    {"name": "attempts-without-a-value-in-one-group", "file": "src/core/rules/groups.c", "edits": [("|| !is_logical", "|| is_logical")]},
    {"name": "folds-that-are-not-transitions", "file": "src/core/rules/folds.c", "edits": [
        ("    if (!row->is_transition)\n        return;\n", "")]},
    {"name": "folds-of-two-organisations-as-one", "file": "src/core/rules/folds.c", "edits": [
        ("left->org == right->org && ", ""), ("{fold->org->number,", "{0,")]},
    {"name": "times-of-messages-that-were-returned", "file": "src/core/rules/times.c", "edits": [
        ("is_delivered ? columns[DELIVER] : RCPT_TEXT(\"\")", "columns[DELIVER]")]},
    {"name": "cells-of-two-campaigns-as-one", "file": "src/core/tally.c", "edits": [
        ("left->campaign == right->campaign && ", ""), ("(uint64_t)place->campaign->number << 32 | ", "(uint64_t)")]},
    {"name": "steps-of-the-change-before", "file": "src/core/rules/rules.c", "edits": [(" && rules->gained == row->gained", "")]},
    {"name": "woken-the-later-of-equal-times", "file": "src/core/batch_woken.c", "edits": [
        (" || (top == message->top && at_us >= message->at_us)", "")]},
    {"name": "woken-keys-lost", "file": "src/core/batch_woken.c", "edits": [("woken->key != 0", "false")]},
    {"name": "woken-multiplicity-lost", "file": "src/core/batch_woken.c", "edits": [("counts[at - 1]++;\n        return;", "return;")]},
]
