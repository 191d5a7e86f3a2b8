/* An open-loop generator: events leave at the moments that the rate gives, whatever happened to
 * earlier ones.
 *
 *   produce --brokers B --topic T --messages FILE --rate EVENTS_PER_S --seconds S [--per-record 1]
 *           [--first-partition 0] --partitions N
 *
 * Each message of FILE (tab-separated, id first) gets one receipt, whose `at` is the moment at
 * which it was due: so a generator or broker that falls behind makes the latency larger, not
 * smaller (no coordinated omission). Writes one line of JSON when everything is acknowledged.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EVENT_BYTES 256
#define ID_BYTES    64

struct options {
    const char *brokers, *topic, *messages;
    double rate, seconds, warm_up; /* what is due in the warm-up is produced, not measured */
    int per_record, first_partition, partitions;
};

struct tally {
    uint64_t acknowledged, failed;
    int64_t latest_us; /* how far behind its moment a record was at worst */
};

static void die(const char *what, const char *detail)
{
    fprintf(stderr, "produce: %s: %s\n", what, detail);
    exit(1);
}

static int64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000;
}

static void sleep_until(int64_t at_us)
{
    struct timespec at = {.tv_sec = at_us / 1000000, .tv_nsec = at_us % 1000000 * 1000};
    while (clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &at, NULL) == EINTR) {
    }
}

static void on_delivery(rd_kafka_t *kafka, const rd_kafka_message_t *message, void *opaque)
{
    struct tally *tally = opaque;
    (void)kafka;
    if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR)
        tally->acknowledged++;
    else
        tally->failed++;
}

static void set(rd_kafka_conf_t *conf, const char *name, const char *value)
{
    char error[256];
    if (rd_kafka_conf_set(conf, name, value, error, sizeof(error)) != RD_KAFKA_CONF_OK)
        die(name, error);
}

static rd_kafka_t *open_producer(const struct options *options, struct tally *tally)
{
    char error[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "bootstrap.servers", options->brokers);
    set(conf, "linger.ms", "1");
    set(conf, "enable.idempotence", "true");
    set(conf, "queue.buffering.max.messages", "1000000");
    rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    rd_kafka_conf_set_opaque(conf, tally);
    rd_kafka_t *kafka = rd_kafka_new(RD_KAFKA_PRODUCER, conf, error, sizeof(error));
    if (kafka == NULL)
        die("producer", error);
    return kafka;
}

/* Connections and metadata must exist before the first moment. */
static void warm_up(rd_kafka_t *kafka, const char *topic)
{
    const struct rd_kafka_metadata *metadata;
    rd_kafka_topic_t *handle = rd_kafka_topic_new(kafka, topic, NULL);
    rd_kafka_resp_err_t error = rd_kafka_metadata(kafka, 0, handle, &metadata, 10000);
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR)
        die("metadata", rd_kafka_err2str(error));
    rd_kafka_metadata_destroy(metadata);
    rd_kafka_topic_destroy(handle);
}

static void read_id(FILE *file, char id[ID_BYTES])
{
    char line[256];
    if (fgets(line, sizeof(line), file) == NULL)
        die("messages", "the file has too few");
    snprintf(id, ID_BYTES, "%.*s", (int)strcspn(line, "\t\n"), line);
}

static size_t write_event(char *text, const char *id, int64_t at_us)
{
    struct tm parts;
    char seconds[32];
    time_t whole = at_us / 1000000;
    gmtime_r(&whole, &parts);
    strftime(seconds, sizeof(seconds), "%Y-%m-%dT%H:%M:%S", &parts);
    return (size_t)snprintf(text, EVENT_BYTES,
                            "{\"message_id\":\"%s\",\"status\":\"DELIVERED\",\"at\":\"%s.%06" PRId64
                            "Z\",\"channel\":\"sms\",\"gateway\":\"gateway-1\"}",
                            id, seconds, at_us % 1000000);
}

