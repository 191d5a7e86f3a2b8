"""The manifests in a real Kubernetes (scripts/test --kubernetes): pods that run as "restricted", under load, while what happens to
pods happens: rollouts, drained nodes, a killed process, a frozen one. The ledger has the last word.

One story in one test: each chapter needs the one before. Another test causes alerts, which a Prometheus finds as the PodMonitor says."""

import base64
import json
import os
import shutil
import signal
import subprocess
import threading
import time
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
import yaml

from faults.servers import free_ports, make_directory
from oracle import broker
from oracle.traffic import Traffic
from support.daemon import Receiptd
from support.prometheus import Prometheus, shortened
from support.secure import ROLE, ROLE_PASSWORD, USERS, Authority, SecureBroker, SecurePair, SecurePostgres
from support.services import ROOT
from support.wait import wait_for
from support.world import Feeder, World

NODE = "10.90.0.1"
REPLICAS = 3
TOKEN = "token-of-the-cluster"
TEN_MINUTES_MS = 600_000
SIZES = (1, 1, 2, 5, 10)

pytestmark = [pytest.mark.slow,
              pytest.mark.skipif("RECEIPTD_TEST_CLUSTER" not in os.environ, reason="scripts/test --kubernetes makes the cluster")]


class Cluster:
    def __init__(self, directory):
        self.directory = Path(directory)

    def kubectl(self, *words, check=True, stdin=None, timeout=300):
        result = subprocess.run([self.directory / "bin/kubectl", "--kubeconfig", self.directory / "run/admin.conf", "-n", "receiptd",
                                 *map(str, words)], input=stdin, text=True, capture_output=True, timeout=timeout)
        if check:
            assert result.returncode == 0, f"kubectl {' '.join(map(str, words))}: {result.stdout}{result.stderr}\n{self.story()}"
        return result

    def typed(self, line, **names):
        """A line of the docs."""
        for name, value in names.items():
            line = line.replace(name, value)
        return self.kubectl(*line.split()[1:])

    def get(self, *words):
        return json.loads(self.kubectl("get", *words, "-o", "json").stdout)

    def pods(self):
        return [pod for pod in self.get("pods", "-l", "app.kubernetes.io/name=receiptd")["items"]
                if "deletionTimestamp" not in pod["metadata"]]

    def ready(self):
        return [pod for pod in self.pods() if any(condition["type"] == "Ready" and condition["status"] == "True"
                                                  for condition in pod["status"].get("conditions", []))]

    def restarts(self):
        return sum(pod["status"]["containerStatuses"][0]["restartCount"] for pod in self.pods())

    def wait_until_ready(self, count=REPLICAS, timeout=300):
        wait_for(lambda: len(self.ready()) == count == len(self.pods()), timeout, f"{count} pods are ready", interval=0.5,
                 details=self.story)

    def story(self):
        """What an operator would look at."""
        words = (["get", "pods", "-o", "wide"], ["get", "events", "--sort-by=.lastTimestamp"],
                 ["logs", "-l", "app.kubernetes.io/name=receiptd", "--tail=8"],
                 *(["logs", pod["metadata"]["name"], "--previous", "--tail=25"] for pod in self.pods()))
        return "\n".join(self.kubectl(*some, check=False).stdout[-3000:] for some in words)

    @staticmethod
    def processes():
        """The daemons in the pods, as the host numbers them."""
        found = []
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and (entry / "cmdline").read_bytes() == b"/usr/bin/receiptd\0run\0":
                    found.append(int(entry.name))
            except OSError:
                pass
        return found


