/* libFuzzer target: whatever a server may send in answer to two transactions one after the other,
 * through libpq itself: a socket whose other end is played by this program.
 *
 * Each transaction is answered at most once, in order, committed only if the bytes hold the end of
 * its Sync, and every cell of what came can be read. The bytes are a list of messages, so that
 * mutations keep their frames: type, length of the content, content. */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "postgres/submissions.h"

#define TRANSACTIONS 2
#define COMMANDS     2
#define MAX_BYTES    16384

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/* libpq forgets the description of rows that it holds when a server ends a transaction in the
 * middle of an answer: its own leak, at most one per connection, and indistinguishable from ours by
 * its caller. The sanitizer gives the name.
 * NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */
int __lsan_is_turned_off(void);

int __lsan_is_turned_off(void)
{
    return 1;
}
/* NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */

static int listener = -1;
static char conninfo[128];

struct answer {
    int number; /* of the transaction, from 0 */
    int *answered, *syncs;
};

static void set_up(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char *name = address.sun_path + 1; /* an abstract name: no file */
    int length = snprintf(name, sizeof(address.sun_path) - 1, "receiptd-fuzz-%d/.s.PGSQL.5432",
                          (int)getpid());
    snprintf(conninfo, sizeof(conninfo),
             "host=@receiptd-fuzz-%d port=5432 user=u dbname=d sslmode=disable gssencmode=disable",
             (int)getpid());
    listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
    RCPT_ASSERT(bind(listener, (struct sockaddr *)&address, size) == 0);
    RCPT_ASSERT(listen(listener, 8) == 0);
}

/* Connected and accepted, in pipeline mode. */
static PGconn *open_pair(int *server)
{
    static const char greeting[] = "R\0\0\0\10\0\0\0\0Z\0\0\0\5I";
    PGconn *conn = PQconnectStart(conninfo);
    RCPT_ASSERT(conn != NULL && PQstatus(conn) != CONNECTION_BAD);
    *server = accept(listener, NULL, NULL);
    RCPT_ASSERT(*server >= 0);
    RCPT_ASSERT(write(*server, greeting, sizeof(greeting) - 1) == (ssize_t)sizeof(greeting) - 1);
    for (int step = 0; step < 16 && PQconnectPoll(conn) != PGRES_POLLING_OK; step++)
        continue;
    RCPT_ASSERT(PQstatus(conn) == CONNECTION_OK);
    RCPT_ASSERT(PQsetnonblocking(conn, 1) == 0 && PQenterPipelineMode(conn) == 1);
    return conn;
}

static void read_cells(const struct rcpt_pg_rows *rows)
{
    for (size_t row = 0; row < rcpt_pg_rows_count(rows); row++) {
        for (int column = 0; column < PQnfields(rows->result); column++) {
            const char *text = rcpt_pg_rows_text(rows, row, column);
            RCPT_ASSERT(text == NULL || strlen(text) <= MAX_BYTES);
            (void)rcpt_pg_rows_int(rows, row, column);
            (void)rcpt_pg_rows_bool(rows, row, column);
        }
    }
}

static void on_answer(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                      const struct rcpt_error *error)
{
    const struct answer *answer = context;
    RCPT_ASSERT(answer->number == *answer->answered);
    (*answer->answered)++;
    RCPT_ASSERT(row_count <= COMMANDS);
    if (error == NULL)
        RCPT_ASSERT(row_count == COMMANDS && *answer->syncs > answer->number);
    else
        RCPT_ASSERT(error->decision != RCPT_DECISION_NONE);
    for (size_t index = 0; index < row_count; index++)
        read_cells(rows[index]);
}

/* Frames the input's messages. Counts those that end a Sync. */
static size_t frame(const uint8_t *data, size_t size, unsigned char *out, int *syncs)
{
    size_t used = 0;
    while (size >= 2) {
        size_t length = data[1] < size - 2 ? data[1] : size - 2;
        if (used + 5 + length > MAX_BYTES)
            break;
        *syncs += data[0] == 'Z';
        out[used++] = data[0];
        out[used++] = 0;
        out[used++] = 0;
        out[used++] = (unsigned char)((length + 4) >> 8);
        out[used++] = (unsigned char)(length + 4);
        memcpy(out + used, data + 2, length);
        used += length;
        data += 2 + length;
        size -= 2 + length;
    }
    return used;
}

static void ignore_notice(void *context, const PGresult *notice)
{
    (void)context;
    (void)notice;
}

static void answer_all(struct rcpt_submissions *submissions, PGconn *conn)
{
    bool alive = true;
    while (alive) {
        alive = PQconsumeInput(conn) == 1;
        for (struct rcpt_pending *done = rcpt_submissions_take_done(submissions, conn);
             done != NULL; done = rcpt_submissions_take_done(submissions, conn))
            rcpt_pending_answer(done, NULL);
    }
    struct rcpt_error lost;
    rcpt_error_set(&lost, RCPT_DECISION_RECONNECT, NULL, "lost");
    for (struct rcpt_pending *left = rcpt_submissions_take(submissions); left != NULL;
         left = rcpt_submissions_take(submissions))
        rcpt_pending_answer(left, &lost);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static unsigned char bytes[MAX_BYTES];
    struct rcpt_submissions submissions = {0};
    struct answer answers[TRANSACTIONS];
    int answered = 0, syncs = 0, server;
    if (listener < 0)
        set_up();
    size_t used = frame(data, size, bytes, &syncs);
    PGconn *conn = open_pair(&server);
    PQsetNoticeReceiver(conn, ignore_notice, NULL);
    for (int number = 0; number < TRANSACTIONS; number++) {
        answers[number] = (struct answer){number, &answered, &syncs};
        rcpt_submissions_push(&submissions, COMMANDS, on_answer, &answers[number]);
        for (int command = 0; command < COMMANDS; command++)
            RCPT_ASSERT(PQsendQueryPrepared(conn, "s", 0, NULL, NULL, NULL, 0) == 1);
        RCPT_ASSERT(PQpipelineSync(conn) == 1);
    }
    RCPT_ASSERT(PQflush(conn) == 0);
    RCPT_ASSERT(used == 0 || write(server, bytes, used) == (ssize_t)used);
    close(server);
    answer_all(&submissions, conn);
    RCPT_ASSERT(answered == TRANSACTIONS);
    PQfinish(conn);
    return 0;
}
