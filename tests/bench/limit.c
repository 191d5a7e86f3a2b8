/* The limit: the statements of a lane from a bare program, without Kafka and without the daemon.
 *
 * Reads a file of records (tests/bench/stream.py writes it), decodes and folds all of it before the
 * clock starts, with the daemon's own code: so the server gets the same statements with the same
 * arrays in the same order.
 *
 *   limit --dsn DSN --records FILE --statement apply|update [--connections 2] [--lanes 8]
 *         [--batch 4000] [--depth 2] [--topic limit] [--ids text|uuid] [--recent-since BOUNDARY]
 *
 * apply   batches in two flights as a lane sends them, one at a time on a connection; the position
 *         rows of --topic must be there. What is timed is the sender, libpq and the server
 * update  only the conditional UPDATE from the same sorted arrays, encoded before: no position, no
 *         counter, nothing parked. What is timed is libpq and the server
 * --depth: of update, how many are under way on a connection
 * --ids uuid: of update, the inbox's message_id is of type uuid, and so is the array of ids
 * --recent-since, --recent-column: of apply, the inbox has a recent set with this boundary, of that
 *         column (created_at)
 *
 * Writes "ready" when everything is prepared, begins at a line on stdin, writes one line of JSON,
 * and keeps its connections until stdin ends, so that the backends can be measured meanwhile.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <libpq-fe.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "postgres/encode_batch.h"
#include "receiptd/base/log.h"
#include "receiptd/core/batch_build.h"
#include "receiptd/core/hash.h"
#include "receiptd/postgres/connection.h"
#include "receiptd/postgres/statements.h"

#define MAX_CONNECTIONS 64
#define MAX_PARTITIONS  1024
#define MAX_DEPTH       16
#define TEXT_IDS        "$1::text[]"
#define UUID_IDS        "$1::uuid[]"
#define UPDATE_PARAMS   4
#define UUID_OID        2950
#define UUID_TEXT_BYTES 36
#define UUID_BYTES      16

/* The daemon's session, src/postgres/conninfo.c. */
#define SESSION                                                                                    \
    "SET search_path = receiptd, pg_temp; SET synchronous_commit = off; SET jit = off;"            \
    "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off;"                          \
    "SET application_name = 'receiptd/bench/limit'"

static const char update_sql[] =
    "UPDATE message_inbox m"
    " SET prev_status = m.status, prev_flags = m.flags, status = GREATEST(m.status, e.top),"
    "  flags = m.flags | e.mask,"
    "  status_at = CASE WHEN e.top > m.status THEN e.at ELSE m.status_at END, updated_at = now()"
    " FROM unnest($1::text[], $2::int2[], $3::int4[], $4::timestamptz[]) AS e (id, top, mask, at)"
    " WHERE m.message_id = e.id AND (e.top > m.status OR (e.mask & ~m.flags) <> 0)";

struct options {
    const char *dsn, *records, *topic, *recent_since, *recent_column;
    bool bare;  /* update instead of apply */
    bool uuids; /* the keys are of type uuid */
    int connections, depth;
    uint32_t lanes, batch;
};

/* Parameters that own their bytes. */
struct stored {
    int count;
    const char **values;
    int *lengths, *formats;
    char *bytes;
};

struct prepared {
    struct stored work;       /* of update */
    struct rcpt_batch *batch; /* of apply */
    uint32_t messages, events;
};

struct queue {
    struct prepared *batches;
    size_t count, capacity;
};

struct client {
    PGconn *conn;       /* of update */
    struct rcpt_pg *pg; /* of apply, like all up to the batches */
    struct rcpt_lane_sender *sender;
    struct totals *totals;
    bool is_closed;
    struct prepared **batches;
    size_t count, sent, answered;
    int64_t sent_ns[MAX_DEPTH];
};

struct totals {
    uint64_t batches, messages, events, changed;
    double *response_ms;
};

/* Everything that is needed until all batches are made; the ladder stays. */
struct maker {
    const struct options *options;
    const struct rcpt_ladder *ladder;
    struct rcpt_batch_source *sources;
    size_t source_count;
    struct rcpt_batch_builder *builder;
    struct rcpt_pg_encoder *encoder;
    int64_t next[MAX_PARTITIONS]; /* of the lane whose batches are being made */
};

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static _Noreturn void die(const char *what, const char *detail)
{
    fprintf(stderr, "limit: %s: %s\n", what, detail);
    exit(1);
}

/* ---- batches ---- */