static void send_record(rd_kafka_t *kafka, const struct options *options, uint64_t number,
                        const char *value, size_t size)
{
    int32_t partition =
        options->first_partition + (int32_t)(number % (uint64_t)options->partitions);
    for (;;) {
        rd_kafka_resp_err_t error = rd_kafka_producev(
            kafka, RD_KAFKA_V_TOPIC(options->topic), RD_KAFKA_V_PARTITION(partition),
            RD_KAFKA_V_VALUE((void *)(uintptr_t)value, size),
            RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END);
        if (error == RD_KAFKA_RESP_ERR_NO_ERROR)
            return;
        if (error != RD_KAFKA_RESP_ERR__QUEUE_FULL)
            die("produce", rd_kafka_err2str(error));
        rd_kafka_poll(kafka, 10);
    }
}

/* Events of one record are due one after the other; the record leaves when its last one is due. */
static void run(rd_kafka_t *kafka, const struct options *options, FILE *messages, int64_t start_us,
                uint64_t events, struct tally *tally)
{
    char *value = malloc((size_t)options->per_record * EVENT_BYTES + 2);
    double interval_us = 1e6 / options->rate;
    uint64_t record = 0;
    for (uint64_t sent = 0; sent < events; record++) {
        size_t size = 0;
        int64_t due_us = 0;
        value[size++] = '[';
        for (int index = 0; index < options->per_record && sent < events; index++, sent++) {
            char id[ID_BYTES];
            read_id(messages, id);
            due_us = start_us + (int64_t)((double)sent * interval_us);
            if (index > 0)
                value[size++] = ',';
            size += write_event(value + size, id, due_us);
        }
        value[size++] = ']';
        sleep_until(due_us);
        int64_t behind = now_us() - due_us;
        tally->latest_us = behind > tally->latest_us ? behind : tally->latest_us;
        send_record(kafka, options, record, value, size);
        rd_kafka_poll(kafka, 0);
    }
    free(value);
}

static void read_options(struct options *options, int argc, char **argv)
{
    static const struct option known[] = {
        {"brokers", required_argument, NULL, 'b'},
        {"topic", required_argument, NULL, 't'},
        {"messages", required_argument, NULL, 'm'},
        {"rate", required_argument, NULL, 'r'},
        {"seconds", required_argument, NULL, 's'},
        {"per-record", required_argument, NULL, 'e'},
        {"partitions", required_argument, NULL, 'p'},
        {"first-partition", required_argument, NULL, 'f'},
        {"warm-up", required_argument, NULL, 'w'},
        {NULL, 0, NULL, 0},
    };
    for (int key; (key = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        switch (key) {
        case 'b':
            options->brokers = optarg;
            break;
        case 't':
            options->topic = optarg;
            break;
        case 'm':
            options->messages = optarg;
            break;
        case 'r':
            options->rate = atof(optarg);
            break;
        case 's':
            options->seconds = atof(optarg);
            break;
        case 'e':
            options->per_record = atoi(optarg);
            break;
        case 'p':
            options->partitions = atoi(optarg);
            break;
        case 'f':
            options->first_partition = atoi(optarg);
            break;
        case 'w':
            options->warm_up = atof(optarg);
            break;
        default:
            exit(64);
        }
    }
    if (options->brokers == NULL || options->topic == NULL || options->messages == NULL ||
        options->rate <= 0 || options->seconds <= 0 || options->per_record < 1 ||
        options->partitions < 1)
        die("usage", "an option is missing or out of range");
}

int main(int argc, char **argv)
{
    struct options options = {.per_record = 1};
    struct tally tally = {0, 0, 0};
    read_options(&options, argc, argv);
    FILE *messages = fopen(options.messages, "r");
    if (messages == NULL)
        die(options.messages, strerror(errno));
    rd_kafka_t *kafka = open_producer(&options, &tally);
    warm_up(kafka, options.topic);
    int64_t start_us = now_us() + 200000;
    run(kafka, &options, messages, start_us,
        (uint64_t)(options.rate * (options.warm_up + options.seconds)), &tally);
    if (rd_kafka_flush(kafka, 60000) != RD_KAFKA_RESP_ERR_NO_ERROR)
        die("flush", "not everything was acknowledged within a minute");
    rd_kafka_destroy(kafka);
    fclose(messages);
    printf("{\"records\": %" PRIu64 ", \"failed\": %" PRIu64
           ", \"measured_from\": %.6f, \"generator_behind_ms\": %.3f}\n",
           tally.acknowledged, tally.failed, (double)start_us / 1e6 + options.warm_up,
           (double)tally.latest_us / 1e3);
    return tally.failed > 0;
}