class Place:
    """PostgreSQL and Kafka where the pods can reach them, asking for TLS and passwords."""

    def __init__(self):
        self.directory = make_directory()
        self.authority = Authority(self.directory, "authority")
        self.broker = SecureBroker(self.directory, "kafka", self.authority, host=NODE)
        self.postgres = SecurePostgres(self.directory, "postgres-1", free_ports(1)[0])

    def start(self):
        self.broker.start()
        (self.directory / "postgres-1").mkdir()
        self.postgres.own(self.directory / "postgres-1")
        self.postgres.create(self.authority, NODE)
        self.broker.await_answer()

    def close(self):
        for server in (self.broker, self.postgres):
            server.end(signal.SIGKILL)
        shutil.rmtree((self.directory / "socket").resolve(), ignore_errors=True)
        shutil.rmtree(self.directory, ignore_errors=True)


@pytest.fixture
def place():
    place = Place()
    try:
        place.start()
        yield place
    finally:
        place.close()


@pytest.fixture
def cluster():
    cluster = Cluster(os.environ["RECEIPTD_TEST_CLUSTER"])
    cluster.kubectl("delete", "namespace", "receiptd", "--ignore-not-found", "--wait=true")
    yield cluster
    cluster.kubectl("uncordon", "node0", check=False)


@pytest.fixture
def world(place, tmp_path):
    services = SecurePair(place.postgres, place.broker)
    database, topic = services.create_database(), services.create_topic(6, retention_ms=-1)
    world = World(Receiptd(tmp_path, database.dsn, services.brokers, [topic]), database, topic,
                  Traffic(31, 40_000, 6, late=0.02, sizes=SIZES))
    world.installation.command("migrate", "--role", ROLE)
    place.broker.allow("receiptd", str(topic), "receiptd")
    world.insert(world.stream.early)
    yield world
    world.installation.close()


def overlay(directory, place, world):
    """The base, told where things are, and a little quicker to react."""
    secret = {"dsn": f"host={NODE} port={place.postgres.port} user={ROLE} password={ROLE_PASSWORD} dbname={world.database.name}"
                     " sslmode=verify-full sslrootcert=/etc/receiptd/secrets/ca.pem",
              "kafka-password": USERS["receiptd"], "http-token": TOKEN, "ca.pem": place.authority.path.read_text()}
    config = yaml.safe_load((ROOT / "config/kubernetes/base/receiptd.yaml").read_text())
    config["kafka"].update(brokers=place.broker.address["SASL_SSL"], topics=[str(world.topic)])
    config["kafka"]["properties"].update({"session.timeout.ms": "15000", "heartbeat.interval.ms": "1000"})
    config["progress"] = {"idle_interval": "200ms"}
    config["parked"] = {"poll_interval": "200ms"}
    quick = {"spec": {"replicas": REPLICAS, "minReadySeconds": 1, "template": {"spec": {"containers": [
        {"name": "receiptd", "livenessProbe": {"periodSeconds": 3, "timeoutSeconds": 5, "failureThreshold": 4},
         "readinessProbe": {"periodSeconds": 1, "failureThreshold": 30}, "startupProbe": {"periodSeconds": 2},
         "resources": {"requests": {"cpu": "500m"}}}]}}}}
    head = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "receiptd", "namespace": "receiptd"}}
    made = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "receiptd", "namespace": "receiptd"},
             "data": {name: base64.b64encode(text.encode()).decode() for name, text in secret.items()}}
    files = {"receiptd.yaml": config, "deployment.yaml": {**head, **quick}, "secret.yaml": made,
             "kustomization.yaml": {
                 "apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization",
                 "resources": [os.path.relpath(ROOT / "config/kubernetes/base", directory.resolve()), "secret.yaml"],
                 "configMapGenerator": [{"name": "receiptd", "namespace": "receiptd", "behavior": "replace", "files": ["receiptd.yaml"]}],
                 "patches": [{"path": "deployment.yaml"}],
                 "images": [{"name": "receiptd", "newName": "localhost/receiptd"}]}}
    for name, content in files.items():
        (directory / name).write_text(yaml.safe_dump(content))
    return directory


