/* The SQL of sql/, embedded by the build: sql/lane/fence.sql is "lane/fence". Readable and runnable
 * there. */
#ifndef RECEIPTD_POSTGRES_SQL_H
#define RECEIPTD_POSTGRES_SQL_H

#include <stddef.h>

/* Text of an embedded file, terminated; asserts that the name exists. It is a constant. */
const char *rcpt_sql(const char *name);
/* Names of all files, sorted, from index 0 on; NULL behind the last. */
const char *rcpt_sql_name(size_t index);

#endif
