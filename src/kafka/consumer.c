/* The consumer's life, its handles on the loop, and the events that are not messages.
 *
 * Life: OPEN, then CLOSE_ASKED, LEAVING (the group), DESTROYING (the handle, in a thread), ENDING
 * (the loop's handles). librdkafka writes to one eventfd for all queues, and only when an empty
 * queue gets its first event. So a turn that stops before a queue is empty schedules another
 * (`again`), and a timer finds missed events. Polling also shows the group that the process is
 * alive when there is nothing to read. Called by receipts/consume.c and the readers of topics.
 */
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "internal.h"

/* The tick also bounds the delay when librdkafka misses a wake-up: delays of 250 ms were seen in
 * the 99th percentile. */
#define TICK_MS          10
#define CLOSING_TICK_MS  5
#define CONTROL_EVENTS   100
#define LOG_EVENTS       100
#define DESTROY_FLOOR_MS 200 /* for destroying the handle, even if leaving took all the time */

/* ---- events ---- */

static const char *log_level_word(int level)
{
    return level <= 3 ? "error" : level <= 4 ? "warning" : "notice";
}

/* librdkafka's own lines, as it words them. Refused connections and the like come as errors too. */
static void on_log(rd_kafka_event_t *event)
{
    const char *facility, *text;
    int level;
    if (rd_kafka_event_log(event, &facility, &text, &level) != 0)
        return;
    if (level >= 7 || strcmp(facility, "FAIL") == 0 || strcmp(facility, "ERROR") == 0)
        rcpt_log_debug("kafka", "librdkafka: %s: %s", facility, text);
    else
        rcpt_log_info("kafka", "librdkafka %s: %s: %s", log_level_word(level), facility, text);
}

/* librdkafka's log lines come through a queue, since its threads must not use our log. */
static void serve_logs(struct rcpt_kafka *kafka)
{
    for (int i = 0; i < LOG_EVENTS; i++) {
        rd_kafka_event_t *event = rd_kafka_queue_poll(kafka->logs, 0);
        if (event == NULL)
            return;
        if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_LOG)
            on_log(event);
        rd_kafka_event_destroy(event);
    }
}

/* Events of the control queue. */
static void dispatch(struct rcpt_kafka *kafka, rd_kafka_event_t *event)
{
    switch (rd_kafka_event_type(event)) {
    case RD_KAFKA_EVENT_REBALANCE:
        rcpt_kafka_on_rebalance(kafka, event);
        break;
    case RD_KAFKA_EVENT_ERROR:
        rcpt_kafka_on_error(kafka, rd_kafka_event_error(event), rd_kafka_event_error_string(event),
                            rd_kafka_event_error_is_fatal(event) != 0);
        break;
    case RD_KAFKA_EVENT_STATS:
        rcpt_log_debug("kafka", "statistics: %s", rd_kafka_event_stats(event));
        break;
    default: /* a record of a partition that has just been given back */
        break;
    }
}

/* True: stopped before the queue was empty. */
static bool serve_control(struct rcpt_kafka *kafka)
{
    for (int i = 0; i < CONTROL_EVENTS; i++) {
        rd_kafka_event_t *event = rd_kafka_queue_poll(kafka->control, 0);
        if (event == NULL)
            return false;
        dispatch(kafka, event);
        rd_kafka_event_destroy(event);
    }
    return true;
}

static void close_step(struct rcpt_kafka *kafka);

/* Everything that is due: control before messages, moves in between. */
static void turn(struct rcpt_kafka *kafka)
{
    uv_idle_stop(&kafka->again);
    bool more = false;
    if (kafka->handle != NULL && kafka->control != NULL) {
        more = serve_control(kafka);
        rcpt_kafka_apply_moves(kafka);
        more = rcpt_kafka_round(kafka) || more;
    }
    if (kafka->life != LIFE_OPEN)
        close_step(kafka);
    else if (more || (kafka->moves_pending && kafka->held == NULL))
        rcpt_kafka_again(kafka);
}

static void on_again(uv_idle_t *again)
{
    turn(again->data);
}

