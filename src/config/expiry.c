/* The fields of an entry of inbox.expiry, and what an entry needs of the ladder.
 * src/commands/expire.c and src/serve use them. An expiry acts like a receipt: every status between
 * `status` and `to` becomes `to`, so the order of receipts does not matter. Hence nothing may stand
 * between them where a message can rightly stay. */
#include "receiptd/config/config.h"

#include <string.h>
#include <sysexits.h>

#include "receiptd/base/json.h"
#include "rows.h"

#define RECORD struct rcpt_config_expiry
static const struct rcpt_config_row rows[] = {
    TEXT("column", column, NULLABLE, NULL, 1, 63,
         "column of message_inbox that holds `value`, such as `campaign_id` or one of your own; "
         "not set: all messages"),
    TEXT("value", value, NULLABLE, NULL, 1, 255, "value of `column`"),
    TEXT("status", status, NULLABLE, NULL, 1, RCPT_LADDER_MAX_NAME,
         "messages in this status, or between it and `to`, expire; not set: SENT"),
    TEXT("to", to, NULLABLE, NULL, 1, RCPT_LADDER_MAX_NAME,
         "status that they get; not set: UNKNOWN"),
    DURATION("after", after_ms, REQUIRED, NULL, 0, 3650 * DAY,
             "time since their last change; 0s: never"),
};

const struct rcpt_config_table rcpt_config_expiry_record = RECORD_OF(rows);

/* NULL, and the error says so: no status of the ladder has this name. */
static const struct rcpt_ladder_entry *find_status(const struct rcpt_ladder *ladder,
                                                   const char *name, struct rcpt_error *error)
{
    int index = rcpt_ladder_find_name(ladder, name, strlen(name), NULL, 0);
    const struct rcpt_ladder_entry *entry =
        index >= 0 ? rcpt_ladder_entry(ladder, (size_t)index) : NULL;
    if (entry != NULL && !entry->is_flag)
        return entry;
    rcpt_error_fatal(error, EX_CONFIG, "inbox.expiry: \"%.40s\" is no status of the ladder", name);
    rcpt_error_hint(error, "`status` is SENT and `to` is UNKNOWN where they are not set");
    return NULL;
}

static bool is_on_path(const struct rcpt_ladder *ladder, int16_t code, int16_t end)
{
    while (end != RCPT_LADDER_NO_STATUS && end != code)
        end =
            rcpt_ladder_entry(ladder, (size_t)rcpt_ladder_find_code(ladder, end, NULL, 0))->parent;
    return end == code;
}

/* Why a message in this status may be where it belongs; NULL: it still waits for something. A flag
 * that implies nothing has the root's code. */
static const char *reason_to_stay(const struct rcpt_ladder *ladder,
                                  const struct rcpt_ladder_entry *status, int16_t to)
{
    if (status->terminal)
        return "it is terminal";
    for (size_t index = 0; index < rcpt_ladder_entry_count(ladder); index++) {
        const struct rcpt_ladder_entry *other = rcpt_ladder_entry(ladder, index);
        if (other->is_flag && other->top == status->code && status->parent != RCPT_LADDER_NO_STATUS)
            return "a flag implies it";
        if (!other->is_flag && other->parent == status->code &&
            !is_on_path(ladder, status->code, to))
            return "it has statuses below it";
    }
    return NULL;
}

/* A late receipt must be able to correct the status that a message got. */
static bool check_range(const struct rcpt_ladder *ladder, const struct rcpt_ladder_entry *from,
                        const struct rcpt_ladder_entry *to, struct rcpt_error *error)
{
    bool corrected = false;
    for (size_t index = 0; index < rcpt_ladder_entry_count(ladder); index++) {
        const struct rcpt_ladder_entry *entry = rcpt_ladder_entry(ladder, index);
        if (entry->is_flag)
            continue;
        corrected = corrected || entry->code > to->code;
        const char *reason = entry->code >= from->code && entry->code < to->code
                                 ? reason_to_stay(ladder, entry, to->code)
                                 : NULL;
        if (reason != NULL)
            return rcpt_error_fatal(
                error, EX_CONFIG,
                "inbox.expiry: %s (%d) lies between %s and %s and would expire, "
                "but %s",
                entry->name, entry->code, from->name, to->name, reason);
    }
    return corrected ||
           rcpt_error_fatal(error, EX_CONFIG,
                            "inbox.expiry: no status has a larger code than %s (%d), so "
                            "no late receipt could correct it",
                            to->name, to->code);
}

bool rcpt_config_check_expiry(const struct rcpt_config *config, struct rcpt_error *error)
{
    for (size_t index = 0; index < config->inbox.expiry_count; index++) {
        const struct rcpt_config_expiry *rule = &config->inbox.expiry[index];
        if ((rule->column == NULL) != (rule->value == NULL))
            return rcpt_error_fatal(error, EX_CONFIG,
                                    "inbox.expiry: column and value go together: one is not set");
        if (index > 0 && rule[-1].column == NULL)
            return rcpt_error_fatal(error, EX_CONFIG,
                                    "inbox.expiry: entry %zu is for all messages, so no later "
                                    "entry counts; put it last",
                                    index);
        const struct rcpt_ladder_entry *from =
            find_status(config->ladder, rcpt_config_expiry_status(rule), error);
        const struct rcpt_ladder_entry *to =
            from != NULL ? find_status(config->ladder, rcpt_config_expiry_to(rule), error) : NULL;
        if (to == NULL)
            return false;
        if (from->code >= to->code)
            return rcpt_error_fatal(
                error, EX_CONFIG,
                "inbox.expiry: %s (%d) does not win over %s (%d): its code must "
                "be larger",
                to->name, to->code, from->name, from->code);
        if (!check_range(config->ladder, from, to, error))
            return false;
    }
    return true;
}

const char *rcpt_config_expiry_status(const struct rcpt_config_expiry *rule)
{
    return rule->status != NULL ? rule->status : "SENT";
}

const char *rcpt_config_expiry_to(const struct rcpt_config_expiry *rule)
{
    return rule->to != NULL ? rule->to : "UNKNOWN";
}

/* ---- as a parameter ---- */

/* The configuration has been checked: both are statuses of the ladder. */
static int64_t code_of(const struct rcpt_ladder *ladder, const char *name)
{
    int index = rcpt_ladder_find_name(ladder, name, strlen(name), NULL, 0);
    RCPT_ASSERT(index >= 0);
    return rcpt_ladder_entry(ladder, (size_t)index)->code;
}

char *rcpt_config_expiry_rules(const struct rcpt_config *config)
{
    char *text = NULL;
    size_t size = 0;
    struct rcpt_json json;
    FILE *out = rcpt_open_memory(&text, &size);
    rcpt_json_init(&json, out);
    rcpt_json_begin_array(&json);
    for (size_t index = 0; index < config->inbox.expiry_count; index++) {
        const struct rcpt_config_expiry *rule = &config->inbox.expiry[index];
        rcpt_json_begin_object(&json);
        rcpt_json_put_int(&json, "n", (int64_t)index);
        rcpt_json_put_text(&json, "column", rule->column);
        rcpt_json_put_text(&json, "value", rule->value);
        rcpt_json_put_int(&json, "low", code_of(config->ladder, rcpt_config_expiry_status(rule)));
        rcpt_json_put_int(&json, "high", code_of(config->ladder, rcpt_config_expiry_to(rule)));
        rcpt_json_put_int(&json, "after", rule->after_ms);
        rcpt_json_end_object(&json);
    }
    rcpt_json_end_array(&json);
    RCPT_ASSERT(fclose(out) == 0);
    return text;
}
