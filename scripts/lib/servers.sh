# shellcheck shell=sh
# Private servers: PostgreSQL and Kafka on loopback, in build/services/NAME/{postgres,kafka,env}.
. "$ROOT/scripts/lib/fetch.sh"

# PostgreSQL refuses to run as root, and Kafka need not: for root both run as the user of Debian's package.
service_user() {
    if is_root; then
        echo postgres
    else
        id -un
    fi
}

as_service() {
    (exec_as_service "$@")
}

exec_as_service() {
    if is_root; then
        exec setpriv --reuid=postgres --regid=postgres --init-groups -- "$@"
    else
        exec "$@"
    fi
}

# True for test servers where memory has room for their data. The limit of a container counts too.
room_in_memory() {
    [ "${RECEIPTD_TEST_FSYNC:-on}" = off ] && [ -d /dev/shm ] || return 1
    {
        df -Pk /dev/shm | awk 'NR == 2 { print $4 }'
        awk '$1 == "MemAvailable:" { print $2 }' /proc/meminfo
        cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes 2> /dev/null | awk '$1 ~ /^[0-9]+$/ { print $1 / 1024 }'
    } | awk '$1 < 10 * 1024 * 1024 { exit 1 }'
}

# Prints the directory of all services. One process makes it, since tracks of tests and scripts/services may start together.
services_base() {
    [ -d "$BUILD/services/." ] || (
        mkdir -p "$BUILD"
        exec 8> "$BUILD/services.lock"
        flock 8
        [ -d "$BUILD/services/." ] || make_services_base
    )
    readlink -f "$BUILD/services"
}

# The directory appears whole, by one rename. Services of tests lie in memory, since copying a database makes hundreds of files. A checkout
# below /root (or another closed directory) cannot be entered by the service's user: then the data lies in /var/tmp. In both cases
# build/services is a link.
make_services_base() {
    rm -f "$BUILD/services"
    ms_dir=$(mktemp -d "$BUILD/services.XXXXXX")
    chmod 755 "$ms_dir"
    ms_other=
    if room_in_memory; then
        ms_other=/dev/shm
    elif ! as_service test -x "$ms_dir"; then
        ms_other=/var/tmp
    fi
    if [ -n "$ms_other" ]; then
        rmdir "$ms_dir"
        ms_dir=$(mktemp -d "$ms_other/receiptd-services.XXXXXX")
        chmod 755 "$ms_dir"
        ln -s "$ms_dir" "$BUILD/services"
    else
        mv "$ms_dir" "$BUILD/services"
    fi
}

# Puts the jars where the service's user can read them.
kafka_class_path() {
    if as_service test -r "$KAFKA_HOME/complete"; then
        echo "$KAFKA_HOME/libs/*"
        return
    fi
    kc_copy=$(services_base)/$(basename "$KAFKA_HOME")-libs
    if ! cmp -s "$KAFKA_HOME/complete" "$kc_copy/complete"; then
        rm -rf "$kc_copy"
        cp -r "$KAFKA_HOME/libs" "$kc_copy"
        cp "$KAFKA_HOME/complete" "$kc_copy/complete"
    fi
    echo "$kc_copy/*"
}

# free_ports N: prints numbers on which no process listens now.
free_ports() {
    PYTHONPATH="$ROOT/tests" PYTHONDONTWRITEBYTECODE=1 "$PYTHON" -c '
import sys
from support.ports import free_ports
print(*free_ports(int(sys.argv[1])))' "$1"
}