static uint32_t read_u32(FILE *file)
{
    uint8_t bytes[4];
    if (fread(bytes, sizeof(bytes), 1, file) != 1)
        die("records", "the file ends inside a record");
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
           (uint32_t)bytes[3] << 24;
}

static void read_records(struct maker *maker)
{
    FILE *file = fopen(maker->options->records, "rb");
    if (file == NULL)
        die(maker->options->records, strerror(errno));
    struct rcpt_decoder *decoder = rcpt_decoder_new(maker->ladder, maker->options->lanes);
    int64_t offsets[MAX_PARTITIONS] = {0};
    size_t capacity = 0;
    char *value = NULL;
    for (int first = fgetc(file); first != EOF; first = fgetc(file)) {
        ungetc(first, file);
        uint32_t partition = read_u32(file), size = read_u32(file);
        value = rcpt_realloc(value, size + 1);
        if (partition >= MAX_PARTITIONS || fread(value, 1, size, file) != size)
            die("records", "the file is damaged");
        struct rcpt_record_input input = {.topic = maker->options->topic,
                                          .partition = (int32_t)partition,
                                          .offset = offsets[partition]++,
                                          .timestamp_ms = 1,
                                          .value = value,
                                          .value_size = size};
        if (maker->source_count == capacity) {
            capacity = capacity > 0 ? capacity * 2 : 1024;
            maker->sources = rcpt_realloc(maker->sources, capacity * sizeof(*maker->sources));
        }
        struct rcpt_record *record = rcpt_record_decode(decoder, &input);
        record->offset = input.offset;
        record->timestamp_ms = input.timestamp_ms;
        if (record->reject_count > 0)
            die("records", "the decoder refuses an event");
        maker->sources[maker->source_count++] = (struct rcpt_batch_source){
            .record = record, .topic = maker->options->topic, .partition = (int32_t)partition};
    }
    free(value);
    fclose(file);
    rcpt_decoder_free(decoder);
}

static struct stored store(struct rcpt_pg_encoder *encoder)
{
    struct rcpt_pg_params params;
    rcpt_pg_encoder_params(encoder, &params);
    size_t count = (size_t)params.count, size = 0;
    for (size_t index = 0; index < count; index++)
        size += (size_t)params.lengths[index] + 1;
    struct stored stored = {.count = params.count,
                            .values = rcpt_calloc(count, sizeof(*stored.values)),
                            .lengths = rcpt_calloc(count, sizeof(*stored.lengths)),
                            .formats = rcpt_calloc(count, sizeof(*stored.formats)),
                            .bytes = rcpt_malloc(size)};
    char *place = stored.bytes;
    for (size_t index = 0; index < count; index++) {
        size_t length = (size_t)params.lengths[index];
        stored.lengths[index] = params.lengths[index];
        stored.formats[index] = params.formats[index];
        if (params.values[index] == NULL)
            continue;
        if (length > 0)
            memcpy(place, params.values[index], length);
        stored.values[index] = place;
        place += length + 1;
    }
    return stored;
}

/* ---- keys of type uuid ---- */

static void write_u32(char *place, uint32_t value)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        *place++ = (char)(value >> shift & 0xff);
}

static uint32_t hex_digit(char digit)
{
    if (digit >= '0' && digit <= '9')
        return (uint32_t)(digit - '0');
    if (digit >= 'a' && digit <= 'f')
        return (uint32_t)(digit - 'a' + 10);
    die("--ids uuid", "an id is no UUID in lower case");
}

/* 8-4-4-4-12 digits, which sort as the bytes do. */
static void pack_uuid(char *bytes, const char *text)
{
    for (int index = 0; index < UUID_BYTES; index++) {
        while (*text == '-')
            text++;
        *bytes++ = (char)(hex_digit(text[0]) << 4 | hex_digit(text[1]));
        text += 2;
    }
}

/* A binary array: dimensions, flag, type, count, lower bound, then size and bytes of each element.
 */
static void pack_ids(struct stored *stored, uint32_t count)
{
    enum { HEAD = 20, TYPE = 8, SIZE = 4 };
    const char *from = stored->values[0] + HEAD;
    char *made = rcpt_malloc(HEAD + (size_t)count * (SIZE + UUID_BYTES)), *place = made + HEAD;
    memcpy(made, stored->values[0], HEAD);
    write_u32(made + TYPE, UUID_OID);
    for (uint32_t index = 0; index < count; index++) {
        write_u32(place, UUID_BYTES);
        pack_uuid(place + SIZE, from + SIZE);
        place += SIZE + UUID_BYTES;
        from += SIZE + UUID_TEXT_BYTES;
    }
    if (from != stored->values[0] + stored->lengths[0])
        die("--ids uuid", "not all ids are UUIDs");
    stored->values[0] = made;
    stored->lengths[0] = (int)(place - made);
}

