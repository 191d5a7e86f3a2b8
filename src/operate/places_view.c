/* Views of all partitions of all topics (places_view.h). Kept by host/places.c. */
#include "places_view.h"

#include <inttypes.h>

#include "receiptd/host/places.h"

/* Names are part of the JSON. */
static const char *owner_name(enum rcpt_kafka_owner owner)
{
    static const char *const names[] = {[RCPT_KAFKA_OWNER_UNKNOWN] = NULL,
                                        [RCPT_KAFKA_OWNER_NOBODY] = "nobody",
                                        [RCPT_KAFKA_OWNER_OURS] = "receiptd",
                                        [RCPT_KAFKA_OWNER_OTHER] = "other"};
    return names[owner];
}

static void write_place(struct rcpt_json *json, const char *reader, const struct host_place *place)
{
    rcpt_json_begin_object(json);
    rcpt_json_put_text(json, "reader", reader);
    rcpt_json_put_text(json, "topic", place->topic);
    rcpt_json_put_known(json, "partition", place->partition);
    rcpt_json_put_text(json, "owner", owner_name(place->owner));
    rcpt_json_put_text(json, "member", place->member);
    rcpt_json_put_known(json, "position", place->position);
    rcpt_json_put_known(json, "begins", place->low);
    rcpt_json_put_known(json, "ends", place->high);
    rcpt_json_put_known(json, "lag_records", place->lag);
    rcpt_json_end_object(json);
}

/* Writes all partitions of all topics, on any instance. */
void places_write(const struct host_context *context, struct rcpt_json *json)
{
    struct host_place place;
    rcpt_json_key(json, "topics");
    rcpt_json_begin_array(json);
    for (const struct host_places *places = context->places; places != NULL;
         places = host_places_next(places))
        for (size_t index = 0; host_places_get(places, index, &place); index++)
            write_place(json, host_places_reader(places), &place);
    rcpt_json_end_array(json);
}

const char *places_describe_lag(int64_t lag, char out[PLACES_LAG_BYTES])
{
    if (lag >= 0)
        snprintf(out, PLACES_LAG_BYTES, "%" PRId64 " records", lag);
    else
        snprintf(out, PLACES_LAG_BYTES, "an unknown number of records");
    return out;
}

/* One line: the number of a reader's partitions by owner, and the lag of all of them. A reader
 * without topics, such as folds of transitions alone, has no line. */
static void print_places(const struct host_places *places, FILE *out)
{
    unsigned owners[RCPT_KAFKA_OWNER_OTHER + 1] = {0};
    struct host_place place;
    int64_t lag = 0;
    char shown[PLACES_LAG_BYTES];
    size_t count = 0;
    for (; host_places_get(places, count, &place); count++) {
        owners[place.owner]++;
        lag = lag < 0 || place.lag < 0 ? -1 : lag + place.lag;
    }
    if (count == 0)
        return;
    fprintf(out,
            "%-15s %zu partitions: %u with receiptd, %u with others, %u with nobody, %u not "
            "known; %s behind\n",
            host_places_reader(places), count, owners[RCPT_KAFKA_OWNER_OURS],
            owners[RCPT_KAFKA_OWNER_OTHER], owners[RCPT_KAFKA_OWNER_NOBODY],
            owners[RCPT_KAFKA_OWNER_UNKNOWN], places_describe_lag(lag, shown));
}

void places_print(const struct host_context *context, FILE *out)
{
    for (const struct host_places *places = context->places; places != NULL;
         places = host_places_next(places))
        print_places(places, out);
}
