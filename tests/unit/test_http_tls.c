/* TLS of the HTTP server: certificates that are good, wrong and replaced, and clients that speak
 * something else. */
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdio.h>

#include "http_fixture.h"

#define PIECES 2000 /* turns of the loop that anything may take */

struct files {
    char folder[64], certificate[96], key[96];
};

struct client {
    int socket;
    SSL_CTX *context;
    SSL *ssl;
};

static void name_files(struct files *files)
{
    strcpy(files->folder, "/tmp/receiptd-tls-XXXXXX");
    assert_non_null(mkdtemp(files->folder));
    snprintf(files->certificate, sizeof(files->certificate), "%s/certificate.pem", files->folder);
    snprintf(files->key, sizeof(files->key), "%s/key.pem", files->folder);
}

static void remove_files(const struct files *files)
{
    unlink(files->certificate);
    unlink(files->key);
    rmdir(files->folder);
}

static void write_key(const char *path, EVP_PKEY *key)
{
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_int_equal(PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL), 1);
    fclose(file);
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* A certificate that signs itself, with the key that fits. */
static void write_pair(const struct files *files, long serial)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = X509_new();
    assert_true(key != NULL && certificate != NULL);
    X509_set_version(certificate, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -60);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_set_pubkey(certificate, key);
    X509_NAME *name = X509_get_subject_name(certificate);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"h", -1, -1, 0);
    X509_set_issuer_name(certificate, name);
    assert_true(X509_sign(certificate, key, EVP_sha256()) > 0);
    FILE *file = fopen(files->certificate, "we");
    assert_non_null(file);
    assert_int_equal(PEM_write_X509(file, certificate), 1);
    fclose(file);
    write_key(files->key, key);
    X509_free(certificate);
    EVP_PKEY_free(key);
}

static struct fixture *begin_tls(struct files *files, struct rcpt_http_settings settings)
{
    name_files(files);
    write_pair(files, 1);
    settings.tls_certificate = files->certificate;
    settings.tls_key = files->key;
    return begin(settings);
}

/* True: the handshake is done. False: the server would have none of it. */
static bool shake_hands(struct fixture *fixture, struct client *client, const char *protocols)
{
    client->context = SSL_CTX_new(TLS_client_method());
    client->ssl = SSL_new(client->context);
    client->socket = dial(fixture);
    SSL_set_fd(client->ssl, client->socket);
    if (protocols != NULL)
        assert_int_equal(SSL_set_alpn_protos(client->ssl, (const unsigned char *)protocols,
                                             (unsigned)strlen(protocols)),
                         0);
    for (int i = 0; i < PIECES; i++) {
        int result = SSL_connect(client->ssl);
        if (result == 1)
            return true;
        if (SSL_get_error(client->ssl, result) != SSL_ERROR_WANT_READ)
            break;
        turn(fixture, 1);
    }
    ERR_clear_error();
    return false;
}

static void leave(struct client *client)
{
    SSL_free(client->ssl);
    SSL_CTX_free(client->context);
    close(client->socket);
}

/* Bytes that came until nothing does any more; the first of them in `text`. */
static size_t hear_tls(struct fixture *fixture, struct client *client, char *text, size_t capacity)
{
    static char bytes[65536];
    size_t sum = 0;
    for (int silence = 0; silence < 50; silence++) {
        int got = SSL_read(client->ssl, bytes, sizeof(bytes));
        if (got <= 0) {
            if (SSL_get_error(client->ssl, got) != SSL_ERROR_WANT_READ)
                break;
            turn(fixture, 1);
            continue;
        }
        for (int i = 0; i < got && sum + (size_t)i + 1 < capacity; i++)
            text[sum + (size_t)i] = bytes[i];
        sum += (size_t)got;
        silence = 0;
    }
    text[sum < capacity ? sum : capacity - 1] = '\0';
    return sum;
}

static void say_tls(struct client *client, const char *text)
{
    assert_int_equal(SSL_write(client->ssl, text, (int)strlen(text)), strlen(text));
}