static char *with_uuid_ids(const char *sql)
{
    char *text = strdup(sql);
    for (char *found = text; (found = strstr(found, TEXT_IDS)) != NULL;)
        memcpy(found, UUID_IDS, strlen(UUID_IDS));
    return text;
}

/* One move per partition that the sources touch, in ascending order of partitions. */
static void set_moves(struct maker *maker, struct rcpt_batch *batch,
                      const struct rcpt_batch_source *sources, uint32_t count)
{
    const struct rcpt_record *last[MAX_PARTITIONS] = {0};
    for (uint32_t index = 0; index < count; index++)
        last[sources[index].partition] = sources[index].record;
    batch->moves = rcpt_arena_alloc(&batch->arena, count * sizeof(*batch->moves));
    for (int32_t partition = 0; partition < MAX_PARTITIONS; partition++) {
        const struct rcpt_record *record = last[partition];
        if (record == NULL)
            continue;
        batch->moves[batch->move_count++] =
            (struct rcpt_batch_move){.topic = maker->options->topic,
                                     .partition = partition,
                                     .generation = 1,
                                     .expected = maker->next[partition],
                                     .next = record->offset + 1,
                                     .anchor_offset = record->offset,
                                     .anchor_timestamp_ms = record->timestamp_ms,
                                     .anchor_crc = rcpt_record_crc(record)};
        maker->next[partition] = record->offset + 1;
    }
}

static void store_update(struct maker *maker, struct prepared *made)
{
    const struct rcpt_decide_form form = {.ladder = NULL};
    rcpt_encode_decide(maker->encoder, made->batch, &form, NULL, made->messages);
    made->work = store(maker->encoder);
    if (maker->options->uuids)
        pack_ids(&made->work, made->messages);
}

static void free_batch(struct rcpt_batch *batch)
{
    rcpt_batch_fini(batch);
    free(batch);
}

static void make_batch(struct maker *maker, uint32_t lane, struct queue *queue,
                       const struct rcpt_batch_source *sources, uint32_t count)
{
    struct rcpt_batch *batch = rcpt_malloc(sizeof(*batch));
    rcpt_batch_init(batch, lane);
    rcpt_batch_reset(batch, RCPT_BATCH_APPLY);
    rcpt_batch_fold(maker->builder, batch, sources, count, RCPT_BATCH_ALL);
    set_moves(maker, batch, sources, count);
    if (batch->message_count == 0) {
        free_batch(batch);
        return;
    }
    if (queue->count == queue->capacity) {
        queue->capacity = queue->capacity > 0 ? queue->capacity * 2 : 64;
        queue->batches = rcpt_realloc(queue->batches, queue->capacity * sizeof(*queue->batches));
    }
    struct prepared *made = &queue->batches[queue->count++];
    *made = (struct prepared){
        .batch = batch, .messages = batch->message_count, .events = batch->event_count};
    if (!maker->options->bare)
        return;
    store_update(maker, made);
    free_batch(made->batch);
}

/* Whole records as long as the lane's part of them fits, like a lane that always has enough. */
static void make_lane(struct maker *maker, uint32_t lane, struct queue *queue)
{
    memset(maker->next, 0, sizeof(maker->next));
    size_t first = 0, at = 0;
    uint32_t events = 0;
    for (; at < maker->source_count; at++) {
        const uint32_t *bounds = maker->sources[at].record->lane_events;
        uint32_t more = bounds[lane + 1] - bounds[lane];
        if (events > 0 && events + more > maker->options->batch) {
            make_batch(maker, lane, queue, &maker->sources[first], (uint32_t)(at - first));
            first = at;
            events = 0;
        }
        events += more;
    }
    if (at > first)
        make_batch(maker, lane, queue, &maker->sources[first], (uint32_t)(at - first));
}