class Load:
    """The stream, again and again, until it is stopped."""

    def __init__(self, world, per_second=600):
        self.world, self.stop = world, threading.Event()
        pace = per_second / world.stream.events_per_record
        world.feeder = Feeder(lambda: broker.produce(world.brokers, str(world.topic), self.records(), per_second=pace,
                                                     stop=self.stop))

    def records(self):
        while True:
            yield from self.world.stream.records()

    def end(self):
        self.stop.set()
        self.world.feeder.join()


def all_partitions_move(world, cluster):
    def positions():
        return dict(world.database.query("SELECT partition, sum(next_offset)::int8 FROM receiptd.consumer_progress GROUP BY 1"))

    before = positions()
    wait_for(lambda: all(positions().get(partition) != before.get(partition) for partition in range(6)), 120,
             "all partitions move", details=cluster.story)


def memory_of(pid):
    """(limit, most that was used) of the container, by its cgroup."""
    line = next(line for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines() if ":memory:" in line)
    group = Path("/sys/fs/cgroup/memory" + line.split(":", 2)[2])
    return [int((group / f"memory.{name}").read_text()) for name in ("limit_in_bytes", "max_usage_in_bytes")]


def deploy(cluster, place, world, directory):
    directory.mkdir()
    applied = cluster.kubectl("apply", "--server-side", "-k", overlay(directory, place, world))
    assert "would violate PodSecurity" not in applied.stderr, applied.stderr
    cluster.wait_until_ready()


def exact_in_the_end(world):
    world.insert(world.stream.late)
    world.wait_until_consumed(timeout=120)
    world.wait_until_woken(timeout=120)
    world.audit()
    world.assert_exact()


def test_what_happens_to_pods_loses_and_doubles_nothing(cluster, place, world, tmp_path):
    deploy(cluster, place, world, tmp_path / "overlay")
    refused = cluster.kubectl("run", "careless", "--image=localhost/pause:1", "--dry-run=server", check=False)
    assert refused.returncode != 0 and "violates PodSecurity" in refused.stderr

    load = Load(world)
    all_partitions_move(world, cluster)
    pod = cluster.ready()[0]["metadata"]["name"]
    assert "ready" in cluster.typed('kubectl -n receiptd exec POD -- receiptd ctl status', POD=pod).stdout
    assert str(world.topic) in cluster.typed('kubectl -n receiptd exec POD -- receiptd positions show', POD=pod).stdout
    assert cluster.kubectl("exec", pod, "--", "/bin/sh", "-c", "true", check=False).returncode != 0  # there is no shell

    old = {one["metadata"]["name"] for one in cluster.pods()}
    cluster.kubectl("rollout", "restart", "deployment/receiptd")
    cluster.kubectl("rollout", "status", "deployment/receiptd", "--timeout=240s")
    cluster.wait_until_ready()
    assert not old & {one["metadata"]["name"] for one in cluster.pods()}
    all_partitions_move(world, cluster)
    cluster.wait_until_ready()

    drained = cluster.kubectl("drain", "node0", "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=10s", check=False)
    assert drained.returncode != 0 and "disruption budget" in drained.stderr
    assert len(cluster.ready()) == REPLICAS - 1
    all_partitions_move(world, cluster)
    cluster.kubectl("uncordon", "node0")
    cluster.wait_until_ready()

    before = cluster.restarts()
    os.kill(cluster.processes()[0], signal.SIGKILL)
    wait_for(lambda: cluster.restarts() > before, 120, "the killed one was started again", details=cluster.story)
    cluster.wait_until_ready()
    before = cluster.restarts()
    os.kill(cluster.processes()[0], signal.SIGSTOP)
    wait_for(lambda: cluster.restarts() > before, 180, "the frozen one was found by its probe", interval=0.5, details=cluster.story)
    cluster.wait_until_ready()
    all_partitions_move(world, cluster)

    for pid in cluster.processes():
        limit, most = memory_of(pid)
        assert limit == 384 * 2**20 and most < limit, (limit, most)
    load.end()
    exact_in_the_end(world)
    states = [pod["status"]["containerStatuses"][0].get("lastState", {}) for pod in cluster.pods()]
    assert "OOMKilled" not in str(states)
    cluster.kubectl("delete", "deployment/receiptd", "--wait=true")
    wait_for(lambda: not cluster.pods(), 120, "pods are gone")


