/* The version of receiptd; the only place where it is written. */
#ifndef RECEIPTD_BASE_VERSION_H
#define RECEIPTD_BASE_VERSION_H

#define RCPT_VERSION "0.1.0"

#endif
