/* OpenSSL between the socket and the parser, over two memory BIOs: only libuv touches the socket.
 * http_tls_receive() turns bytes from the socket into plain ones, http_tls_encrypt() turns `out`
 * into bytes for the socket. Called by connection.c. */
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "internal.h"

struct tls_context {
    SSL_CTX *context;
};

struct tls_session {
    SSL *ssl;
    BIO *in, *out; /* owned by ssl */
};

/* OpenSSL's queue of errors is emptied, so that the next failure has its own reason. */
static bool fail(struct rcpt_error *error, const char *what, const char *path)
{
    char reason[160];
    ERR_error_string_n(ERR_get_error(), reason, sizeof(reason));
    ERR_clear_error();
    rcpt_error_fatal(error, EX_CONFIG, "%s %s cannot be used: %s", what, path, reason);
    rcpt_error_hint(error, "PEM: the certificate with its chain, and the private key that fits");
    return false;
}

/* HTTP/1.1 is all that is offered; a client that names only others is not refused. */
static int choose_protocol(SSL *ssl, const unsigned char **chosen, unsigned char *chosen_size,
                           const unsigned char *offered, unsigned offered_size, void *context)
{
    static const unsigned char known[] = "\x08http/1.1";
    unsigned char *selected = NULL;
    (void)ssl;
    (void)context;
    if (SSL_select_next_proto(&selected, chosen_size, known, sizeof(known) - 1, offered,
                              offered_size) != OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_NOACK;
    *chosen = selected;
    return SSL_TLSEXT_ERR_OK;
}

/* TLS 1.2 at least; no renegotiation, which costs the server more than the client. RELEASE_BUFFERS
 * saves some 34 KiB per idle connection. */
static bool load(SSL_CTX *context, const char *certificate, const char *key,
                 struct rcpt_error *error)
{
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_IGNORE_UNEXPECTED_EOF |
                                     SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_alpn_select_cb(context, choose_protocol, NULL);
    if (SSL_CTX_use_certificate_chain_file(context, certificate) != 1)
        return fail(error, "certificate", certificate);
    if (SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_check_private_key(context) != 1)
        return fail(error, "key", key);
    return true;
}

/* NULL: a file cannot be used; the caller keeps what it has. */
struct tls_context *http_tls_context_new(const char *certificate, const char *key,
                                         struct rcpt_error *error)
{
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    RCPT_ASSERT(context != NULL);
    if (!load(context, certificate, key, error)) {
        SSL_CTX_free(context);
        return NULL;
    }
    struct tls_context *wrapped = rcpt_calloc(1, sizeof(*wrapped));
    wrapped->context = context;
    return wrapped;
}

/* Sessions hold the SSL_CTX as long as they need it. */
void http_tls_context_free(struct tls_context *context)
{
    if (context == NULL)
        return;
    SSL_CTX_free(context->context); /* sessions hold it as long as they need it */
    free(context);
}

/* SSL_set_bio takes both BIOs: SSL_free frees them. */
struct tls_session *http_tls_session_new(struct tls_context *context)
{
    struct tls_session *session = rcpt_calloc(1, sizeof(*session));
    session->ssl = SSL_new(context->context);
    session->in = BIO_new(BIO_s_mem());
    session->out = BIO_new(BIO_s_mem());
    RCPT_ASSERT(session->ssl != NULL && session->in != NULL && session->out != NULL);
    SSL_set_bio(session->ssl, session->in, session->out);
    SSL_set_accept_state(session->ssl);
    return session;
}

void http_tls_session_free(struct tls_session *session)
{
    if (session == NULL)
        return;
    SSL_free(session->ssl);
    free(session);
}

/* One read of the socket may hold several TLS records, hence the loop. False: the session is
 * broken. The parser may close the connection meanwhile. */
bool http_tls_receive(struct connection *connection, const char *bytes, size_t size,
                      http_take *take)
{
    struct rcpt_http_server *server = connection->server;
    SSL *ssl = connection->tls->ssl;
    if (BIO_write(connection->tls->in, bytes, (int)size) != (int)size)
        return false;
    while (connection->state != CONNECTION_CLOSED) {
        int got = SSL_read(ssl, server->plain_buffer, HTTP_READ_BYTES);
        if (got > 0) {
            take(connection, server->plain_buffer, (size_t)got);
            continue;
        }
        int reason = SSL_get_error(ssl, got);
        if (reason == SSL_ERROR_WANT_READ || reason == SSL_ERROR_ZERO_RETURN)
            return true; /* after a goodbye the socket's end follows */
        server->stats.tls_failures++;
        ERR_clear_error();
        return false;
    }
    return true;
}

/* Replaces the plain bytes in `out`. A session that cannot encrypt sends nothing: no byte leaves in
 * the clear. */
void http_tls_encrypt(struct connection *connection)
{
    struct tls_session *session = connection->tls;
    struct rcpt_buffer *out = &connection->out;
    if (out->size > 0 && SSL_write(session->ssl, out->bytes, (int)out->size) != (int)out->size) {
        ERR_clear_error(); /* the session is broken: it sends no plain byte */
        http_connection_end_after(connection);
    }
    out->size = 0;
    char *bytes = NULL;
    long size = BIO_get_mem_data(session->out, &bytes);
    if (size > 0)
        rcpt_buffer_append(out, bytes, (size_t)size);
    BIO_reset(session->out);
}

/* close_notify is sent only in a session that stands; before, OpenSSL would report an error. */
void http_tls_say_goodbye(struct connection *connection)
{
    if (SSL_is_init_finished(connection->tls->ssl))
        SSL_shutdown(connection->tls->ssl);
}
