"""config/kubernetes and config/container as they are: valid by the API's own schemas, and right in what no schema knows."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from faults.servers import library
from support.daemon import Receiptd, binary
from support.services import ROOT

CORE = ("small", "large")
PARTS = {"intake": {"webhooks": "listen", "http": "metrics_listen"}, "serve": {"readers": "listen", "http": "metrics_listen"}}  # ports, by their keys
OVERLAYS = (*CORE, *PARTS)
RELEASE = "1.34"
# Kinds of operators that a cluster may have; Kubernetes' own schemas do not know them.
FOREIGN = {"PodMonitor": "monitoring.coreos.com/v1", "PrometheusRule": "monitoring.coreos.com/v1", "ScaledObject": "keda.sh/v1alpha1"}
# Where their definitions are: a module of Go and a file in it.
DEFINITIONS = {
    "PodMonitor": "github.com/prometheus-operator/prometheus-operator@v0.79.2 "
                  "example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml",
    "PrometheusRule": "github.com/prometheus-operator/prometheus-operator@v0.79.2 "
                      "example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
    "ScaledObject": "github.com/kedacore/keda/v2@v2.16.1 config/crd/bases/keda.sh_scaledobjects.yaml",
}
VALIDATE = """
import json, jsonschema, sys
schema, thing = json.load(sys.stdin)
for error in jsonschema.Draft7Validator(schema).iter_errors(thing):
    print("/".join(map(str, error.absolute_path)), error.message[:200])
"""
UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}
MEMORY_AT_REST = 96 * 2**20
MEMORY_OF_VIEWERS = 30 * 2**20  # 1 500, as many as serve takes (tests/records/bench-viewers.jsonl)


def bytes_of(text):
    number, unit = re.fullmatch(r"(\d+)(\w*)", text).groups()
    return int(number) * UNITS[unit]


def seconds_of(text):
    number, unit = re.fullmatch(r"(\d+)(s|m)", text).groups()
    return int(number) * {"s": 1, "m": 60}[unit]


def kustomize():
    """The command that builds an overlay."""
    if not any(shutil.which(tool) for tool in ("kustomize", "kubectl", "go")):
        pytest.skip("neither kustomize nor kubectl, nor go to build it with: Debian has no package of either")
    return library("fetch_kustomize").split()


class Overlay:
    def __init__(self, name, path=None):
        command = kustomize()
        self.name, self.part = name, name if name in PARTS else None
        self.text = subprocess.run([*command, path or ROOT / f"config/kubernetes/overlays/{name}"], check=True, text=True,
                                   capture_output=True).stdout
        self.objects = list(yaml.safe_load_all(self.text))

    def get(self, kind):
        return next(one for one in self.objects if one["kind"] == kind)

    @property
    def pod(self):
        return self.get("Deployment")["spec"]["template"]["spec"]

    @property
    def container(self):
        return self.pod["containers"][0]

    @property
    def config(self):
        return self.get("ConfigMap")["data"]["receiptd.yaml"]

    @property
    def secrets(self):
        """The files of the Secret that the configuration names."""
        return set(re.findall(r"/etc/receiptd/secrets/([\w.-]+)", self.config))


# What a cluster with these operators adds.
OPERATORS = {"small": ["pod-monitor", "prometheus-rule"], "large": ["pod-monitor", "prometheus-rule", "keda"], "static": ["pod-monitor", "prometheus-rule"],
             "intake": ["pod-monitor-intake"], "serve": ["pod-monitor-serve"]}


def composed(directory, name, components, **more):
    """An overlay of one's own: one of ours, and these components."""
    directory.mkdir(exist_ok=True)

    def relative(path):
        return os.path.relpath(ROOT / "config/kubernetes" / path, directory.resolve())

    (directory / "kustomization.yaml").write_text(yaml.safe_dump({
        "apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": [relative(f"overlays/{name}")],
        "components": [relative(f"components/{one}") for one in components], **more}))
    return Overlay(name, directory)


@pytest.fixture(scope="module")
def overlays(tmp_path_factory):
    """With the operators' objects."""
    return {name: composed(tmp_path_factory.mktemp(name), name, OPERATORS[name]) for name in OVERLAYS}