static void on_wake(void *context)
{
    turn(context);
}

/* Every 10 ms: late jobs, a lookup that is due, retries, log lines, and a turn. */
static void on_tick(uv_timer_t *tick)
{
    struct rcpt_kafka *kafka = tick->data;
    rcpt_kafka_workers_tick(kafka->workers);
    if (kafka->life == LIFE_OPEN && !kafka->lookup_in_flight &&
        kafka->lookup_at_ms <= rcpt_kafka_now_ms(kafka))
        rcpt_kafka_look_up(kafka, NULL);
    if (kafka->handle != NULL && kafka->control != NULL) {
        rcpt_kafka_retry_partitions(kafka);
        serve_logs(kafka);
    }
    turn(kafka);
}

/* ---- joining the group ---- */

/* Over all topics; 0 until the first lookup has answered. */
static size_t known_partitions(const struct rcpt_kafka *kafka)
{
    size_t sum = 0;
    for (size_t i = 0; i < kafka->settings.topic_count; i++)
        sum += kafka->counts[i] > 0 ? (size_t)kafka->counts[i] : 0;
    return sum;
}

/* A refusal is final: librdkafka would refuse the next attempt as well. */
static void cannot_join(struct rcpt_kafka *kafka, const char *text)
{
    struct rcpt_error error;
    rcpt_error_fatal(&error, EX_CONFIG, "group %s cannot be joined: %s", kafka->settings.group,
                     text);
    rcpt_error_hint(&error, "check the kafka section of the configuration");
    rcpt_kafka_fatal(kafka, &error);
}

/* The control queue gets rebalances and errors; partitions get queues of their own later. */
static void open_queues(struct rcpt_kafka *kafka)
{
    rd_kafka_poll_set_consumer(kafka->handle);
    kafka->control = rd_kafka_queue_get_consumer(kafka->handle);
    rcpt_kafka_wake_by(&kafka->wake, kafka->control);
    kafka->logs = rd_kafka_queue_new(kafka->handle);
    rd_kafka_set_log_queue(kafka->handle, kafka->logs);
}

/* RD_KAFKA_PARTITION_UA: the group assigns the partitions. */
static void subscribe(struct rcpt_kafka *kafka)
{
    const struct rcpt_kafka_settings *settings = &kafka->settings;
    rd_kafka_topic_partition_list_t *topics =
        rd_kafka_topic_partition_list_new((int)settings->topic_count);
    for (size_t i = 0; i < settings->topic_count; i++)
        rd_kafka_topic_partition_list_add(topics, settings->topics[i], RD_KAFKA_PARTITION_UA);
    rd_kafka_resp_err_t code = rd_kafka_subscribe(kafka->handle, topics);
    rd_kafka_topic_partition_list_destroy(topics);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
        cannot_join(kafka, rd_kafka_err2str(code));
}

/* The budget for fetching ahead is divided by the partitions, so they must be known first. */
static void join(struct rcpt_kafka *kafka)
{
    char text[256];
    struct rcpt_error error;
    size_t partitions = known_partitions(kafka);
    struct fetch_limits limits =
        rcpt_kafka_fetch_limits(kafka->settings.fetch_budget_bytes, partitions);
    rd_kafka_conf_t *conf = rcpt_kafka_conf_new(&kafka->settings, &limits, &error);
    if (conf == NULL) {
        cannot_join(kafka, error.text);
        return;
    }
    kafka->handle = rd_kafka_new(RD_KAFKA_CONSUMER, conf, text, sizeof(text));
    if (kafka->handle == NULL) {
        rd_kafka_conf_destroy(conf);
        cannot_join(kafka, text);
        return;
    }
    rcpt_log_info("kafka",
                  "joining group %s with librdkafka %s: %zu partitions, at most %zu KiB or %zu "
                  "records of each fetched ahead",
                  kafka->settings.group, rd_kafka_version_str(), partitions, limits.queued_kbytes,
                  limits.queued_messages);
    open_queues(kafka);
    subscribe(kafka);
    rcpt_kafka_again(kafka);
}

