/* The state of actions for `receiptd status`: how many wait and why, and the breaker of each
 * endpoint. Counts of the database are those of the metrics; a breaker is this instance's. Called
 * by src/operate/status.c. */
#include <inttypes.h>

#include "internal.h"
#include "receiptd/core/timestamp.h"

#define SHOWN_ENDPOINTS 20u /* on the page for people: those that fail */

static const char *const breaker_names[] = {[RCPT_BREAKER_CLOSED] = "closed",
                                            [RCPT_BREAKER_OPEN] = "open",
                                            [RCPT_BREAKER_PROBING] = "probing",
                                            [RCPT_BREAKER_DISABLED] = "disabled"};
static const char *const state_names[ACTIONS_STATE__COUNT] = {[ACTIONS_STORING] = "starting",
                                                              [ACTIONS_RUNNING] = "running",
                                                              [ACTIONS_STOPPING] = "stopping",
                                                              [ACTIONS_LEFT] = "stopping",
                                                              [ACTIONS_CLOSING] = "stopping"};

/* The time of the next call; false: the breaker is not open. */
static bool open_until(const struct app_actions *actions, const struct actions_endpoint *endpoint,
                       char text[28])
{
    if (endpoint->breaker.state != RCPT_BREAKER_OPEN)
        return false;
    int64_t left_ms = endpoint->breaker.open_until_ms - host_now(actions->context);
    rcpt_timestamp_format((host_wall_ms() + left_ms) / 1000 * 1000000, text);
    return true;
}

static void write_endpoint(const struct app_actions *actions,
                           const struct actions_endpoint *endpoint, struct rcpt_json *json)
{
    char until[28];
    bool open = open_until(actions, endpoint, until);
    rcpt_json_begin_object(json);
    rcpt_json_key(json, "name");
    rcpt_json_text(json, endpoint->name);
    rcpt_json_key(json, "breaker");
    rcpt_json_text(json, breaker_names[endpoint->breaker.state]);
    rcpt_json_key(json, "open_until");
    rcpt_json_text(json, open ? until : NULL);
    rcpt_json_key(json, "failures");
    rcpt_json_int(json, endpoint->breaker.failures);
    rcpt_json_key(json, "in_flight");
    rcpt_json_int(json, endpoint->in_flight);
    rcpt_json_end_object(json);
}

void actions_write(const struct actions *module, struct rcpt_json *json)
{
    const struct app_actions *actions = module->running;
    if (actions == NULL) {
        rcpt_json_null(json);
        return;
    }
    rcpt_json_begin_object(json);
    rcpt_json_key(json, "state");
    rcpt_json_text(json, state_names[actions->state]);
    rcpt_json_key(json, "in_flight");
    rcpt_json_int(json, actions->in_flight);
    rcpt_json_key(json, "held");
    rcpt_json_int(json, actions->held);
    rcpt_json_key(json, "dead");
    rcpt_json_int(json, actions->dead);
    rcpt_json_key(json, "endpoints");
    rcpt_json_begin_array(json);
    for (size_t index = 0; index < actions->endpoint_count; index++)
        write_endpoint(actions, &actions->endpoints[index], json);
    rcpt_json_end_array(json);
    rcpt_json_end_object(json);
}

static void print_endpoint(const struct app_actions *actions,
                           const struct actions_endpoint *endpoint, FILE *out)
{
    char until[28];
    bool open = open_until(actions, endpoint, until);
    fprintf(out, "                %s: %s%s%s, %u calls failed in a row\n", endpoint->name,
            endpoint->breaker.state == RCPT_BREAKER_DISABLED
                ? "disabled until a reload"
                : breaker_names[endpoint->breaker.state],
            open ? " until " : "", open ? until : "", endpoint->breaker.failures);
}

void actions_print(const struct actions *module, FILE *out)
{
    const struct app_actions *actions = module->running;
    size_t failing = 0;
    if (actions == NULL)
        return;
    fprintf(out, "actions         %s, %u in flight, %" PRId64 " held, %" PRId64 " dead\n",
            state_names[actions->state], actions->in_flight, actions->held, actions->dead);
    for (size_t index = 0; index < actions->endpoint_count; index++)
        failing += actions->endpoints[index].breaker.state != RCPT_BREAKER_CLOSED;
    fprintf(out, "endpoints       %zu, %zu fail\n", actions->endpoint_count, failing);
    for (size_t index = 0, shown = 0; index < actions->endpoint_count && shown < SHOWN_ENDPOINTS;
         index++) {
        if (actions->endpoints[index].breaker.state == RCPT_BREAKER_CLOSED)
            continue;
        print_endpoint(actions, &actions->endpoints[index], out);
        shown++;
    }
}