@pytest.fixture(params=OVERLAYS)
def overlay(request, overlays):
    return overlays[request.param]


@pytest.fixture(params=CORE)
def core(request, overlays):
    return overlays[request.param]


def test_every_object_is_valid_by_the_schema_of_its_kind(overlay, tmp_path):
    path = tmp_path / "all.yaml"
    path.write_text(overlay.text)
    package = library("fetch_kubernetes_validate")
    checked = subprocess.run([sys.executable, "-c", "import sys; from kubernetes_validate.__main__ import main; sys.exit(main())",
                              "-k", RELEASE, "--strict", str(path)], text=True, capture_output=True,
                             env={**os.environ, "PYTHONPATH": package})
    told = checked.stdout + checked.stderr
    assert checked.returncode == 0, told
    unknown = set(re.findall(r"find schema for kind (\w+)", told))
    assert unknown <= set(FOREIGN) and told.count("passed") == len(overlay.objects) - len(unknown)
    assert all(one["apiVersion"] == FOREIGN[one["kind"]] for one in overlay.objects if one["kind"] in FOREIGN)


def test_a_misspelt_field_is_found(overlay, tmp_path):
    """The check above would notice."""
    path = tmp_path / "all.yaml"
    path.write_text(overlay.text.replace("readOnlyRootFilesystem", "readOnlyRootFileSystem"))
    checked = subprocess.run([sys.executable, "-c", "import sys; from kubernetes_validate.__main__ import main; sys.exit(main())",
                              "-k", RELEASE, "--strict", str(path)], text=True, capture_output=True,
                             env={**os.environ, "PYTHONPATH": library("fetch_kubernetes_validate")})
    assert checked.returncode != 0