postgres_bin() {
    for pb_dir in $(printf '%s\n' /usr/lib/postgresql/*/bin | sort -t/ -k5,5nr); do
        [ -x "$pb_dir/initdb" ] && echo "$pb_dir" && return
    done
    die "no PostgreSQL server found below /usr/lib/postgresql"
}

# create_postgres DIR PORT: loopback asks for a password, the socket does not (its directory is closed to others). RECEIPTD_TEST_FSYNC=off: for
# tests, which kill processes and no machines.
create_postgres() {
    sp_bin=$(postgres_bin)
    sp_data=$1/postgres
    as_service "$sp_bin/initdb" -D "$sp_data" -U receiptd -E UTF8 --locale=C.UTF-8 --no-sync \
        --auth-local=trust --auth-host=scram-sha-256 --pwfile="$1/password" > "$1/initdb.log" 2>&1 || {
        cat "$1/initdb.log" >&2
        return 1
    }
    as_service tee -a "$sp_data/postgresql.conf" > /dev/null << CONF
listen_addresses = '127.0.0.1'
port = $2
unix_socket_directories = '$1/socket'
shared_buffers = 256MB
max_connections = 200
max_wal_size = 4GB
checkpoint_timeout = 15min
log_line_prefix = '%m [%p] %d %a '
fsync = ${RECEIPTD_TEST_FSYNC:-on}
CONF
}

start_postgres() {
    as_service "$(postgres_bin)/pg_ctl" -D "$1/postgres" -l "$1/postgres.log" -s -w -t 60 start || {
        tail -n 20 "$1/postgres.log" >&2
        return 1
    }
}

# configure_kafka DIR PORT CONTROLLER_PORT
configure_kafka() {
    as_service tee "$1/kafka.properties" > /dev/null << CONF
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$3
listeners=PLAINTEXT://127.0.0.1:$2,CONTROLLER://127.0.0.1:$3
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs=$1/kafka
auto.create.topics.enable=false
default.replication.factor=1
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
message.max.bytes=16777216
replica.fetch.max.bytes=16777216
log.cleaner.dedupe.buffer.size=8388608
CONF
}

# start_kafka DIR: returns at once; await_kafka waits.
start_kafka() {
    sk_path=$(kafka_class_path)
    # The subshell becomes the broker: no other process holds the caller's output open.
    # shellcheck disable=SC2016 # expanded by the inner shell
    (
        exec < /dev/null > "$1/kafka.log" 2>&1
        exec_as_service setsid sh -c '
            cd "$1"
            echo $$ > kafka.pid
            [ -f kafka/meta.properties ] || java -XX:TieredStopAtLevel=1 -cp "$2" kafka.tools.StorageTool format \
                -t "$(head -c 16 /dev/urandom | base64 | tr +/ AB | cut -c 1-22)" -c kafka.properties || exit 1
            exec java -Xmx384m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 \
                -Dorg.slf4j.simpleLogger.defaultLogLevel=warn -Dorg.slf4j.simpleLogger.showDateTime=true \
                -cp "$2" kafka.Kafka kafka.properties' sh "$1" "$sk_path"
    ) &
}

# await_kafka DIR: waits until the broker answers, as long as it lives, at most 90 s.
await_kafka() {
    aw_address=$(sed -nE 's#^listeners=PLAINTEXT://([^,]*),.*#\1#p' "$1/kafka.properties")
    "$PYTHON" - "$1/kafka.pid" "$aw_address" << 'PYTHON' || { tail -n 20 "$1/kafka.log" >&2; return 1; }
import os, sys, time
from confluent_kafka.admin import AdminClient
pid_file, brokers = sys.argv[1:]
admin = AdminClient({"bootstrap.servers": brokers, "log_level": 0, "reconnect.backoff.max.ms": 200})
deadline = time.monotonic() + 90
while time.monotonic() < deadline:
    try:
        if admin.list_topics(timeout=1).brokers:
            sys.exit(0)
    except Exception:
        pass
    try:
        os.kill(int(open(pid_file).read()), 0)
    except (ProcessLookupError, ValueError):
        sys.exit("the broker ended")
    except (PermissionError, FileNotFoundError):
        pass
sys.exit("the broker did not answer in time")
PYTHON
}

# services_start NAME: sets SERVICES_DIR; afterwards SERVICES_DIR/env holds what clients need.
services_start() {
    SERVICES_DIR=$(services_base)/$1
    services_running "$1" && return 0
    services_stop "$1"
    ss_try=1
    until services_start_once "$1"; do
        services_stop "$1"
        # Another process may take a port between its being found and its use.
        ss_try=$((ss_try + 1))
        [ "$ss_try" -le 3 ] || die "PostgreSQL and Kafka could not be started: see above"
        say "starting the services once more"
    done
}

services_start_once() {
    mkdir -m 700 "$SERVICES_DIR" "$SERVICES_DIR/socket"
    # A socket's path is limited to 107 bytes.
    if [ "${#SERVICES_DIR}" -gt 80 ]; then
        rmdir "$SERVICES_DIR/socket"
        ln -s "$(mktemp -d /tmp/receiptd-socket.XXXXXX)" "$SERVICES_DIR/socket"
    fi
    (umask 077 && head -c 18 /dev/urandom | base64 | tr +/ -_ > "$SERVICES_DIR/password")
    is_root && chown -R -L postgres:postgres "$SERVICES_DIR"
    so_socket=$(readlink -f "$SERVICES_DIR/socket" | sed 's/[\\ ]/\\&/g') # as libpq wants a blank
    # shellcheck disable=SC2046 # three numbers
    set -- $(free_ports 3)
    (
        cd "$SERVICES_DIR"
        configure_kafka "$SERVICES_DIR" "$2" "$3"
        start_kafka "$SERVICES_DIR"
        create_postgres "$SERVICES_DIR" "$1" && start_postgres "$SERVICES_DIR"
    ) && await_kafka "$SERVICES_DIR" || return 1
    # libpq looks up the password there for clients that name only the address.
    (umask 077 && echo "*:$1:*:receiptd:$(cat "$SERVICES_DIR/password")" > "$SERVICES_DIR/pgpass")
    cat > "$SERVICES_DIR/env" << ENV
RECEIPTD_TEST_DSN='host=$so_socket port=$1 user=receiptd dbname=postgres'
RECEIPTD_TEST_TCP_DSN='host=127.0.0.1 port=$1 user=receiptd dbname=postgres password=$(cat "$SERVICES_DIR/password")'
RECEIPTD_TEST_BROKERS='127.0.0.1:$2'
RECEIPTD_TEST_SERVICES='$SERVICES_DIR'
RECEIPTD_TEST_RESTART='"$ROOT/scripts/services" --name $(basename "$SERVICES_DIR") postgres restart'
RECEIPTD_TEST_BROKER_STOP='"$ROOT/scripts/services" --name $(basename "$SERVICES_DIR") kafka term'
RECEIPTD_TEST_BROKER_START='"$ROOT/scripts/services" --name $(basename "$SERVICES_DIR") kafka start'
RECEIPTD_TEST_BROKER_DATA='$SERVICES_DIR/kafka'
PGPASSFILE='$SERVICES_DIR/pgpass'
export RECEIPTD_TEST_DSN RECEIPTD_TEST_TCP_DSN RECEIPTD_TEST_BROKERS RECEIPTD_TEST_SERVICES RECEIPTD_TEST_RESTART
export RECEIPTD_TEST_BROKER_STOP RECEIPTD_TEST_BROKER_START RECEIPTD_TEST_BROKER_DATA PGPASSFILE
ENV
}

# ours PID DIR: true if the process was started for that directory (the system reuses numbers).
ours() {
    [ -n "$1" ] && { tr '\0' ' ' < "/proc/$1/cmdline"; } 2> /dev/null | grep -qE 'java|postgres|^sh ' &&
        [ "$(readlink -f "/proc/$1/cwd")" = "$2" ]
}

services_running() {
    sr_dir=$(services_base)/$1
    [ -f "$sr_dir/env" ] && ours "$(cat "$sr_dir/kafka.pid")" "$sr_dir" &&
        ours "$(head -n 1 "$sr_dir/postgres/postmaster.pid" 2> /dev/null)" "$sr_dir/postgres"
}

# await_end PID: waits until the process is also reaped; before, its number in a lock file counts as alive.
await_end() {
    ae_left=200
    while [ -d "/proc/$1" ] && [ "$ae_left" -gt 0 ]; do
        ae_left=$((ae_left - 1))
        sleep 0.05
    done
}

# stop_kafka DIR SIGNAL: TERM lets it end in order, KILL does not.
stop_kafka() {
    sk_pid=$(cat "$1/kafka.pid" 2> /dev/null || true)
    ours "$sk_pid" "$1" || return 0
    kill -s "$2" -- "-$sk_pid" # its own process group
    await_end "$sk_pid"
}

# stop_postgres DIR MODE: MODE is one of pg_ctl's, or kill for an end like a crash.
stop_postgres() {
    sp_pid=$(head -n 1 "$1/postgres/postmaster.pid" 2> /dev/null || true)
    ours "$sp_pid" "$1/postgres" || return 0
    if [ "$2" = kill ]; then
        kill -s KILL "$sp_pid"
        await_end "$sp_pid"
    else
        (cd / && as_service "$(postgres_bin)/pg_ctl" -D "$1/postgres" -s -w -m "$2" stop)
    fi
}

# services_stop NAME: deletes the data too, so the servers need no orderly shutdown.
services_stop() {
    st_dir=$(services_base)/$1
    [ -d "$st_dir" ] || return 0
    stop_kafka "$st_dir" KILL
    stop_postgres "$st_dir" immediate || true
    if [ -L "$st_dir/socket" ]; then
        rm -rf "$(readlink -f "$st_dir/socket")"
    fi
    rm -rf "$st_dir"
}

# Deletes the directory beside the checkout too, if there is one.
services_stop_all() {
    [ -d "$BUILD/services/." ] || return 0
    sa_base=$(services_base)
    for sa_dir in "$sa_base"/*/; do
        [ -d "$sa_dir/socket" ] && services_stop "$(basename "$sa_dir")"
    done
    rm -rf "$sa_base" "$BUILD/services"
}