/* Both must have come: the owner's subscribe and the number of partitions. */
static void join_if_ready(struct rcpt_kafka *kafka)
{
    if (kafka->subscribe_requested && kafka->handle == NULL && kafka->life == LIFE_OPEN &&
        !kafka->health.fatal && known_partitions(kafka) > 0)
        join(kafka);
}

void rcpt_kafka_subscribe(struct rcpt_kafka *kafka)
{
    kafka->subscribe_requested = true;
    join_if_ready(kafka);
}

/* ---- verbs ---- */

/* The owner calls this when its lanes take records again after a refusal. */
void rcpt_kafka_kick(struct rcpt_kafka *kafka)
{
    rcpt_kafka_again(kafka);
}

/* Records stay in librdkafka's queues; control events go on, so the group keeps the member. */
void rcpt_kafka_stop_polling(struct rcpt_kafka *kafka)
{
    kafka->polling = false;
}

/* A survey's client may be in use by its thread, so it gets the credentials with the next survey.
 */
void rcpt_kafka_set_credentials(struct rcpt_kafka *kafka,
                                const struct rcpt_kafka_credentials *credentials)
{
    rcpt_kafka_take_credentials(&kafka->settings, credentials);
    rcpt_kafka_use_credentials(kafka->handle, &kafka->settings);
}

/* Advisory commits keep the configured interval, and pause while an assignment is held. */
static bool may_commit(const struct rcpt_kafka *kafka, const char *note)
{
    return kafka->handle != NULL && kafka->life == LIFE_OPEN && kafka->held == NULL &&
           !kafka->health.fatal &&
           (strcmp(kafka->committed_note, note) != 0 ||
            rcpt_kafka_now_ms(kafka) - kafka->committed_at_ms >=
                kafka->settings.commit_interval_ms);
}

/* librdkafka frees the note with the list. */
static void add_offset(rd_kafka_topic_partition_list_t *list,
                       const struct rcpt_kafka_partition *partition, const char *note)
{
    rd_kafka_topic_partition_t *entry =
        rd_kafka_topic_partition_list_add(list, partition->topic, partition->partition);
    entry->offset = partition->offset;
    entry->metadata_size = strlen(note);
    entry->metadata = entry->metadata_size > 0 ? rcpt_strdup(note) : NULL;
}

/* Partitions that have been revoked since are left out: their offsets are another member's
 * business. */
void rcpt_kafka_commit(struct rcpt_kafka *kafka, const struct rcpt_kafka_partition *partitions,
                       size_t count, const char *note)
{
    note = note != NULL ? note : "";
    if (!may_commit(kafka, note))
        return;
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)count);
    for (size_t i = 0; i < count; i++)
        if (partitions[i].offset >= 0 &&
            rcpt_kafka_find(kafka, partitions[i].topic, partitions[i].partition) != NULL)
            add_offset(list, &partitions[i], note);
    if (list->cnt > 0) {
        kafka->committed_at_ms = rcpt_kafka_now_ms(kafka);
        snprintf(kafka->committed_note, sizeof(kafka->committed_note), "%s", note);
        /* For lag tools only; the next commit makes up for a failure. */
        (void)rd_kafka_commit(kafka->handle, list, 1);
    }
    rd_kafka_topic_partition_list_destroy(list);
}

/* As of the last fetch; no request is made. */
int64_t rcpt_kafka_high_watermark(struct rcpt_kafka *kafka, const char *topic, int32_t partition)
{
    int64_t low, high;
    if (kafka->handle == NULL || rcpt_kafka_find(kafka, topic, partition) == NULL ||
        rd_kafka_get_watermark_offsets(kafka->handle, topic, partition, &low, &high) !=
            RD_KAFKA_RESP_ERR_NO_ERROR)
        return -1;
    return high >= 0 ? high : -1;
}

/* While records are still to be applied, the log's end does not count: the records behind them may
 * be receipts. */
