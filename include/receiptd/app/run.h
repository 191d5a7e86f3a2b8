/* The daemon itself: owns the loop and the modules from start to drain. */
#ifndef RECEIPTD_APP_RUN_H
#define RECEIPTD_APP_RUN_H

#include "receiptd/config/config.h"

/* Runs until SIGTERM, SIGINT or a fatal error. The configuration is borrowed. Returns the exit code
 * (0 or sysexits), after logging what ended it. */
int rcpt_app_run(struct rcpt_config *config, const char *config_path);

#endif
