/* The statement that reads and changes messages, as sql/lane/decide.sql does it under READ
 * COMMITTED: candidates of its snapshot are locked one by one, and each is looked at again as it is
 * then. Called by server.c.
 */
#include <math.h>
#include <stdlib.h>

#include "database.h"

uint32_t sim_asked_count(const struct sim_request *request)
{
    return request->asked != NULL ? request->asked_count : request->fold_count;
}

struct sim_fold *sim_asked(const struct sim_request *request, uint32_t place)
{
    return &request->folds[request->asked != NULL ? request->asked[place] : place];
}

/* ---- what changes a row ---- */

static bool is_earlier(const struct sim_times *least, const struct sim_times *times)
{
    bool earlier = least->gateway != 0 && (times->gateway == 0 || least->gateway < times->gateway);
    for (int at = 0; at < SIM_TIMES; at++)
        earlier |= least->at_us[at] < times->at_us[at];
    return earlier;
}

static bool would_change(const struct sim *sim, const struct sim_fold *fold)
{
    const struct sim_message *message = &sim->traffic.messages[fold->message];
    return fold->top > message->status || (fold->mask & ~message->flags) != 0 ||
           (sim->plan.times && is_earlier(&fold->least, &message->times));
}

void sim_decide_snapshot(struct sim *sim, struct sim_request *request)
{
    for (uint32_t place = 0; place < sim_asked_count(request); place++) {
        struct sim_fold *fold = sim_asked(request, place);
        const struct sim_message *message = &sim->traffic.messages[fold->message];
        fold->known = message->exists;
        fold->retired = message->retired;
        fold->changes = fold->known && would_change(sim, fold);
        fold->status = message->status;
        fold->flags = message->flags;
        fold->life = message->life;
    }
}

/* bounded_time(): an hour ahead of the transaction at most. */
static void keep_earlier(struct sim_times *times, const struct sim_times *least, int64_t now_us)
{
    int64_t last_us = now_us + INT64_C(3600000000);
    for (int at = 0; at < SIM_TIMES; at++) {
        int64_t at_us = least->at_us[at];
        if (at_us != INT64_MAX && at_us > last_us)
            at_us = last_us;
        if (at_us < times->at_us[at])
            times->at_us[at] = at_us;
    }
    if (least->gateway != 0 && (times->gateway == 0 || least->gateway < times->gateway))
        times->gateway = least->gateway;
}

enum sim_change sim_decide_change(struct sim *sim, struct sim_request *request,
                                  struct sim_fold *fold)
{
    const struct sim_message *message = &sim->traffic.messages[fold->message];
    if (!message->exists || message->life != fold->life || !would_change(sim, fold))
        return CHANGE_NONE;
    if (message->poison)
        return CHANGE_REFUSED;
    fold->changed = true;
    fold->was = message->status;
    fold->had = message->flags;
    fold->before = fold->times = message->times;
    if (sim->plan.times)
        keep_earlier(&fold->times, &fold->least, request->now_us);
    return CHANGE_DONE;
}

/* ---- the answer ---- */

/* time_bucket() */
static void put_bucket(char text[static 8], int64_t earlier_us, int64_t later_us)
{
    text[0] = '\0';
    if (earlier_us == INT64_MAX || later_us == INT64_MAX)
        return;
    double ms = (double)(later_us - earlier_us) / 1000;
    double bucket = ceil(log(ms > 1 ? ms : 1) * (2 / log(2.0)));
    int number = later_us < earlier_us ? -1 : bucket < 79 ? (int)bucket : 79;
    snprintf(text, 8, "%d", number);
}

static void put_gateway(char text[static 8], uint8_t gateway)
{
    text[0] = '\0';
    if (gateway != 0)
        snprintf(text, 8, "g%u", gateway);
}

/* time_place() of the row before the change. */
static void put_place(char text[static 24], const struct sim_times *times)
{
    char deliver[8], open[8], gateway[8];
    put_bucket(deliver, times->at_us[SIM_SENT], times->at_us[SIM_DELIVERED]);
    put_bucket(open, times->at_us[SIM_DELIVERED], times->at_us[SIM_OPENED]);
    put_gateway(gateway, times->gateway);
    text[0] = '\0';
    if (deliver[0] != '\0' || open[0] != '\0')
        snprintf(text, 24, "%s/%s/%s", deliver, open, gateway);
}

static void fill_times(struct sim_line *line, const struct sim_fold *fold)
{
    const struct sim_times *times = &fold->times;
    put_bucket(line->deliver, times->at_us[SIM_SENT], times->at_us[SIM_DELIVERED]);
    put_bucket(line->open, times->at_us[SIM_DELIVERED], times->at_us[SIM_OPENED]);
    put_gateway(line->gateway, times->gateway);
    put_place(line->before, &fold->before);
}

static char fate_of(const struct sim_fold *fold)
{
    if (!fold->known)
        return fold->retired ? 'd' : 'a';
    return fold->changes ? 't' : 's';
}

void sim_decide_answer(struct sim *sim, struct sim_request *request)
{
    uint32_t count = sim_asked_count(request);
    (void)sim;
    free(request->lines);
    request->lines = rcpt_calloc(count + 1, sizeof(*request->lines));
    request->line_count = count;
    for (uint32_t place = 0; place < count; place++) {
        const struct sim_fold *fold = sim_asked(request, place);
        struct sim_line *line = &request->lines[place];
        line->n = place + 1;
        line->fold = (uint32_t)(fold - request->folds);
        line->fate[0] = fold->changed ? 'c' : fate_of(fold);
        line->status = fold->changed ? fold->was : fold->status;
        line->flags = fold->changed ? fold->had : fold->flags;
        if (fold->changed)
            fill_times(line, fold);
    }
}

/* ---- keys ---- */

/* dedup's window: of two days and today, and not beyond tomorrow's time of day. */
bool sim_key_is_inside(const struct sim_request *request, int64_t at_us)
{
    const int64_t day_us = INT64_C(86400000000);
    int64_t today_us = request->now_us / day_us * day_us;
    return at_us >= today_us - 2 * day_us && at_us < request->now_us + day_us;
}
