# shellcheck shell=sh disable=SC2034
# Packages of Debian: which ones are needed for what, installing them, and a whole Debian in a directory.
. "$ROOT/scripts/lib/common.sh"

# Each script that sources this takes --no-install anywhere among its arguments: the same as RECEIPTD_INSTALL=no.
for argument in "$@"; do
    shift
    case $argument in
    --no-install) export RECEIPTD_INSTALL=no ;;
    *) set -- "$@" "$argument" ;;
    esac
done

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

# missing_packages NAME…: those of which no alternative is installed, each once.
missing_packages() {
    for mp_names in $(printf '%s\n' "$@" | sort -u); do
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

# install_packages NAME…: says what is missing, and then asks apt for it. RECEIPTD_INSTALL=no: says it and ends.
install_packages() {
    in_missing=$(missing_packages "$@")
    [ -n "$in_missing" ] || return 0
    command -v apt-get > /dev/null || die "this is not Debian: install yourself what it calls: $in_missing"
    in_hint="run as root (of NAME|OTHER give the one that your Debian has): apt-get install --no-install-recommends $in_missing"
    [ "${RECEIPTD_INSTALL:-yes}" != no ] || die "packages are missing, and it is told to install none (--no-install); $in_hint"
    say "installs: $in_missing"
    is_root || { command -v sudo > /dev/null && sudo -v; } || die "packages are missing, and neither root nor sudo is at hand; $in_hint"
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
