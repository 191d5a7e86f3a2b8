/* Keys of the section `actions` that functions of the database need, as JSON for actions_settings()
 * (sql/functions). Called by actions.c where it stores the pipelines. */
#include "internal.h"
#include "receiptd/base/error.h"
#include "receiptd/base/json.h"

/* Two arrays side by side, since an SQL function takes no list of records. */
static void write_caps(const struct rcpt_config *config, struct rcpt_json *json)
{
    rcpt_json_key(json, "caps");
    rcpt_json_begin_array(json);
    for (size_t index = 0; index < config->actions.subject_caps_count; index++)
        rcpt_json_int(json, config->actions.subject_caps[index].max);
    rcpt_json_end_array(json);
    rcpt_json_key(json, "cap_units");
    rcpt_json_begin_array(json);
    for (size_t index = 0; index < config->actions.subject_caps_count; index++)
        rcpt_json_text(json,
                       config->actions.subject_caps[index].per == RCPT_CAP_DAY ? "day" : "week");
    rcpt_json_end_array(json);
}

char *actions_settings(const struct rcpt_config *config)
{
    static const char *const open_runs[] = {[RCPT_BEYOND_REFUSE] = "refuse",
                                            [RCPT_BEYOND_DEFER] = "defer",
                                            [RCPT_BEYOND_DROP] = "drop"};
    char *text = NULL;
    size_t size = 0;
    struct rcpt_json json;
    FILE *out = rcpt_open_memory(&text, &size);
    rcpt_json_init(&json, out);
    rcpt_json_begin_object(&json);
    rcpt_json_put_int(&json, "open_runs", config->actions.open_runs);
    rcpt_json_put_text(&json, "beyond_open_runs", open_runs[config->actions.beyond_open_runs]);
    write_caps(config, &json);
    rcpt_json_put_text(&json, "beyond_subject_cap",
                       config->actions.beyond_subject_cap == RCPT_BEYOND_PASS ? "pass" : "wait");
    rcpt_json_put_text(&json, "zone", config->actions.zone);
    rcpt_json_put_text(&json, "zone_field", config->actions.zone_field);
    rcpt_json_end_object(&json);
    RCPT_ASSERT(fclose(out) == 0);
    return text;
}