def test_each_configuration_is_migrated_by_a_job_of_its_own(cluster, place, world, tmp_path):
    """The chapter's lines, with a second configuration, and with a Job that was deleted."""
    directory = tmp_path / "overlay"
    directory.mkdir()
    overlay(directory, place, world)
    kustomization = yaml.safe_load((directory / "kustomization.yaml").read_text())
    owner = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "receiptd-owner", "namespace": "receiptd"},
             "stringData": {"dsn": f"host={NODE} port={place.postgres.port} user=receiptd password={ROLE_PASSWORD} dbname={world.database.name}"
                            " sslmode=verify-full sslrootcert=/etc/receiptd/secrets/ca.pem"}}
    with place.postgres.connect() as administrator:
        administrator.execute(f"ALTER ROLE receiptd PASSWORD '{ROLE_PASSWORD}'")
    (directory / "owner.yaml").write_text(yaml.safe_dump(owner))
    kustomization["resources"].append("owner.yaml")
    kustomization["components"] = [os.path.relpath(ROOT / "config/kubernetes/components/migrate", directory.resolve())]
    # The test's owner is a superuser and called receiptd.
    arguments = "/spec/template/spec/containers/0/args"
    kustomization["patches"] += [
        {"target": {"kind": "Job"}, "patch": json.dumps([{"op": "replace", "path": f"{arguments}/4", "value": ROLE},
                                                         {"op": "add", "path": f"{arguments}/-", "value": "--as-superuser"}])}]
    (directory / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    cluster.kubectl("apply", "--server-side", "-k", directory)
    cluster.typed('kubectl -n receiptd wait --for=condition=complete job -l app.kubernetes.io/name=receiptd-migrate --timeout=300s')
    assert world.database.value("SELECT count(*) FROM pg_roles WHERE rolname IN ('receiptd_intake', 'receiptd_serve')") == 2

    config = yaml.safe_load((directory / "receiptd.yaml").read_text())
    (directory / "receiptd.yaml").write_text(yaml.safe_dump({**config, "log": {"level": "debug"}}))
    cluster.kubectl("apply", "--server-side", "-k", directory)
    cluster.typed('kubectl -n receiptd wait --for=condition=complete job -l app.kubernetes.io/name=receiptd-migrate --timeout=300s')
    jobs = cluster.get("jobs", "-l", "app.kubernetes.io/name=receiptd-migrate")["items"]
    assert len({one["metadata"]["name"] for one in jobs}) == 2

    cluster.typed('kubectl -n receiptd delete job -l app.kubernetes.io/name=receiptd-migrate')
    cluster.kubectl("apply", "--server-side", "-k", directory)
    cluster.typed('kubectl -n receiptd wait --for=condition=complete job -l app.kubernetes.io/name=receiptd-migrate --timeout=300s')
    cluster.kubectl("delete", "deployment/receiptd", "--wait=true")


class Discovery:
    """Kubernetes' service discovery, which Debian's Prometheus lacks: a file with the ports of all pods and their labels."""

    def __init__(self, cluster, path):
        self.cluster, self.path, self.stop = cluster, path, threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.stop.wait(1):
            part = self.path.with_suffix(".part")
            part.write_text(json.dumps([self.target(pod, port) for pod in self.cluster.get("pods")["items"] if pod["status"].get("podIP")
                                        for port in pod["spec"]["containers"][0].get("ports", [])]))
            part.rename(self.path)

    @staticmethod
    def target(pod, port):
        labels = {label_of(name): value for name, value in pod["metadata"]["labels"].items()}
        return {"targets": [f"{pod['status']['podIP']}:{port['containerPort']}"],
                "labels": {**labels, "__meta_kubernetes_pod_container_port_name": port["name"],
                           "__meta_kubernetes_pod_phase": pod["status"]["phase"]}}

    def close(self):
        self.stop.set()
        self.thread.join()


def label_of(name):
    return "__meta_kubernetes_pod_label_" + "".join(letter if letter.isalnum() else "_" for letter in name)


def scrape_of_the_pod_monitor(targets):
    """What the Prometheus operator makes of it."""
    monitor = yaml.safe_load((ROOT / "config/kubernetes/components/pod-monitor/pod-monitor.yaml").read_text())
    spec, (endpoint,) = monitor["spec"], monitor["spec"]["podMetricsEndpoints"]
    kept = [([label_of(name)], value) for name, value in spec["selector"]["matchLabels"].items()]
    kept.append((["__meta_kubernetes_pod_container_port_name"], endpoint["port"]))
    name = f"{monitor['metadata']['namespace']}/{monitor['metadata']['name']}"
    return {"job_name": name, "metrics_path": endpoint["path"], "authorization": {"credentials": TOKEN},
            "file_sd_configs": [{"files": [str(targets)], "refresh_interval": "1s"}],
            "relabel_configs": [*({"action": "keep", "source_labels": source, "regex": value} for source, value in kept),
                                {"action": "drop", "source_labels": ["__meta_kubernetes_pod_phase"], "regex": "(Failed|Succeeded)"},
                                {"source_labels": [label_of(spec["jobLabel"])], "target_label": "job"}]}


def test_alerts_fire_for_what_is_wrong_with_pods_and_end_with_it(cluster, place, world, tmp_path):
    deploy(cluster, place, world, tmp_path / "overlay")
    rules = tmp_path / "rules.yaml"
    rules.write_text(shortened((ROOT / "config/prometheus/rules.yaml").read_text()))
    world.insert_ids("late")
    load = Load(world)
    targets = tmp_path / "targets.json"
    with closing(Discovery(cluster, targets)), closing(Prometheus(tmp_path, scrape_of_the_pod_monitor(targets), rules)) as prometheus:
        def story():
            return f"firing: {prometheus.firing()}\n{cluster.story()}"

        def wait_until_fires(*names):
            wait_for(lambda: set(names) <= (prometheus.firing() or set()), 180, f"{names} fire", interval=0.5, details=story)

        def wait_until_quiet(*names):
            wait_for(lambda: prometheus.firing() is not None and not set(names) & prometheus.firing(), 180, f"{names} end", interval=0.5,
                     details=story)

        wait_for(lambda: len(prometheus.query('up{job="receiptd"} == 1')) == REPLICAS, 120, "all pods are scraped", details=story)
        all_partitions_move(world, cluster)
        lag, down = ("ReceiptdLagging", "ReceiptdNoProgress"), ("ReceiptdDown",)
        wait_until_quiet(*lag, *down)

        with psycopg.connect(world.database.dsn, application_name="somebody") as operator:
            operator.execute("LOCK TABLE receiptd.message_inbox IN ACCESS EXCLUSIVE MODE")
            for partition in range(6):
                world.topic.send({"message_id": "late", "status": "SENT"}, partition=partition,
                                 timestamp_ms=int(time.time() * 1000) - TEN_MINUTES_MS)
            wait_until_fires(*lag)
        wait_until_quiet(*lag)

        cluster.kubectl("scale", "deployment/receiptd", "--replicas=0")
        wait_for(lambda: not cluster.pods(), 120, "pods are gone")
        wait_until_fires(*down)
        cluster.kubectl("scale", "deployment/receiptd", f"--replicas={REPLICAS}")
        cluster.wait_until_ready()
        wait_until_quiet(*lag, *down)
    load.end()
    exact_in_the_end(world)