/* Batches of apply borrow the records, which stay until the program ends. */
static struct queue *make_batches(const struct options *options, const struct rcpt_ladder *ladder)
{
    struct maker maker = {.options = options, .ladder = ladder};
    maker.builder = rcpt_batch_builder_new(maker.ladder, 1);
    maker.encoder = rcpt_pg_encoder_new();
    read_records(&maker);
    struct queue *queues = rcpt_calloc(options->lanes, sizeof(*queues));
    for (uint32_t lane = 0; lane < options->lanes; lane++)
        make_lane(&maker, lane, &queues[lane]);
    for (size_t index = 0; options->bare && index < maker.source_count; index++)
        rcpt_record_free(maker.sources[index].record);
    free(maker.sources);
    rcpt_pg_encoder_free(maker.encoder);
    rcpt_batch_builder_free(maker.builder);
    return queues;
}

/* ---- connections ---- */

static void prepare(PGconn *conn, const char *name, const char *sql)
{
    PGresult *result = PQprepare(conn, name, sql, 0, NULL);
    if (PQresultStatus(result) != PGRES_COMMAND_OK)
        die(name, PQerrorMessage(conn));
    PQclear(result);
}

/* Connection c serves the lanes that are c modulo the number of connections, in turn. */
static void deal(struct client *client, int number, const struct options *options,
                 struct queue *queues)
{
    size_t total = 0, longest = 0;
    for (uint32_t lane = 0; lane < options->lanes; lane++) {
        total += queues[lane].count;
        longest = queues[lane].count > longest ? queues[lane].count : longest;
    }
    client->batches = rcpt_calloc(total + 1, sizeof(struct prepared *));
    for (size_t round = 0; round < longest; round++) {
        for (uint32_t lane = (uint32_t)number; lane < options->lanes;
             lane += (uint32_t)options->connections) {
            if (round < queues[lane].count)
                client->batches[client->count++] = &queues[lane].batches[round];
        }
    }
}

static void open_client(struct client *client, const struct options *options)
{
    client->conn = PQconnectdb(options->dsn);
    if (PQstatus(client->conn) != CONNECTION_OK)
        die("connect", PQerrorMessage(client->conn));
    PGresult *result = PQexec(client->conn, SESSION);
    if (PQresultStatus(result) != PGRES_COMMAND_OK)
        die("session", PQerrorMessage(client->conn));
    PQclear(result);
    char *converted = options->uuids ? with_uuid_ids(update_sql) : NULL;
    prepare(client->conn, "update", converted != NULL ? converted : update_sql);
    free(converted);
    if (PQsetnonblocking(client->conn, 1) != 0 || PQenterPipelineMode(client->conn) != 1)
        die("pipeline", PQerrorMessage(client->conn));
}

static void send_stored(PGconn *conn, const char *statement, const struct stored *stored, int count)
{
    if (PQsendQueryPrepared(conn, statement, count, stored->values, stored->lengths,
                            stored->formats, 0) != 1)
        die(statement, PQerrorMessage(conn));
}

static void send_more(struct client *client, const struct options *options)
{
    while (client->sent < client->count &&
           client->sent - client->answered < (size_t)options->depth) {
        const struct prepared *batch = client->batches[client->sent];
        client->sent_ns[client->sent % MAX_DEPTH] = now_ns();
        send_stored(client->conn, "update", &batch->work, UPDATE_PARAMS);
        if (PQpipelineSync(client->conn) != 1)
            die("sync", PQerrorMessage(client->conn));
        client->sent++;
    }
}

static void count_answer(struct client *client, struct totals *totals)
{
    const struct prepared *batch = client->batches[client->answered];
    totals->response_ms[totals->batches++] =
        (double)(now_ns() - client->sent_ns[client->answered % MAX_DEPTH]) / 1e6;
    totals->messages += batch->messages;
    totals->events += batch->events;
    client->answered++;
}

static void take_result(struct client *client, struct totals *totals, PGresult *result)
{
    switch (PQresultStatus(result)) {
    case PGRES_PIPELINE_SYNC:
        count_answer(client, totals);
        break;
    case PGRES_COMMAND_OK:
        totals->changed += strtoull(PQcmdTuples(result), NULL, 10);
        break;
    default:
        die("statement", PQresultErrorMessage(result));
    }
    PQclear(result);
}

static void read_answers(struct client *client, struct totals *totals)
{
    if (PQconsumeInput(client->conn) != 1)
        die("connection", PQerrorMessage(client->conn));
    while (client->answered < client->sent && !PQisBusy(client->conn)) {
        PGresult *result = PQgetResult(client->conn);
        if (result != NULL) /* NULL only separates the answers of two statements */
            take_result(client, totals, result);
    }
}

