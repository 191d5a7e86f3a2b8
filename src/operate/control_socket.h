/* Requests of operators over the control socket; control.h has the protocol. */
#ifndef RECEIPTD_OPERATE_CONTROL_SOCKET_H
#define RECEIPTD_OPERATE_CONTROL_SOCKET_H

#include "reload.h"
#include "status.h"

struct control;

struct control_settings {
    struct app_context *context;
    struct receipts *receipts;
    const struct status *status;
    struct reload *reload;
};

/* Listens at control.socket, if it can: the daemon goes on without. */
struct control *control_new(const struct control_settings *settings);
void control_close(struct control *control); /* app_closed says when */
void control_free(struct control *control);

#endif
