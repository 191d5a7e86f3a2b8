/* Shared by the files of the log: log.c makes lines, log_output.c writes them. */
#ifndef RECEIPTD_BASE_LOG_INTERNAL_H
#define RECEIPTD_BASE_LOG_INTERNAL_H

#include "receiptd/base/log.h"

/* The caller holds the log's lock. */

/* Finds out what stderr is. True: it is the journal's socket. */
bool log_output_open(void);
/* False: the line is lost. `size` is at most PIPE_BUF, so that a pipe takes all of it or nothing.
 */
bool log_output_write(const char *line, size_t size);

#endif
