/* `between`: the hours and days in which the calls of a pipeline or an action may begin. The
 * database knows the zones and finds openings (sql/functions/action_turns.sql). Called by
 * pipelines.c. */
#include "pipelines_internal.h"

#include <string.h>
#include <time.h>

#include "receiptd/config/value.h"

#define DAY_S 86400
/* A shorter window would be closed before the calls of a claim have begun. */
#define SHORTEST_S 10

/* "09:00", or "09:00:30", as a second of the day. Returns what follows; NULL: it is no time. */
static const char *read_time(const char *text, int *second)
{
    struct tm time = {0};
    if (strncmp(text, "24:00", 5) == 0) { /* the end of the day, which strptime() does not know */
        *second = DAY_S;
        return text + 5;
    }
    const char *end = strptime(text, "%H:%M:%S", &time);
    if (end == NULL)
        end = strptime(text, "%H:%M", &time);
    *second = (time.tm_hour * 60 + time.tm_min) * 60 + time.tm_sec;
    return end;
}

/* A window that ends before it begins ends on the next day. */
static int length_of(const struct window *window)
{
    return window->till_s - window->from_s + (window->till_s < window->from_s ? DAY_S : 0);
}

static bool read_hours(struct compiler *compiler, const yaml_node_t *node, struct window *window)
{
    const char *text = "";
    if (!pipelines_read_text(compiler, node, "between", &text))
        return false;
    const char *end = read_time(text, &window->from_s);
    end = end != NULL && *end == '-' ? read_time(end + 1, &window->till_s) : NULL;
    if (end == NULL || *end != '\0')
        return pipelines_fail(compiler, node,
                              "between: \"%.40s\" are no hours, such as 09:00-20:00 or 22:00-06:00",
                              text);
    if (window->from_s == DAY_S)
        return pipelines_fail(compiler, node, "between: the day ends at 24:00, so begin at 00:00");
    if (length_of(window) < SHORTEST_S)
        return pipelines_fail(compiler, node,
                              "between: \"%.40s\" is shorter than %d s; all day is 00:00-24:00",
                              text, SHORTEST_S);
    if (window->till_s == 0)
        window->till_s = DAY_S;
    return true;
}

static bool read_day(struct compiler *compiler, const yaml_node_t *node, struct window *window)
{
    static const char *const days[] = {"", "mon", "tue", "wed", "thu", "fri", "sat", "sun"};
    const char *text = "";
    if (!pipelines_read_text(compiler, node, "between.days", &text))
        return false;
    for (unsigned day = 1; day < RCPT_COUNT_OF(days); day++) {
        if (strcmp(text, days[day]) == 0) {
            window->days |= 1u << day;
            return true;
        }
    }
    return pipelines_fail(compiler, node,
                          "between.days: there is no day \"%.40s\": mon tue wed thu fri sat sun",
                          text);
}

static bool read_days(struct compiler *compiler, yaml_node_t *node, struct window *window)
{
    if (!pipelines_check_texts(compiler, node, "between.days", false))
        return false;
    if (node == NULL || node->type == YAML_SCALAR_NODE)
        return node == NULL || read_day(compiler, node, window);
    for (const yaml_node_item_t *item = node->data.sequence.items.start;
         item < node->data.sequence.items.top; item++)
        if (!read_day(compiler, pipelines_node(compiler, *item), window))
            return false;
    return true;
}

static bool read_smooth(struct compiler *compiler, const yaml_node_t *node, struct window *window)
{
    if (node == NULL)
        return true;
    if (!pipelines_read_duration(compiler, node, "between.smooth", &window->smooth_ms))
        return false;
    return window->smooth_ms <= length_of(window) * INT64_C(1000) ||
           pipelines_fail(compiler, node, "between.smooth: \"%.40s\" is longer than the window",
                          rcpt_config_scalar(node));
}

/* An action's window takes nothing over from that of its pipeline. */
bool pipelines_read_window(struct compiler *compiler, yaml_node_t *node, struct window *window)
{
    if (node == NULL)
        return true;
    *window = (struct window){.till_s = DAY_S};
    if (node->type == YAML_SCALAR_NODE)
        return read_hours(compiler, node, window);
    if (!pipelines_check_keys(compiler, node, "between", "hours days smooth hour_field"))
        return false;
    const yaml_node_t *hours = pipelines_member(compiler, node, "hours");
    const yaml_node_t *hour_field = pipelines_member(compiler, node, "hour_field");
    yaml_node_t *days = pipelines_member(compiler, node, "days");
    if (hours == NULL && days == NULL)
        return pipelines_fail(compiler, node, "between needs hours, days, or both");
    return (hours == NULL || read_hours(compiler, hours, window)) &&
           read_days(compiler, days, window) &&
           read_smooth(compiler, pipelines_member(compiler, node, "smooth"), window) &&
           (hour_field == NULL ||
            pipelines_read_field(compiler, hour_field, "between.hour_field", &window->hour_field));
}

/* Only calls have a window: theirs, or that of the pipeline. */
bool pipelines_read_between(struct compiler *compiler, const yaml_node_t *node, struct step *step)
{
    yaml_node_t *between = pipelines_member(compiler, node, "between");
    if (step->op == OP_WEBHOOK || step->op == OP_PRODUCE) {
        step->window = compiler->window;
        return pipelines_read_window(compiler, between, &step->window);
    }
    return between == NULL ||
           pipelines_fail(compiler, between, "between goes with webhook and produce, not with %s",
                          pipelines_op_name(step->op));
}