def strict(schema):
    """The same, with every field that it does not know refused, as a server does by --validate=strict."""
    if isinstance(schema, list):
        return [strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    tightened = {key: strict(value) for key, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and "additionalProperties" not in schema \
            and not schema.get("x-kubernetes-preserve-unknown-fields"):
        tightened["additionalProperties"] = False
    return tightened


def complaints(kind, thing):
    """What an operator's own definition of the kind says against an object."""
    try:
        path = library(f"fetch_crd {DEFINITIONS[kind]}")
    except subprocess.CalledProcessError:
        pytest.skip(f"{DEFINITIONS[kind].split()[0]} cannot be fetched")
    definition = yaml.safe_load(Path(path).read_text())
    version = FOREIGN[kind].rpartition("/")[2]
    schema, = (one["schema"]["openAPIV3Schema"] for one in definition["spec"]["versions"] if one["name"] == version)
    return subprocess.run([sys.executable, "-c", VALIDATE], input=json.dumps([strict(schema), thing]), text=True, capture_output=True, check=True,
                          env={**os.environ, "PYTHONPATH": library("fetch_kubernetes_validate")}).stdout


@pytest.mark.skipif(shutil.which("go") is None, reason="needs go, whose modules hold the operators' definitions")
def test_objects_of_operators_are_valid_by_their_definitions(overlays):
    found = {one["kind"]: one for overlay in overlays.values() for one in overlay.objects if one["kind"] in FOREIGN}
    assert set(found) == set(FOREIGN)
    for kind, thing in found.items():
        assert complaints(kind, thing) == "", kind
        assert "misspelt" in complaints(kind, {**thing, "spec": {**thing["spec"], "misspelt": True}})


def test_no_secret_is_among_the_manifests_and_the_one_to_be_made_is_told(overlay):
    assert not [one for one in overlay.objects if one["kind"] == "Secret"]
    assert "replace-me" not in overlay.text
    secret, = (volume["secret"]["secretName"] for volume in overlay.pod["volumes"] if "secret" in volume)
    # The dsn names the authorities' file as well.
    folder = f"components/{overlay.part}" if overlay.part else "base"
    for path in (ROOT / f"config/kubernetes/{folder}/deployment.yaml", ROOT / "docs/operations.md"):
        command = re.search(rf"create secret generic {secret} ((?:[^\n]*\\\n)*[^\n]*)", path.read_text()).group(1)
        assert set(re.findall(r"--from-file=([\w.-]+)", command)) == overlay.secrets | {"ca.pem"}, path


def test_the_configuration_in_the_pod_is_one_that_receiptd_takes(overlay, tmp_path):
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    for name in overlay.secrets:
        (secrets / name).write_text(f"the {name} of this test" if name != "dsn" else "host=db.example sslmode=verify-full password=0123456789abcdef")
        (secrets / name).chmod(0o440)
    installation = Receiptd(tmp_path, "", "", [])
    installation.write_config(overlay.config.replace("/etc/receiptd/secrets", str(secrets)))
    notes = installation.command("check-config").stderr.splitlines()
    # One is meant: the kubelet and Prometheus ask the pod's address without TLS, and the network policy lets nobody else.
    key = f"{overlay.part}.metrics_listen" if overlay.part else "http.listen"
    assert [note.split("; ")[0] for note in notes] == [f"note: {key}: the pages and their tokens cross the network in clear text"]


@pytest.mark.parametrize("part", PARTS)
def test_a_part_has_nothing_of_the_core(overlays, tmp_path, part):
    """Side by side in one overlay: another account, Secret, policy; each network policy and service finds its own pods alone."""
    both = composed(tmp_path, "small", [part])
    pods = {one["metadata"]["name"]: one["spec"]["template"] for one in both.objects if one["kind"] == "Deployment"}
    assert set(pods) == {"receiptd", f"receiptd-{part}"}
    mine, other = pods[f"receiptd-{part}"], pods["receiptd"]
    for differing in (lambda pod: pod["spec"]["serviceAccountName"],
                      lambda pod: [volume["secret"]["secretName"] for volume in pod["spec"]["volumes"] if "secret" in volume],
                      lambda pod: pod["metadata"]["labels"]["app.kubernetes.io/name"]):
        assert differing(mine) != differing(other)
    for kind, selector in (("NetworkPolicy", lambda spec: spec["podSelector"]["matchLabels"]), ("Service", lambda spec: spec["selector"]),
                           ("PodDisruptionBudget", lambda spec: spec["selector"]["matchLabels"])):
        found = {one["metadata"]["name"]: selector(one["spec"]) for one in both.objects if one["kind"] == kind}
        assert set(found) == set(pods), kind
        for name, labels in found.items():
            assert [pod for pod in pods if labels.items() <= pods[pod]["metadata"]["labels"].items()] == [name]
    policy = next(one for one in both.objects if one["kind"] == "NetworkPolicy" and one["metadata"]["name"] == f"receiptd-{part}")
    assert all("from" in rule for rule in policy["spec"]["ingress"])
    assert all(one["metadata"]["namespace"] == "receiptd" for one in both.objects if one["kind"] != "Namespace")
    named = next(volume["configMap"]["name"] for volume in mine["spec"]["volumes"] if "configMap" in volume)
    assert named.startswith(f"receiptd-{part}-") and named in {one["metadata"]["name"] for one in both.objects if one["kind"] == "ConfigMap"}


def test_the_drain_ends_before_the_grace_period_does(overlay):
    deadline = seconds_of(yaml.safe_load(overlay.config)["shutdown"]["deadline"])
    assert overlay.pod["terminationGracePeriodSeconds"] >= deadline + 10


def test_the_memory_limit_holds_the_byte_budgets(overlay):
    config, resources = yaml.safe_load(overlay.config), overlay.container["resources"]
    kafka = config["kafka"]
    needed = 2 * bytes_of(config["intake"]["memory"]) if overlay.part == "intake" else MEMORY_OF_VIEWERS if overlay.part else \
        2 * (bytes_of(kafka["fetch_budget"]) + bytes_of(config["memory"]["budget"])) + 6 * bytes_of(kafka.get("batch_limit", "32MiB"))
    assert bytes_of(resources["limits"]["memory"]) >= MEMORY_AT_REST + needed
    assert resources["requests"]["memory"] == resources["limits"]["memory"]
    assert "cpu" in resources["requests"] and "cpu" not in resources["limits"]


def test_the_pod_has_no_right_that_it_does_not_need(overlay):
    pod, container = overlay.pod, overlay.container
    assert pod["automountServiceAccountToken"] is False and overlay.get("ServiceAccount")["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["runAsUser"] >= 10000
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                                            "capabilities": {"drop": ["ALL"]}}
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod) and "env" not in container and "envFrom" not in container
    assert overlay.get("Namespace")["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"


def test_probes_ask_the_pages_that_are_meant_for_them(overlay):
    container = overlay.container
    paths = {kind: container[f"{kind}Probe"]["httpGet"]["path"] for kind in ("startup", "liveness", "readiness")}
    assert paths == {"startup": "/startupz", "liveness": "/livez", "readiness": "/readyz"}
    startup = container["startupProbe"]
    assert startup["failureThreshold"] * startup["periodSeconds"] >= 120
    assert all(container[f"{kind}Probe"]["timeoutSeconds"] >= 3 for kind in paths)
    config = yaml.safe_load(overlay.config)
    listening = {name: config[overlay.part][key] for name, key in PARTS[overlay.part].items()} if overlay.part else {"http": config["http"]["listen"]}
    assert container["ports"] == [{"name": name, "containerPort": int(address.rpartition(":")[2])} for name, address in listening.items()]


def test_selectors_find_the_pods_and_only_one_thing_scales_them(core):
    overlay = core
    labels = overlay.get("Deployment")["spec"]["template"]["metadata"]["labels"]
    selectors = [overlay.get("Deployment")["spec"]["selector"]["matchLabels"], overlay.get("Service")["spec"]["selector"],
                 overlay.get("PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
                 overlay.get("NetworkPolicy")["spec"]["podSelector"]["matchLabels"],
                 overlay.get("PodMonitor")["spec"]["selector"]["matchLabels"]]
    assert all(selector and selector.items() <= labels.items() for selector in selectors)
    assert overlay.get("PodDisruptionBudget")["spec"]["maxUnavailable"] == 1
    assert len([one for one in overlay.objects if one["kind"] in ("HorizontalPodAutoscaler", "ScaledObject")]) == 1


def test_the_lag_that_scaling_asks_for_is_a_figure_of_receiptd(overlays):
    page = (ROOT / "docs/metrics.md").read_text()
    scalers = [overlays["small"].get("HorizontalPodAutoscaler"), overlays["large"].get("ScaledObject")]
    names = set(re.findall(r"receiptd_\w+", json.dumps(scalers)))
    assert names == {"receiptd_partition_lag_records"} and all(f"`{name}`" in page for name in names)


def test_the_version_of_the_image_is_the_version_of_the_binary(overlay):
    version = subprocess.run([binary(), "version"], check=True, text=True, capture_output=True).stdout.split()[1]
    assert overlay.container["image"] == f"receiptd:{version}"


def test_the_dockerfile_is_clean():
    """hadolint's opinion, where the registry has it for this machine."""
    checked = subprocess.run([library("fetch_hadolint"), ROOT / "config/container/Dockerfile"], text=True, capture_output=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_static_members_are_named_like_their_pods(tmp_path):
    overlay = composed(tmp_path / "overlay", "static", OPERATORS["static"])
    test_every_object_is_valid_by_the_schema_of_its_kind(overlay, tmp_path)
    assert not [one for one in overlay.objects if one["kind"] in ("Deployment", "HorizontalPodAutoscaler", "ScaledObject")]
    spec = overlay.get("StatefulSet")["spec"]
    assert spec["serviceName"] == overlay.get("Service")["metadata"]["name"]
    name, = spec["template"]["spec"]["containers"][0]["env"]
    assert name == {"name": "RECEIPTD_INSTANCE_ID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}


def test_the_alerts_find_what_prometheus_scrapes(overlays):
    """Without jobLabel the job is NAMESPACE/NAME of the PodMonitor, and an alert on job="receiptd" never fires."""
    for overlay in overlays.values():
        monitor, pod = overlay.get("PodMonitor"), overlay.get("Deployment" if overlay.name != "static" else "StatefulSet")["spec"]["template"]
        labels = pod["metadata"]["labels"]
        assert monitor["spec"]["selector"]["matchLabels"].items() <= labels.items()
        assert labels[monitor["spec"]["jobLabel"]] == (f"receiptd-{overlay.part}" if overlay.part else "receiptd")
        endpoint, = monitor["spec"]["podMetricsEndpoints"]
        assert endpoint["port"] in [port["name"] for port in pod["spec"]["containers"][0]["ports"]]
        assert endpoint["authorization"]["credentials"]["name"] in [volume["secret"]["secretName"] for volume in pod["spec"]["volumes"] if "secret" in volume]


def test_the_rules_of_the_operator_are_those_that_are_tested(core):
    written = ROOT / "config/kubernetes/components/prometheus-rule/prometheus-rule.yaml"
    assert core.get("PrometheusRule")["spec"]["groups"][0]["name"] == "receiptd"
    assert yaml.safe_load(written.read_text())["spec"] == yaml.safe_load((ROOT / "config/prometheus/rules.yaml").read_text()), "run scripts/update-docs"


def test_an_apply_leaves_the_number_of_replicas_to_the_autoscaler(core):
    scaled = [one for one in core.objects if one["kind"] in ("HorizontalPodAutoscaler", "ScaledObject")]
    assert [one["spec"]["scaleTargetRef"]["name"] for one in scaled] == ["receiptd"]
    assert "replicas" not in core.get("Deployment")["spec"]


def test_webhooks_and_all_that_the_configuration_names_may_be_reached(core):
    ports = {port["port"] for rule in core.get("NetworkPolicy")["spec"]["egress"] for port in rule["ports"]}
    assert {53, 443, 4318, 5432, 9092} <= ports


def test_a_cron_job_maintains_as_the_owner(tmp_path):
    both = composed(tmp_path, "small", ["maintain"])
    job, daemon = both.get("CronJob")["spec"]["jobTemplate"]["spec"]["template"], both.get("Deployment")["spec"]["template"]
    (container,) = job["spec"]["containers"]
    assert container["args"] == ["maintain", "--dsn", "file:/etc/receiptd/owner/dsn"]
    assert container["image"] == daemon["spec"]["containers"][0]["image"]
    maps = [next(volume["configMap"]["name"] for volume in pod["spec"]["volumes"] if "configMap" in volume) for pod in (job, daemon)]
    assert maps[0] == maps[1], "both have the same configuration"
    policies = [one["spec"] for one in both.objects if one["kind"] == "NetworkPolicy"]
    (policy,) = (one for one in policies if one["podSelector"]["matchLabels"].items() <= job["metadata"]["labels"].items())
    assert "ingress" not in policy and {port["port"] for rule in policy["egress"] for port in rule["ports"]} == {53, 5432}


def test_a_job_migrates_as_the_owner_and_no_other_pod_has_his_dsn(tmp_path):
    both = composed(tmp_path, "small", ["migrate"])
    job, daemon = both.get("Job")["spec"]["template"], both.get("Deployment")["spec"]["template"]
    (container,) = job["spec"]["containers"]
    assert container["args"][:3] == ["migrate", "--dsn", "file:/etc/receiptd/owner/dsn"]
    # The roles that the Secrets of all parts name, each time.
    assert container["args"][3:] == ["--role", "receiptd", "--intake-role", "receiptd_intake", "--serve-role", "receiptd_serve"]
    assert container["image"] == daemon["spec"]["containers"][0]["image"]
    sources = [[volume.get("configMap", volume.get("secret")) for volume in pod["spec"]["volumes"] if {"configMap", "secret"} & set(volume)]
               for pod in (job, daemon)]
    assert sources[0][0]["name"] == sources[1][0]["name"], "both have the same configuration"
    assert {"receiptd-owner"} == {one.get("secretName") for one in sources[0]} - {one.get("secretName") for one in sources[1]}
    assert not (both.get("PodDisruptionBudget")["spec"]["selector"]["matchLabels"].items() <= job["metadata"]["labels"].items())
    policies = [one["spec"] for one in both.objects if one["kind"] == "NetworkPolicy"]
    (policy,) = (one for one in policies if one["podSelector"]["matchLabels"].items() <= job["metadata"]["labels"].items())
    assert "ingress" not in policy and {port["port"] for rule in policy["egress"] for port in rule["ports"]} == {53, 5432}


@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "config/kubernetes/overlays").iterdir()))
def test_an_overlay_needs_no_operator(overlays, name):
    """A kind that the cluster does not know makes the whole `kubectl apply` fail."""
    assert {one["kind"] for one in Overlay(name).objects} & set(FOREIGN) == set()
    assert {one["kind"] for overlay in overlays.values() for one in overlay.objects} >= set(FOREIGN)  # where they are wanted


def test_each_configuration_has_a_job_of_its_own_that_migrates(overlays, tmp_path):
    """A Job cannot be changed: one of the same name with another ConfigMap would be refused."""
    def job_of(overlay):
        job = overlay.get("Job")
        volume = next(one["configMap"]["name"] for one in job["spec"]["template"]["spec"]["volumes"] if "configMap" in one)
        assert job["metadata"]["name"] == volume and volume in [one["metadata"]["name"] for one in overlay.objects if one["kind"] == "ConfigMap"]
        assert 60 <= job["spec"]["ttlSecondsAfterFinished"] <= 600  # afterwards an apply makes it again
        return job["metadata"]["name"]

    changed = tmp_path / "changed"
    changed.mkdir()
    (changed / "receiptd.yaml").write_text((ROOT / "config/kubernetes/base/receiptd.yaml").read_text() + "\nlog: {level: debug}\n")
    names = [job_of(composed(tmp_path / "one", "small", ["migrate"])), job_of(composed(tmp_path / "two", "large", ["migrate"])),
             job_of(composed(tmp_path / "three", "small", ["migrate", "maintain", "intake", "serve"])),
             job_of(composed(changed, "small", ["migrate"], configMapGenerator=[
                 {"name": "receiptd", "namespace": "receiptd", "behavior": "replace", "files": ["receiptd.yaml"]}]))]
    assert names[0] == names[2] and len(set(names)) == 3


def test_every_command_finds_its_configuration_where_it_looks(overlays, tmp_path):
    """So `kubectl exec POD -- receiptd ctl status` works as it is written, and so does every other command."""
    default = re.search(r'RCPT_CONFIG_DEFAULT_PATH "(.*)"', (ROOT / "include/receiptd/config/config.h").read_text()).group(1)
    templates = [one["spec"].get("jobTemplate", one)["spec"]["template"] for one in
                 composed(tmp_path, "small", ["migrate", "maintain", "intake", "serve"]).objects if one["kind"] in ("Deployment", "Job", "CronJob")]
    assert len(templates) == 5
    for pod in templates:
        container, = pod["spec"]["containers"]
        mounts = {mount["mountPath"]: mount for mount in container["volumeMounts"]}
        assert mounts[default]["subPath"] == "receiptd.yaml" and "--config" not in container["args"]
    (socket,) = re.findall(r"^\| `control.socket` \| [^|]* \| `(.*?)`", (ROOT / "docs/configuration.md").read_text(), re.MULTILINE)
    assert os.path.dirname(socket) in {mount["mountPath"] for mount in overlays["small"].container["volumeMounts"]}
    assert "control" not in yaml.safe_load(overlays["small"].config)


def kubectl_lines():
    """Each command line of the docs that names kubectl, with its continuations."""
    for path in (ROOT / "docs/operations.md", ROOT / "docs/install.md", ROOT / "docs/retention.md", ROOT / "docs/serve.md"):
        text = path.read_text()
        block = "\n".join(re.findall(r"^```sh\n(.*?)```", text, re.MULTILINE | re.DOTALL)).replace("\\\n", " ")
        lines = [line.partition("#")[0].strip() for line in block.splitlines() if line.startswith("kubectl ")]
        yield from lines + re.findall(r"`(kubectl [^`]+)`", text)


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl")
@pytest.mark.parametrize("line", sorted(set(kubectl_lines())))
def test_a_line_of_the_docs_that_names_kubectl_is_one_that_it_takes(line, tmp_path):
    """What needs a cluster is typed in tests/kubernetes."""
    words = line.split()
    if "create" in words:
        for name in re.findall(r"--from-file=(\S+)", line):
            (tmp_path / name).write_text("x")
        made = subprocess.run([*words, "--dry-run=client", "-o", "json"], cwd=tmp_path, text=True, capture_output=True)
        assert made.returncode == 0 and json.loads(made.stdout)["kind"] == "Secret", made.stderr
    elif "-k" in words:
        assert (ROOT / words[words.index("-k") + 1] / "kustomization.yaml").is_file()
    elif words[1] != "kustomize":
        assert f"typed({line!r}" in (ROOT / "tests/kubernetes/test_cluster.py").read_text(), f"no test types {line}"