static void run_updates(struct client *clients, const struct options *options,
                        struct totals *totals)
{
    struct pollfd polled[MAX_CONNECTIONS];
    for (;;) {
        bool open = false;
        for (int index = 0; index < options->connections; index++) {
            struct client *client = &clients[index];
            send_more(client, options);
            int flushed = PQflush(client->conn);
            if (flushed < 0)
                die("flush", PQerrorMessage(client->conn));
            bool waits = client->answered < client->count;
            polled[index] =
                (struct pollfd){.fd = waits ? PQsocket(client->conn) : -1,
                                .events = (short)(POLLIN | (flushed > 0 ? POLLOUT : 0))};
            open = open || waits;
        }
        if (!open)
            return;
        if (poll(polled, (nfds_t)options->connections, 60000) <= 0)
            die("poll", "nothing for a minute");
        for (int index = 0; index < options->connections; index++) {
            if (polled[index].revents != 0)
                read_answers(&clients[index], totals);
        }
    }
}

/* ---- as a lane sends ---- */

static const char *no_name(const void *context, enum rcpt_facet facet, uint32_t number)
{
    (void)context;
    (void)facet;
    (void)number;
    return NULL;
}

static void on_ready(void *context, struct rcpt_pg *pg)
{
    (void)context;
    (void)pg;
}

static void on_down(void *context, struct rcpt_pg *pg, const struct rcpt_error *error)
{
    (void)context;
    (void)pg;
    die("connection", error->text);
}

static void open_lane(struct client *client, uv_loop_t *loop, const struct options *options,
                      const struct rcpt_ladder *ladder,
                      const struct rcpt_lane_statements *statements)
{
    struct rcpt_pg_settings settings = {.loop = loop,
                                        .name = "limit",
                                        .instance = "bench",
                                        .dsn = options->dsn,
                                        .schema = "receiptd",
                                        .connect_timeout_ms = 10000,
                                        .retry_min_ms = 100,
                                        .retry_max_ms = 100,
                                        .context = client,
                                        .on_ready = on_ready,
                                        .on_down = on_down};
    settings.statements = rcpt_lane_statements_list(statements, &settings.statement_count);
    client->sender = rcpt_lane_sender_new(&(struct rcpt_lane_sender_settings){
        .unknown_policy = "park", .rules = {.ladder = ladder}, .names = {.name = no_name}});
    client->pg = rcpt_pg_new(&settings);
    rcpt_pg_start(client->pg);
    while (!rcpt_pg_is_ready(client->pg))
        uv_run(loop, UV_RUN_ONCE);
}

static void send_next(struct client *client);

static void on_result(void *context, uint32_t lane, const struct rcpt_engine_result *result,
                      const struct rcpt_error *error)
{
    struct client *client = context;
    (void)lane;
    if (error != NULL)
        die("batch", error->text);
    client->totals->changed += result->messages_changed;
    count_answer(client, client->totals);
    send_next(client);
}

static void send_next(struct client *client)
{
    if (client->sent == client->count)
        return;
    client->sent_ns[client->sent % MAX_DEPTH] = now_ns();
    rcpt_lane_send(client->sender, client->pg, client->batches[client->sent++]->batch, false,
                   on_result, client);
}

static void run_lanes(struct client *clients, uv_loop_t *loop, const struct options *options,
                      struct totals *totals)
{
    for (int index = 0; index < options->connections; index++) {
        clients[index].totals = totals;
        send_next(&clients[index]);
    }
    for (int index = 0; index < options->connections; index++)
        while (clients[index].answered < clients[index].count)
            uv_run(loop, UV_RUN_ONCE);
}

static void on_closed(void *context)
{
    ((struct client *)context)->is_closed = true;
}

static void close_client(struct client *client, uv_loop_t *loop)
{
    if (client->pg == NULL) {
        PQfinish(client->conn);
        return;
    }
    rcpt_pg_close(client->pg, on_closed, client);
    while (!client->is_closed)
        uv_run(loop, UV_RUN_ONCE);
    rcpt_lane_sender_free(client->sender);
}

/* ---- the report ---- */

