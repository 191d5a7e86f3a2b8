#!/usr/bin/env python3
"""Proves that the simulator finds defects: plants one at a time into src/core and demands that some seed finds it.

usage: scripts/campaign simulate --mutants [--seeds N] [--only NAME]
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = ROOT / "build" / "mutants"

ENGINE, PARTITION, LANE, QUEUE, SEARCH, BUILD, RECORD, ASSIGNMENT, ROWS, RANGE = (
    f"src/core/{name}.c" for name in ("engine", "partition", "lane", "lane_queue", "lane_search", "batch_build", "record",
                                      "assignment", "assignment_rows", "assignment_range"))
COUNT, KEYS, TALLY, WOKEN, PATHS = (f"src/core/{name}.c" for name in ("count", "keys", "tally", "batch_woken", "paths"))
RULES, DEDUP, DIMENSIONS, FOLDS, FUNNEL, GATEWAYS, GROUPS, REASONS, SERIES, TIMES = (
    f"src/core/rules/{name}.c" for name in ("rules", "dedup", "dimensions", "folds", "funnel", "gateways", "groups", "reasons",
                                            "series", "times"))
DECIDED, DECIDED_COUNT = "src/postgres/decided.c", "src/postgres/decided_count.c"
# What stands for SQL and for PostgreSQL: a defect there is one of a statement.
SERVER, STATEMENTS, DECIDE, FLIGHTS = (f"tests/simulation/{name}.c" for name in ("server", "statements", "decide", "flights"))

# name: (file, [(exact old text, new text) …])
MUTANTS = {
    "dedup against expected": (PARTITION, [
        ("int64_t accepted = engine->lanes[index].positions[slot].accepted;",
         "int64_t accepted = engine->lanes[index].positions[slot].expected;"),
        ("if (record->offset < position->accepted)", "if (record->offset < position->expected)")]),
    "old epoch returns to the queue": (QUEUE, [
        ("return slot_is_assigned(&engine->slots[record->slot]) &&\n           engine->slots[record->slot].epoch == record->epoch;",
         "return slot_is_assigned(&engine->slots[record->slot]);")]),
    "fence conflict ignored": (LANE, [
        ("        engine->stats.fenced++;\n        lane_requeue(engine, lane);",
         "        engine->stats.fenced++;\n        on_committed(engine, lane, result, now_ms);\n        return;")]),
    "unknown taken for committed": (LANE, [
        ("        engine->stats.unknown++;\n        lane_requeue(engine, lane);",
         "        engine->stats.unknown++;\n        on_committed(engine, lane, result, now_ms);")]),
    "accepted not raised on idle": (PARTITION, [
        ("        position->accepted = record->offset + 1;\n", ""),
        ("        record->refs++;\n", "        record->refs++;\n        position->accepted = record->offset + 1;\n")]),
    "gap accepted while rewinding": (PARTITION, [
        ("if (slot_is_rewinding(part) && offset > part->rewind_to) {", "if (slot_is_rewinding(part) && offset < 0) {")]),
    "rewind ends below the old position": (PARTITION, [
        ("if (slot_is_rewinding(part) && offset > part->rewind_to) {", "if (slot_is_rewinding(part) && offset >= part->rewind_from) {")]),
    "rewind time-out forgotten": (PARTITION, [
        ("!slot_is_rewinding(part) || now_ms < part->rewind_deadline_ms", "!slot_is_rewinding(part) || now_ms >= 0")]),
    "queue kept when the database went back": (ENGINE, [
        ("    lane_drop(engine, lane, slot, INT64_MAX);\n    position->expected", "    position->expected")]),
    "queue kept when others went ahead": (ENGINE, [
        ("        lane_drop(engine, lane, slot, current);\n", "")]),
    "queue kept on revoke": (PARTITION, [
        ("        lane_drop(engine, &engine->lanes[index], slot, INT64_MAX);\n", "        ;\n")]),
    "no rewind when the database went back": (ENGINE, [
        ("    engine_rewind(engine, slot, current, now_ms);\n", "    (void)now_ms;\n")]),
    "folded batch kept after a resync": (LANE, [
        ("    rcpt_batch_reset(&lane->batch, RCPT_BATCH_APPLY);\n",
         "    if (lane->fences > 0 && lane->batch.kind == RCPT_BATCH_APPLY && lane->batch.record_count == record_count) {\n"
         "        lane->batch.move_count = 0;\n"
         "        plan_moves(engine, lane, record_count, true);\n"
         "        lane->in_flight = record_count;\n"
         "        submit(engine, lane, now_ms);\n"
         "        return;\n"
         "    }\n"
         "    rcpt_batch_reset(&lane->batch, RCPT_BATCH_APPLY);\n")]),
    "no resync on connect": (ENGINE, [
        ("        lane_resync(engine, &engine->lanes[index], now_ms, 0);\n    pump",
         "    {\n        lane_set_state(&engine->lanes[index], LANE_UNSYNCED);\n"
         "        lane_set_state(&engine->lanes[index], LANE_READING);\n"
         "        lane_set_state(&engine->lanes[index], LANE_READY);\n    }\n    pump")]),
    "no idle verify": (LANE, [
        ("(lane->count > 0 || now_ms - lane->verified_ms < engine->settings.verify_interval_ms)",
         "(lane->count > 0 || now_ms >= 0)")]),
    "idle advance past queued events": (LANE, [
        ("if (position->queued == engine->taken[slot].records) {", "if (position->queued >= engine->taken[slot].records) {")]),
    "epoch of a move not checked": (LANE, [
        ("        if (slot_is_assigned(&engine->slots[move->slot]) &&\n            engine->slots[move->slot].epoch == move->epoch)",
         "        if (slot_is_assigned(&engine->slots[move->slot]))")]),
    "positions older than the assignment": (ENGINE, [
        ("if (part->epoch > lane->epochs_at_read) {", "if (part->epoch > lane->epochs_at_read && now_ms < 0) {")]),
    "generation not compared": (ENGINE, [
        ("!rows[row].found || rows[row].generation != part->generation", "!rows[row].found")]),
    "lane of a reject by instance": (RECORD, [
        ("    return (uint32_t)hash & (decoder->lanes - 1);",
         "    return (uint32_t)(hash ^ ((uintptr_t)decoder >> 6)) & (decoder->lanes - 1);")]),
    "anchors not compared": (PARTITION, [
        ("if (record->timestamp_ms != part->anchor.timestamp_ms || rcpt_record_crc(record) != part->anchor.crc) {",
         "if (record->offset < 0) {")]),
    "wake with the wrong fence": (LANE, [
        ("    plan_moves(engine, lane, 0, false);\n",
         "    plan_moves(engine, lane, 0, false);\n"
         "    for (uint32_t at = 0; at < lane->batch.move_count; at++)\n"
         "        lane->batch.moves[at].next = lane->positions[lane->batch.moves[at].slot].accepted;\n")]),
    "wake forgotten when more are left": (LANE, [
        ("        lane->wake_applicable = more;\n", "        lane->wake_applicable = false;\n"),
        ("engine->settings.wake_limit;\n        break;\n    case RCPT_BATCH_EXPIRE", 
         "1;\n        lane->wake_applicable = more && now_ms < 0;\n        break;\n    case RCPT_BATCH_EXPIRE"),
        ("has_wake(lane) && has_assignment(engine)", "has_wake(lane) && has_assignment(engine) && lane->last_kind != RCPT_BATCH_WAKE")]),
    "record of a refused event skipped": (SEARCH, [
        ("    event->refused = true;\n",
         "    for (uint32_t at = 0; at < search->records; at++) {\n"
         "        struct rcpt_record *whole = sources[at].record;\n"
         "        if (event >= whole->events && event < whole->events + whole->event_count)\n"
         "            for (uint32_t each = 0; each < whole->event_count; each++)\n"
         "                whole->events[each].refused = true;\n    }\n")]),
    "a record cut in two": (LANE, [
        ("record_count, RCPT_BATCH_ALL);", "record_count, (struct rcpt_batch_range){0, engine->settings.batch_max_events});")]),
    "multiplicity lost in the fold": (BUILD, [("        codes[at - 1].count++;\n", "")]),
    "wrong sort order": (BUILD, [
        ("        return left->prefix < right->prefix ? -1 : 1;", "        return left->prefix > right->prefix ? -1 : 1;")]),
    "wait for a reading forgotten at an assignment": (RANGE, [
        ("        assignment->ranges[slot].asked_low = 0;\n",
         "        assignment->ranges[slot] = (struct range){.state = RANGE_FOLLOWED};\n")]),
    "answer to an ended assignment believed": (ASSIGNMENT, [
        ("    assignment->serial++;\n    read_now(assignment, event);\n", "    read_now(assignment, event);\n"),
        ("    assignment->serial++;\n    assignment->count = 0;\n", "    assignment->count = 0;\n")]),
    "rows read again, but Kafka stays where it is": (ASSIGNMENT, [
        ("        range_go_on(assignment, starts[index].slot, starts[index].offset);\n", "        ;\n")]),
    "missing rows not noticed": (ROWS, [("if (assignment->found.count == lanes)", "if (assignment->found.count <= lanes)")]),
    "anchor of the lane that is furthest ahead": (ROWS, [
        ("        if (row->next_offset >= lowest)\n", "        if (row->next_offset < lowest && lowest < INT64_MAX)\n")]),
    "rewind never passed on": (RANGE, [
        ("    assignment->ports.seek(assignment->ports.context, slot, offset);\n", "    (void)offset;\n"),
        ("    note(assignment, RCPT_NOTE_REASSIGN, slot, offset, 0);\n    reassign(assignment, slot, offset);\n", "    (void)offset;\n")]),
    # ---- the time between the flights
    "positions read between the flights": (LANE, [
        ("    if (!has_assignment(engine) || now_ms < lane->retry_at_ms ||\n"
         "        engine->connections[lane->connection].in_flight >= engine->settings.depth)\n",
         "    if (!has_assignment(engine) || now_ms < lane->retry_at_ms)\n")]),
    "a batch sent between the flights of another": (LANE, [
        ("    if (lane->state != LANE_READY ||\n        engine->connections[lane->connection].in_flight >= engine->settings.depth)\n",
         "    if (lane->state != LANE_READY)\n")]),
    "rows written without the stale ones being decided again": (DECIDED, [
        ("if (decided->messages[number].fate != RCPT_FATE_STALE)", "if (number < count)"),
        ("        return RCPT_FATE_STALE;", "        return RCPT_FATE_KNOWN;")]),
    "stale messages taken for absent ones": (DECIDED, [("        return RCPT_FATE_STALE;", "        return RCPT_FATE_ABSENT;")]),
    "an answer about stale messages read as one about all": (DECIDED, [
        ("return asked != NULL ? asked[place] : place;", "return asked != NULL ? place : place;")]),
    "old values from the snapshot": (DECIDE, [
        ("line->status = fold->changed ? fold->was : fold->status;", "line->status = fold->status;"),
        ("line->flags = fold->changed ? fold->had : fold->flags;", "line->flags = fold->flags;")]),
    "rows not locked until the end": (SERVER, [
        ("        if (change == CHANGE_NONE && !had_it)\n", "        if (!had_it)\n")]),
    "second flight written after the first was rolled back": (SERVER, [
        ("            sim_backend_end(sim, number, sim_backend_work_us(sim));\n        } else {",
         "            unlock_all(sim, backend);\n            backend->idle_until_us = INT64_MAX / 2;\n        } else {")]),
    "a wake that was overtaken is written": (FLIGHTS, [
        ("request->flight = is_overtaken(request) ? FLIGHT_ROLLBACK : FLIGHT_WRITE;", "request->flight = FLIGHT_WRITE;")]),
    "keys of unknown messages not undone": (DECIDED_COUNT, [
        ("            rcpt_keys_missed(keys, number);\n", "            ;\n")]),
    "keys of others undone": (KEYS, [
        ("if (keys->missed[keys->owners[place]] && keys->fates[place] == RCPT_KEY_STORED)", "if (keys->missed[keys->owners[place]])")]),
    "keys stored although they were there": (SERVER, [
        ("key->fate = twin->key_stored ? RCPT_KEY_THERE : RCPT_KEY_STORED;", "key->fate = RCPT_KEY_STORED;")]),
    "keys stored beside a transaction that has them": (SERVER, [
        ("        if (!twin->key_stored && !lock_or_wait(sim, number, &twin->key_owner))\n            return false;\n", "")]),
    "keys asked of unknown receipts kept for the next batch": (KEYS, [
        ("    memset(keys->missed, 0, batch->message_count);\n", "    memset(keys->missed, 1, batch->message_count);\n")]),
    # ---- counting
    "the later of two copies counts": (KEYS, [
        ("    sign = sign != 0 ? sign : order(a->at_us, b->at_us);\n", "    sign = sign != 0 ? sign : order(b->at_us, a->at_us);\n")]),
    "a receipt outside of the window taken for a copy": (KEYS, [
        ("if (place == NONE || keys->fates[place] == RCPT_KEY_OUTSIDE)", "if (place == NONE)")]),
    "copies counted in the funnel": (FUNNEL, [
        ("    rcpt_rule_add_codes(state, place, receipt->raw, -1);\n", "    (void)place;\n")]),
    "copies counted as receipts": (RULES, [
        ("if (rules->echoes[event] == 0 && rule->receipt != NULL)", "if (rule->receipt != NULL)")]),
    "copies not counted": (DECIDED_COUNT, [("            rcpt_rules_echo(rules, event);\n", "            ;\n")]),
    "unknown receipts not counted by gateway": (DECIDED_COUNT, [
        ("            rcpt_rules_missed(rules, number);\n", "            ;\n")]),
    "a lower status taken for the new one": (DECIDED_COUNT, [
        (".now = raised ? message->top : row->was,", ".now = row->changed ? message->top : row->was,")]),
    "flags that were there gained again": (DECIDED_COUNT, [
        ("row->changed ? message->mask & ~row->had : 0", "row->changed ? message->mask : 0")]),
    "series in the minute of the transaction": (SERIES, [
        ("place_of(state, row, receipt->raw->event->at_us)", "place_of(state, row, state->now_us)")]),
    "series of the future": ("src/core/rules/rule.c", [
        ("return minute < state->last_minute ? minute : state->last_minute;", "return minute;")]),
    "dimensions of another column": (DIMENSIONS, [
        ("rcpt_words_find(state->words, row->columns[index])", "rcpt_words_find(state->words, row->columns[0])")]),
    "columns of another rule": (RULES, [
        ("row.columns = given->columns + rules->first_columns[index];", "row.columns = given->columns;")]),
    "reasons of copies": (REASONS, [(".is_on = is_on, .receipt = on_receipt", ".is_on = is_on, .receipt = on_receipt, .echo = on_receipt")]),
    "the last gateway instead of the first": (GATEWAYS, [
        ("rcpt_text_compare(gateway->text, first->text) < 0", "rcpt_text_compare(gateway->text, first->text) > 0")]),
    "disorder by the status after the batch": (GATEWAYS, [
        ("add_disorder(state, receipt->gateway, row->given->was, code);", "add_disorder(state, receipt->gateway, row->given->now, code);")]),
    "final statuses never taken off": (GATEWAYS, [
        ("    int final = is_final(state, now) - is_final(state, was);\n",
         "    int final = is_final(state, now) > is_final(state, was);\n")]),
    "members that did not change": (GROUPS, [
        ("for (size_t group = 0; row->is_transition && group < state->settings.group_count; group++) {",
         "for (size_t group = 0; group < state->settings.group_count; group++) {")]),
    "attempts without a value in one group": (GROUPS, [
        ("if (row->columns[group].size > 0 || !is_logical)", "if (row->columns[group].size > 0 || is_logical)")]),
    "folds that are not transitions": (FOLDS, [("    if (!row->is_transition)\n        return;\n", "")]),
    "folds of two organisations as one": (FOLDS, [("    return left->org == right->org && left->campaign", "    return left->campaign"),
                                                   ("{fold->org->number,          fold->campaign->number,", "{0, fold->campaign->number,")]),
    "times of messages that were returned": (TIMES, [
        ("struct rcpt_text deliver = is_delivered ? columns[DELIVER] : RCPT_TEXT(\"\");", "struct rcpt_text deliver = columns[DELIVER];")]),
    "the place before is not left": (TIMES, [("    add(state, row, before, -1);\n", "")]),
    "cells of two campaigns as one": (TALLY, [("    return left->campaign == right->campaign && left->key == right->key &&", "    return left->key == right->key &&"),
        ("(uint64_t)place->campaign->number << 32 | place->key->number", "(uint64_t)place->key->number")]),
    "steps of the change before": (RULES, [
        ("if (rules->was == row->was && rules->now == row->now && rules->gained == row->gained)", "if (rules->was == row->was && rules->now == row->now)")]),
    "woken: the later of equal times": (WOKEN, [
        ("if (top < message->top || (top == message->top && at_us >= message->at_us))", "if (top < message->top)")]),
    "woken: keys lost": (WOKEN, [(".has_keys = woken->key != 0};", ".has_keys = false};")]),
    "woken: multiplicity lost": (WOKEN, [("        counts[at - 1]++;\n        return;\n", "        return;\n")]),
}


def make_variables():
    """The compiler's and the linker's command, as the Makefile has them."""
    target = "build/tests/simulation/test_simulation"
    subprocess.run(["make", "--no-print-directory", "simulation-programs"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    dry = subprocess.run(["make", "--no-print-directory", "-n", "-W", LANE, "V=1", target], cwd=ROOT, check=True,
                         capture_output=True, text=True).stdout
    compile_line = next(line for line in dry.splitlines() if line.strip().endswith(f"-c -o build/obj/core/lane.o {LANE}"))
    link_line = next(line for line in dry.splitlines() if f"-o {target} " in line)
    return compile_line.strip(), link_line.strip()


def build(name, compile_line, link_line):
    path, edits = MUTANTS[name]
    text = (ROOT / path).read_text()
    for old, new in edits:
        # The formatter decides where lines break, so white space does not count.
        found = list(re.finditer(r"\s+".join(re.escape(word) for word in old.split()), text))
        if len(found) != 1:
            raise SystemExit(f"mutants: {name}: {path} has this text {len(found)} times, not once: {old}")
        text = text[:found[0].start()] + new.strip("\n") + "\n" * new.endswith("\n") + text[found[0].end():]
    folder = OUT / re.sub(r"[^a-z]+", "-", name)
    folder.mkdir(parents=True, exist_ok=True)
    stem = pathlib.Path(path).stem
    (folder / f"{stem}.c").write_text(text)
    relative = folder.relative_to(ROOT)
    command = compile_line.replace(f"build/obj/core/lane.o {LANE}", f"{relative}/{stem}.o {relative}/{stem}.c")
    subprocess.run(f"{command} -w -Isrc/core -Isrc/core/rules -Isrc/postgres -Itests/simulation -Itests", shell=True, cwd=ROOT, check=True)
    # Before the archive: so the archive's own is not taken.
    own = f"build/obj/{path.removeprefix('src/').removesuffix('.c')}.o"
    command = link_line if own in link_line else link_line.replace("build/receiptd.a", f"{own} build/receiptd.a")
    command = command.replace(own, f"{relative}/{stem}.o")
    command = command.replace("-o build/tests/simulation/test_simulation", f"-o {relative}/simulate")
    subprocess.run(command, shell=True, cwd=ROOT, check=True)
    return folder / "simulate"


def hunt(name, compile_line, link_line, seeds):
    program = build(name, compile_line, link_line)
    try:
        run = subprocess.run([program, "--seeds", str(seeds), "--first"], capture_output=True, text=True, timeout=900)
    except subprocess.TimeoutExpired:
        return name, "found no end"
    found = re.search(r"^first: seed (\d+): ([\w-]+)", run.stdout, re.M)
    if found:
        return name, f"seed {found[1]}: {found[2]}"
    return name, "survived" if run.returncode == 0 else f"ended with {run.returncode}"


def main():
    parser = argparse.ArgumentParser(prog="scripts/campaign simulate --mutants")
    parser.add_argument("--seeds", type=int, default=10000)
    parser.add_argument("--only", action="append")
    arguments = parser.parse_args()
    names = [name for name in MUTANTS if not arguments.only or name in arguments.only]
    lines = make_variables()
    survivors = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, result in pool.map(lambda name: hunt(name, *lines, arguments.seeds), names):
            survivors += not result.startswith("seed")
            print(f"{name:42} {result}", flush=True)
    print(f"{len(names)} mutants, {survivors} survived")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