static long serial_of_server(struct fixture *fixture)
{
    struct client client;
    assert_true(shake_hands(fixture, &client, NULL));
    X509 *certificate = SSL_get1_peer_certificate(client.ssl);
    assert_non_null(certificate);
    long serial = ASN1_INTEGER_get(X509_get0_serialNumber(certificate));
    X509_free(certificate);
    leave(&client);
    return serial;
}

/* ---- */

static void test_requests_over_tls_are_answered(void **state)
{
    static const struct {
        const char *offered, *chosen;
    } protocols[] = {{NULL, ""},
                     {"\x02h2\x08http/1.1", "http/1.1"},
                     {"\x02h2", ""}}; /* nothing in common is no reason to refuse */
    struct files files;
    (void)state;
    struct fixture *fixture = begin_tls(&files, (struct rcpt_http_settings){0});
    for (size_t i = 0; i < sizeof(protocols) / sizeof(protocols[0]); i++) {
        struct client client;
        char text[1024];
        const unsigned char *chosen;
        unsigned size;
        assert_true(shake_hands(fixture, &client, protocols[i].offered));
        SSL_get0_alpn_selected(client.ssl, &chosen, &size);
        assert_int_equal(size, strlen(protocols[i].chosen));
        assert_memory_equal(chosen, protocols[i].chosen, size);
        say_tls(&client, "GET /what HTTP/1.1\r\nHost: h\r\n\r\n");
        hear_tls(fixture, &client, text, sizeof(text));
        assert_int_equal(status_of(text), 200);
        assert_non_null(strstr(text, "[1|||1]"));
        say_tls(&client, "GET /what HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
        hear_tls(fixture, &client, text, sizeof(text));
        assert_int_equal(status_of(text), 200);
        assert_int_equal(SSL_get_shutdown(client.ssl), SSL_RECEIVED_SHUTDOWN); /* not cut off */
        leave(&client);
    }
    struct client flooded;
    assert_true(shake_hands(fixture, &flooded, NULL));
    say_tls(&flooded,
            "GET /flood HTTP/1.1\r\nHost: h\r\n\r\nGET /echo HTTP/1.1\r\nHost: h\r\n\r\n");
    turn(fixture, 10);
    leave(&flooded);
    assert_int_equal(fixture->echoed, 0);
    assert_int_equal(rcpt_http_stats(fixture->server)->tls_failures, 0);
    assert_int_equal(rcpt_http_stats(fixture->server)->connections, 0);
    end(fixture);
    remove_files(&files);
}

static void test_a_large_answer_over_tls_arrives_whole(void **state)
{
    struct files files;
    struct client client;
    char text[1024];
    (void)state;
    struct fixture *fixture = begin_tls(&files, (struct rcpt_http_settings){0});
    assert_true(shake_hands(fixture, &client, NULL));
    say_tls(&client, "GET /large HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    turn(fixture, 20);
    size_t sum = hear_tls(fixture, &client, text, sizeof(text));
    const char *body = strstr(text, "\r\n\r\n");
    assert_non_null(body);
    assert_int_equal(sum - (size_t)(body + 4 - text), LARGE_BYTES);
    assert_int_equal(SSL_get_shutdown(client.ssl), SSL_RECEIVED_SHUTDOWN);
    leave(&client);
    end(fixture);
    remove_files(&files);
}

static void test_who_speaks_no_tls_is_not_answered_in_the_clear(void **state)
{
    struct files files;
    (void)state;
    struct fixture *fixture = begin_tls(&files, (struct rcpt_http_settings){0});
    int client = dial(fixture);
    bool ended;
    say(client, "GET /echo HTTP/1.1\r\nHost: h\r\n\r\n");
    const char *answer = hear(fixture, client, &ended);
    assert_null(strstr(answer, "HTTP"));
    assert_true(ended);
    assert_int_equal(rcpt_http_stats(fixture->server)->tls_failures, 1);
    assert_int_equal(fixture->echoed, 0);
    close(client);
    end(fixture);
    remove_files(&files);
}

static void test_an_old_version_of_tls_is_refused(void **state)
{
    struct files files;
    struct client client;
    (void)state;
    struct fixture *fixture = begin_tls(&files, (struct rcpt_http_settings){0});
    client.context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_security_level(client.context, 0);
    SSL_CTX_set_min_proto_version(client.context, TLS1_VERSION);
    SSL_CTX_set_max_proto_version(client.context, TLS1_1_VERSION);
    client.ssl = SSL_new(client.context);
    client.socket = dial(fixture);
    SSL_set_fd(client.ssl, client.socket);
    int result = -1;
    for (int i = 0; i < 50 && result != 1; i++) {
        result = SSL_connect(client.ssl);
        turn(fixture, 1);
    }
    assert_int_not_equal(result, 1);
    ERR_clear_error();
    leave(&client);
    end(fixture);
    remove_files(&files);
}

/* A client that falls silent in its handshake has as long as for a head, and the end may come. */
static void test_a_handshake_that_does_not_end_is_given_up(void **state)
{
    struct files files;
    (void)state;
    struct fixture *fixture =
        begin_tls(&files, (struct rcpt_http_settings){.header_timeout_ms = 100});
    int client = dial(fixture);
    bool ended;
    assert_int_equal(send(client, "\x16\x03\x01\x02\x00\x01", 6, MSG_NOSIGNAL), 6);
    turn(fixture, 600);
    assert_string_equal(hear(fixture, client, &ended), "");
    assert_true(ended);
    assert_int_equal(rcpt_http_stats(fixture->server)->timeouts, 1);
    close(client);
    client = dial(fixture);
    turn(fixture, 4);
    end(fixture);
    close(client);
    remove_files(&files);
}

static void test_one_connection_too_many_is_closed_before_its_handshake(void **state)
{
    struct files files;
    struct client first, second;
    char text[1024];
    (void)state;
    struct fixture *fixture = begin_tls(&files, (struct rcpt_http_settings){.max_connections = 1});
    assert_true(shake_hands(fixture, &first, NULL));
    say_tls(&first, "GET /later HTTP/1.1\r\nHost: h\r\n\r\n");
    hear_tls(fixture, &first, text, sizeof(text));
    assert_false(shake_hands(fixture, &second, NULL));
    assert_int_equal(rcpt_http_stats(fixture->server)->refused_connections, 1);
    leave(&second);
    rcpt_http_answer_text(fixture->kept[0], 200, "ok");
    hear_tls(fixture, &first, text, sizeof(text));
    assert_int_equal(status_of(text), 200);
    leave(&first);
    end(fixture);
    remove_files(&files);
}

/* ---- files ---- */

static void expect_refusal(const struct files *files, const char *text)
{
    struct rcpt_error error;
    uv_loop_t loop;
    uv_loop_init(&loop);
    assert_null(rcpt_http_new(&(struct rcpt_http_settings){.loop = &loop,
                                                           .listen = "127.0.0.1:0",
                                                           .tls_certificate = files->certificate,
                                                           .tls_key = files->key},
                              &error));
    if (strstr(error.text, text) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", error.text, text);
    assert_int_equal(error.decision, RCPT_DECISION_FATAL);
    assert_string_equal(error.hint,
                        "PEM: the certificate with its chain, and the private key that fits");
    assert_int_equal(uv_loop_close(&loop), 0);
}

static void test_files_that_are_no_good_are_named(void **state)
{
    struct files files;
    char expected[160];
    (void)state;
    name_files(&files);
    write_pair(&files, 1);
    EVP_PKEY *other = EVP_EC_gen("P-256");
    write_key(files.key, other);
    EVP_PKEY_free(other);
    snprintf(expected, sizeof(expected), "key %s cannot be used: ", files.key);
    expect_refusal(&files, expected);
    expect_refusal(&files, "key values mismatch");
    write_text(files.key, "no key\n");
    expect_refusal(&files, expected);
    unlink(files.key);
    expect_refusal(&files, expected);
    expect_refusal(&files, "No such file");
    write_text(files.certificate, "no certificate\n");
    snprintf(expected, sizeof(expected), "certificate %s cannot be used: ", files.certificate);
    expect_refusal(&files, expected);
    expect_refusal(&files, "no start line");
    unlink(files.certificate);
    expect_refusal(&files, expected);
    remove_files(&files);
}

static void test_one_file_may_hold_both(void **state)
{
    struct files files;
    struct client client;
    char text[8192] = "";
    (void)state;
    name_files(&files);
    write_pair(&files, 5);
    FILE *file = fopen(files.key, "re");
    assert_non_null(file);
    size_t size = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    assert_true(size > 0);
    file = fopen(files.certificate, "ae");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    unlink(files.key);
    struct fixture *fixture =
        begin((struct rcpt_http_settings){.tls_certificate = files.certificate});
    assert_true(shake_hands(fixture, &client, NULL));
    leave(&client);
    end(fixture);
    remove_files(&files);
}

static void test_a_certificate_is_replaced_by_a_good_one_only(void **state)
{
    struct files files;
    struct rcpt_error error;
    struct client client;
    char text[1024];
    (void)state;
    struct fixture *fixture = begin_tls(&files, (struct rcpt_http_settings){0});
    assert_true(shake_hands(fixture, &client, NULL));
    write_text(files.key, "half of a");
    assert_false(rcpt_http_reload_tls(fixture->server, &error));
    assert_non_null(strstr(error.text, files.key));
    assert_int_equal(serial_of_server(fixture), 1);
    write_pair(&files, 2);
    assert_true(rcpt_http_reload_tls(fixture->server, &error));
    assert_int_equal(serial_of_server(fixture), 2);
    say_tls(&client, "GET /echo HTTP/1.1\r\nHost: h\r\n\r\n"); /* with the old one */
    hear_tls(fixture, &client, text, sizeof(text));
    assert_int_equal(status_of(text), 200);
    leave(&client);
    end(fixture);
    remove_files(&files);
}

/* TLS makes other bytes of it for each: the piece is copied, and it is the same for the client. */
static void test_a_shared_piece_is_encrypted_for_each(void **state)
{
    struct files files;
    struct client clients[2];
    char text[1024];
    (void)state;
    struct fixture *fixture = begin_tls(&files, (struct rcpt_http_settings){0});
    const struct rcpt_http_answer head = {.status = 200};
    struct rcpt_http_piece *piece = rcpt_http_piece_new("for both", 8);
    for (size_t i = 0; i < 2; i++) {
        assert_true(shake_hands(fixture, &clients[i], NULL));
        say_tls(&clients[i], "GET /later HTTP/1.1\r\nHost: h\r\n\r\n");
        hear_tls(fixture, &clients[i], text, sizeof(text));
        rcpt_http_answer_begin(fixture->kept[i], &head, 4096, NULL, NULL);
        rcpt_http_answer_slim(fixture->kept[i]);
        rcpt_http_answer_share(fixture->kept[i], piece);
    }
    rcpt_http_piece_release(piece);
    for (size_t i = 0; i < 2; i++) {
        hear_tls(fixture, &clients[i], text, sizeof(text));
        assert_non_null(strstr(text, "\r\n\r\n8\r\nfor both\r\n"));
        rcpt_http_answer_end(fixture->kept[i]);
        leave(&clients[i]);
    }
    end(fixture);
    remove_files(&files);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests_over_tls_are_answered),
        cmocka_unit_test(test_a_large_answer_over_tls_arrives_whole),
        cmocka_unit_test(test_who_speaks_no_tls_is_not_answered_in_the_clear),
        cmocka_unit_test(test_an_old_version_of_tls_is_refused),
        cmocka_unit_test(test_a_handshake_that_does_not_end_is_given_up),
        cmocka_unit_test(test_one_connection_too_many_is_closed_before_its_handshake),
        cmocka_unit_test(test_files_that_are_no_good_are_named),
        cmocka_unit_test(test_one_file_may_hold_both),
        cmocka_unit_test(test_a_certificate_is_replaced_by_a_good_one_only),
        cmocka_unit_test(test_a_shared_piece_is_encrypted_for_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
