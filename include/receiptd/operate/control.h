/* Requests of operators over the control socket. `receiptd ctl` sends one line of words, the daemon
 * sends one answer and closes.
 *
 * Request: "FORMAT VERB [WORD…]\n", format "text" or "json". Answer: the exit code as a decimal
 * number, a newline, then the text to be printed.
 */
#ifndef RECEIPTD_OPERATE_CONTROL_H
#define RECEIPTD_OPERATE_CONTROL_H

#include "receiptd/operate/operate.h"

#define CONTROL_MAX_WORDS  4
#define CONTROL_LINE_BYTES 256u

struct control;

struct control_settings {
    struct host_context *context;
    struct receipts *receipts;
    const struct status *status;
    struct reload *reload;
};

/* Listens at control.socket; if it cannot, the daemon goes on without a socket. */
struct control *control_new(const struct control_settings *settings);
void control_close(struct control *control); /* host_closed says when */
void control_free(struct control *control);

#endif