static int compare_doubles(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double cpu_seconds(void)
{
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

static void report(struct totals *totals, double seconds, double cpu)
{
    size_t count = totals->batches;
    double sum = 0;
    qsort(totals->response_ms, count, sizeof(double), compare_doubles);
    for (size_t index = 0; index < count; index++)
        sum += totals->response_ms[index];
    printf("{\"seconds\": %.6f, \"client_cpu\": %.6f, \"batches\": %" PRIu64
           ", \"messages\": %" PRIu64 ", \"events\": %" PRIu64 ", \"changed\": %" PRIu64
           ", \"response_ms\": {\"mean\": %.3f, \"p50\": %.3f, \"p99\": %.3f, \"max\": %.3f}}\n",
           seconds, cpu, totals->batches, totals->messages, totals->events, totals->changed,
           sum / (double)count, totals->response_ms[count / 2],
           totals->response_ms[(count * 99) / 100], totals->response_ms[count - 1]);
    fflush(stdout);
}

static void read_options(struct options *options, int argc, char **argv)
{
    static const struct option known[] = {
        {"dsn", required_argument, NULL, 'd'},
        {"records", required_argument, NULL, 'r'},
        {"statement", required_argument, NULL, 's'},
        {"connections", required_argument, NULL, 'c'},
        {"lanes", required_argument, NULL, 'l'},
        {"batch", required_argument, NULL, 'b'},
        {"depth", required_argument, NULL, 'p'},
        {"topic", required_argument, NULL, 't'},
        {"ids", required_argument, NULL, 'i'},
        {"recent-since", required_argument, NULL, 'n'},
        {"recent-column", required_argument, NULL, 'm'},
        {NULL, 0, NULL, 0},
    };
    for (int key; (key = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        switch (key) {
        case 'd':
            options->dsn = optarg;
            break;
        case 'r':
            options->records = optarg;
            break;
        case 't':
            options->topic = optarg;
            break;
        case 'n':
            options->recent_since = optarg;
            break;
        case 'm':
            options->recent_column = optarg;
            break;
        case 'i':
            options->uuids = strcmp(optarg, "uuid") == 0;
            break;
        case 's':
            options->bare = strcmp(optarg, "update") == 0;
            break;
        case 'c':
            options->connections = atoi(optarg);
            break;
        case 'p':
            options->depth = atoi(optarg);
            break;
        case 'l':
            options->lanes = (uint32_t)atoi(optarg);
            break;
        case 'b':
            options->batch = (uint32_t)atoi(optarg);
            break;
        default:
            exit(64);
        }
    }
    if (options->dsn == NULL || options->records == NULL)
        die("usage", "--dsn and --records are needed");
    if (options->connections < 1 || options->connections > MAX_CONNECTIONS || options->depth < 1 ||
        options->depth > MAX_DEPTH || options->batch < 1)
        die("usage", "a number is out of range");
    if (options->uuids && !options->bare)
        die("--ids uuid", "a lane sends texts: with --statement update");
}

int main(int argc, char **argv)
{
    struct options options = {
        .topic = "limit", .connections = 2, .depth = 2, .lanes = 8, .batch = 4000};
    struct rcpt_error error;
    uv_loop_t loop;
    rcpt_log_configure(RCPT_LOG_ERROR, RCPT_LOG_LOGFMT);
    read_options(&options, argc, argv);
    struct rcpt_ladder *ladder = rcpt_ladder_new(rcpt_ladder_default_definition(), &error);
    struct queue *queues = make_batches(&options, ladder);
    struct rcpt_lane_statements *statements = rcpt_lane_statements_new(&(struct rcpt_lane_variant){
        .recent_since = options.recent_since, .recent_column = options.recent_column});
    struct client *clients = rcpt_calloc((size_t)options.connections, sizeof(*clients));
    size_t batches = 0;
    uv_loop_init(&loop);
    for (int index = 0; index < options.connections; index++) {
        deal(&clients[index], index, &options, queues);
        if (options.bare)
            open_client(&clients[index], &options);
        else
            open_lane(&clients[index], &loop, &options, ladder, statements);
        batches += clients[index].count;
    }
    struct totals totals = {.response_ms = rcpt_calloc(batches + 1, sizeof(double))};
    puts("ready");
    fflush(stdout);
    if (getchar() == EOF)
        return 0;
    double cpu = cpu_seconds();
    int64_t start = now_ns();
    if (options.bare)
        run_updates(clients, &options, &totals);
    else
        run_lanes(clients, &loop, &options, &totals);
    report(&totals, (double)(now_ns() - start) / 1e9, cpu_seconds() - cpu);
    while (getchar() != EOF) {
    }
    for (int index = 0; index < options.connections; index++)
        close_client(&clients[index], &loop);
    rcpt_lane_statements_free(statements);
    return 0;
}