int64_t rcpt_kafka_stands_at(struct rcpt_kafka *kafka, const char *topic, int32_t number,
                             int64_t applied)
{
    const struct partition *partition = rcpt_kafka_find(kafka, topic, number);
    bool all_applied = partition != NULL && applied >= partition->next;
    return all_applied && partition->end > applied ? partition->end : applied;
}

/* ---- beginning and end ---- */

/* The handle of the first lookup: made here so that librdkafka's checks across properties speak at
 * once. */
static rd_kafka_t *first_handle(const struct rcpt_kafka_settings *settings,
                                struct rcpt_error *error)
{
    rd_kafka_conf_t *conf = rcpt_kafka_conf_new(settings, NULL, error);
    return conf != NULL ? rcpt_kafka_open(conf, error) : NULL;
}

/* All of them are closed by end(). */
static void open_loop_handles(struct rcpt_kafka *kafka)
{
    rcpt_kafka_wake_open(&kafka->wake, on_wake, kafka);
    rcpt_kafka_wake_start(&kafka->wake, kafka->loop);
    RCPT_ASSERT(uv_idle_init(kafka->loop, &kafka->again) == 0);
    RCPT_ASSERT(uv_timer_init(kafka->loop, &kafka->tick) == 0);
    kafka->again.data = kafka->tick.data = kafka;
    kafka->on_again = on_again;
    kafka->on_topics_known = join_if_ready;
    uv_timer_start(&kafka->tick, on_tick, TICK_MS, TICK_MS);
    kafka->workers = rcpt_kafka_workers_new(kafka->loop);
}

/* The first lookup begins at once; the group is joined after it. */
struct rcpt_kafka *rcpt_kafka_new(const struct rcpt_kafka_settings *settings,
                                  struct rcpt_error *error)
{
    rd_kafka_t *handle = first_handle(settings, error);
    if (handle == NULL)
        return NULL;
    struct rcpt_kafka *kafka = rcpt_calloc(1, sizeof(*kafka));
    rcpt_backoff_init(&kafka->lookup_backoff, RCPT_KAFKA_LOOKUP_MIN_MS, RCPT_KAFKA_LOOKUP_MAX_MS,
                      uv_hrtime());
    rcpt_kafka_copy_settings(&kafka->settings, settings);
    kafka->callbacks = settings->callbacks;
    kafka->loop = settings->loop;
    kafka->counts = rcpt_calloc(settings->topic_count + 1, sizeof(*kafka->counts));
    for (size_t i = 0; i < settings->topic_count; i++)
        kafka->counts[i] = -1;
    kafka->committed_at_ms = rcpt_kafka_now_ms(kafka);
    kafka->polling = true;
    kafka->round_messages = ROUND_MESSAGES;
    rcpt_kafka_warn_of_library(settings);
    open_loop_handles(kafka);
    rcpt_kafka_look_up(kafka, handle);
    return kafka;
}

/* Copies the callback first: it is the last thing that happens. */
static void free_kafka(struct rcpt_kafka *kafka)
{
    void (*on_closed)(void *context) = kafka->callbacks.on_closed;
    void *context = kafka->callbacks.context;
    close(kafka->wake.fd);
    rcpt_kafka_free_settings(&kafka->settings);
    free(kafka->partitions);
    free(kafka->counts);
    free(kafka->cluster_id);
    free(kafka);
    on_closed(context);
}

static void on_part_closed(void *context)
{
    struct rcpt_kafka *kafka = context;
    if (--kafka->open_handles == 0)
        free_kafka(kafka);
}

static void on_handle_closed(uv_handle_t *handle)
{
    on_part_closed(handle->data);
}

/* A consumer without a handle skips its destruction. */
static void enter(struct rcpt_kafka *kafka, enum kafka_life life)
{
    static const unsigned successors[LIFE__COUNT] = {
        [LIFE_OPEN] = RCPT_TO(LIFE_CLOSE_ASKED),
        [LIFE_CLOSE_ASKED] = RCPT_TO(LIFE_LEAVING),
        [LIFE_LEAVING] = RCPT_TO(LIFE_DESTROYING) | RCPT_TO(LIFE_ENDING),
        [LIFE_DESTROYING] = RCPT_TO(LIFE_ENDING),
    };
    RCPT_ASSERT_FOLLOWS(successors, kafka->life, life);
    kafka->life = life;
}

/* Four parts close; the last one frees. */
static void end(struct rcpt_kafka *kafka)
{
    enter(kafka, LIFE_ENDING);
    kafka->open_handles = 4;
    uv_close((uv_handle_t *)&kafka->wake.poll, on_handle_closed);
    uv_close((uv_handle_t *)&kafka->again, on_handle_closed);
    uv_close((uv_handle_t *)&kafka->tick, on_handle_closed);
    rcpt_kafka_workers_close(kafka->workers, on_part_closed, kafka);
}

static void on_destroyed(void *context)
{
    end(context);
}

/* Before the handle is destroyed, each queue must stop writing to the eventfd. */
static void release_queues(struct rcpt_kafka *kafka)
{
    rcpt_kafka_forget_partitions(kafka);
    serve_logs(kafka);
    rcpt_kafka_release_queue(kafka->control);
    rd_kafka_queue_destroy(kafka->logs);
    kafka->control = kafka->logs = NULL;
}

/* Not on the loop: librdkafka joins its threads, and a broker that does not answer holds them. */
static void destroy(struct rcpt_kafka *kafka)
{
    int64_t left = kafka->close_deadline_ms - rcpt_kafka_now_ms(kafka);
    rd_kafka_t *handle = kafka->handle;
    kafka->handle = NULL;
    enter(kafka, LIFE_DESTROYING);
    rcpt_kafka_destroy_handle(kafka->workers, handle,
                              left > DESTROY_FLOOR_MS ? left : DESTROY_FLOOR_MS, on_destroyed,
                              kafka);
}

/* Leaving is asynchronous: rebalance events go on until rd_kafka_consumer_closed(). */
static void leave(struct rcpt_kafka *kafka)
{
    enter(kafka, LIFE_LEAVING);
    if (kafka->handle == NULL) {
        end(kafka);
        return;
    }
    rcpt_kafka_withdraw_held(kafka);
    rd_kafka_error_t *error = rd_kafka_consumer_close_queue(kafka->handle, kafka->control);
    if (error != NULL) {
        rcpt_log_debug("kafka", "closing: %s", rd_kafka_error_string(error));
        rd_kafka_error_destroy(error);
        release_queues(kafka);
        destroy(kafka);
    }
}

static void close_step(struct rcpt_kafka *kafka)
{
    if (kafka->life == LIFE_CLOSE_ASKED) {
        leave(kafka);
    } else if (kafka->life == LIFE_LEAVING && rd_kafka_consumer_closed(kafka->handle)) {
        rcpt_log_info("kafka", "group %s left", kafka->settings.group);
        release_queues(kafka);
        destroy(kafka);
    } else if (kafka->life == LIFE_LEAVING &&
               rcpt_kafka_now_ms(kafka) >= kafka->close_deadline_ms) {
        rcpt_log_warn("kafka", "group %s could not be left in time; the brokers will notice",
                      kafka->settings.group);
        release_queues(kafka);
        kafka->handle = NULL;
        end(kafka);
    }
}

/* Done by the next turns, so that it may be called from any callback. */
void rcpt_kafka_close(struct rcpt_kafka *kafka, int64_t deadline_ms)
{
    if (kafka->life != LIFE_OPEN)
        return;
    enter(kafka, LIFE_CLOSE_ASKED);
    kafka->polling = false;
    kafka->close_deadline_ms = rcpt_kafka_now_ms(kafka) + deadline_ms;
    if (kafka->survey_handle != NULL)
        rcpt_kafka_destroy_handle(kafka->workers, kafka->survey_handle, DESTROY_FLOOR_MS, NULL,
                                  NULL);
    kafka->survey_handle = NULL;
    uv_timer_start(&kafka->tick, on_tick, CLOSING_TICK_MS, CLOSING_TICK_MS);
    rcpt_kafka_again(kafka);
}
