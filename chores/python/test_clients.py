"""aicli and assisted-service-client, unmodified, against a running hub with simulated hosts.

Run by `cargo xtask test --only aicli`. MUSTER_HUB is the hub's URL, MUSTER_BIN the binary that simulates hosts,
HOME a directory that may be written to.
"""

import json
import os
import re
import subprocess
import sys
import time
import unittest
import uuid
from pathlib import Path

from assisted_service_client import ApiClient, Configuration, api, models
from assisted_service_client.rest import ApiException

URL = os.environ["MUSTER_HUB"]
HOME = Path(os.environ["HOME"])
PULL_SECRET = json.dumps({"auths": {"registry.example.com": {"auth": "dGVzdDp0ZXN0", "email": "ops@example.com"}}})
SSH_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMqqnzmlkPTO7kWhYdjYYhKPnLDRgCMMKA+ouN18ks4E ops@example.com"

# Generous: a debug build, two busy cores.
ARRIVAL_SECONDS = 90


def setUpModule():
    (HOME / "pull.json").write_text(PULL_SECRET)
    (HOME / "key.pub").write_text(SSH_KEY)
    # Where aicli looks for a key when it is given none.
    (HOME / ".ssh").mkdir(exist_ok=True)
    (HOME / ".ssh" / "id_rsa.pub").write_text(SSH_KEY)


def aicli(*words, check=True):
    """What the command prints, without its colours. An API error ends aicli with a traceback and a non-zero code."""
    command = [str(Path(sys.executable).parent / "aicli"), "-U", URL, *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, cwd=HOME)
    if check and done.returncode != 0:
        raise AssertionError(f"aicli {' '.join(words)} ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
    return re.sub(r"\x1b\[[0-9;]*m", "", done.stdout)


def aicli_json(*words):
    """The same verb with its JSON output."""
    text = aicli("-o", "json", *words)
    return json.loads(text[min(text.index(mark) for mark in "[{" if mark in text):])


def credentials():
    return ["-P", f"pull_secret={HOME / 'pull.json'}", "-P", f"public_key={HOME / 'key.pub'}"]


def fields(text):
    """`key: value` lines of the info verbs."""
    return dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)


def wait_for(what, probe, seconds=ARRIVAL_SECONDS):
    deadline = time.monotonic() + seconds
    while True:
        answer = probe()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds} s for {what} in vain")
        time.sleep(0.2)


def fresh(name):
    return f"{name}-{uuid.uuid4().hex[:8]}"


class Python:
    """The generated client, as a program would use it."""

    def __init__(self):
        configuration = Configuration()
        configuration.host = f"{URL}/api/assisted-install"
        configuration.verify_ssl = False
        self.raw = ApiClient(configuration=configuration)
        self.installer = api.InstallerApi(api_client=self.raw)
        self.events = api.EventsApi(api_client=self.raw)
        self.versions = api.VersionsApi(api_client=self.raw)
        self.operators = api.OperatorsApi(api_client=self.raw)
        self.manifests = api.ManifestsApi(api_client=self.raw)

    def default_version(self):
        versions = self.versions.v2_list_supported_openshift_versions()
        defaults = [name for name, version in versions.items() if field(version, "default")]
        assert len(defaults) == 1, f"exactly one default version expected, got {defaults}"
        return defaults[0]

    def infra_env(self, name):
        params = models.InfraEnvCreateParams(
            name=name, pull_secret=PULL_SECRET, ssh_authorized_key=SSH_KEY, openshift_version=self.default_version()
        )
        return self.installer.register_infra_env(infraenv_create_params=params)

    def single_node(self, name):
        params = models.ClusterCreateParams(
            name=name,
            openshift_version=self.default_version(),
            pull_secret=PULL_SECRET,
            base_dns_domain="example.com",
            high_availability_mode="None",
            user_managed_networking=True,
        )
        return self.installer.v2_register_cluster(new_cluster_params=params)

    def hosts(self, infra_env_id):
        return self.installer.v2_list_hosts(infra_env_id=infra_env_id)


def field(thing, name):
    """The client gives some objects typed and some as plain dictionaries."""
    return thing.get(name) if isinstance(thing, dict) else getattr(thing, name)


class Fleet:
    """Simulated hosts that arrive in one InfraEnv, until stopped."""

    def __init__(self, infra_env_id, hosts, seed, *more):
        command = [os.environ["MUSTER_BIN"], "sim", "--hub", URL, "--infra-env", infra_env_id]
        command += ["--hosts", str(hosts), "--seed", str(seed), "--poll", "1", *more]
        self.log = open(HOME / f"sim-{fresh(str(seed))}.log", "wb")
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL)

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(timeout=30)
        self.log.close()


class Service(unittest.TestCase):
    def test_info_service(self):
        text = aicli("info", "service")
        self.assertIn(f"url: {URL}", text)
        self.assertRegex(text, r"supported openshift versions: \d+\.\d+")
        self.assertIn("release: ", text)
        self.assertIn("supported operators:", text)

    def test_versions_and_features_by_program(self):
        python = Python()
        version = python.default_version()
        self.assertIn("release_tag", python.versions.v2_list_component_versions().to_dict())
        self.assertIsInstance(python.operators.v2_list_supported_operators(), list)
        architectures = python.installer.get_supported_architectures(openshift_version=version)
        self.assertTrue(field(architectures, "architectures"))
        features = python.installer.get_supported_features(openshift_version=version)
        self.assertTrue(field(features, "features"))

    def test_an_unknown_id_is_a_404_with_the_error_body_clients_parse(self):
        with self.assertRaises(ApiException) as caught:
            Python().installer.get_infra_env(infra_env_id=str(uuid.uuid4()))
        self.assertEqual(caught.exception.status, 404)
        body = json.loads(caught.exception.body)
        self.assertEqual({"code", "href", "id", "kind", "reason"}, set(body))


class InfraEnvs(unittest.TestCase):
    def test_create_list_info_update_delete(self):
        name = fresh("rack")
        version = Python().default_version()
        aicli("create", "infraenv", name, *credentials(), "-P", f"openshift_version={version}")
        self.assertIn(name, aicli("list", "infraenv"))
        listed = [entry for entry in aicli_json("list", "infraenv") if entry["name"] == name]
        self.assertEqual(len(listed), 1)
        self.assertNotIn("cluster_id", listed[0])
        shown = fields(aicli("info", "infraenv", name))
        self.assertEqual(shown["id"], listed[0]["id"])
        self.assertEqual(shown["type"], "full-iso")

        aicli("update", "infraenv", name, "-P", "minimal=true", "-P", "kernel_arguments=[console=ttyS0]")
        shown = fields(aicli("info", "infraenv", name))
        self.assertEqual(shown["type"], "minimal-iso")
        self.assertIn("console=ttyS0", shown["kernel_arguments"])

        aicli("delete", "infraenv", "-y", name)
        self.assertNotIn(name, aicli("list", "infraenv"))

    def test_the_same_by_program(self):
        python = Python()
        env = python.infra_env(fresh("rack"))
        params = models.InfraEnvUpdateParams(additional_ntp_sources="ntp.example.com", image_type="minimal-iso")
        updated = python.installer.update_infra_env(infra_env_id=env.id, infra_env_update_params=params)
        self.assertEqual((updated.additional_ntp_sources, updated.type), ("ntp.example.com", "minimal-iso"))
        got = python.installer.get_infra_env(infra_env_id=env.id)
        self.assertEqual(got.name, env.name)
        self.assertIsNone(got.cluster_id)
        python.installer.deregister_infra_env(infra_env_id=env.id)
        with self.assertRaises(ApiException) as caught:
            python.installer.get_infra_env(infra_env_id=env.id)
        self.assertEqual(caught.exception.status, 404)

    def test_downloads(self):
        name = fresh("rack")
        env = Python().infra_env(name)
        aicli("download", "discovery-ignition", "-p", str(HOME), name)
        ignition = json.loads((HOME / f"discovery.ign.{name}").read_text())
        self.assertTrue(ignition["ignition"]["version"].startswith("3."))
        self.assertIn(SSH_KEY, json.dumps(ignition["passwd"]))
        aicli("download", "ipxe-script", "-p", str(HOME), name)
        script = (HOME / f"ipxe-script.{name}").read_text()
        self.assertTrue(script.startswith("#!ipxe"), script)
        self.assertIn("initrd", script)
        self.assertIn(env.id, script)
        self.assertTrue(aicli("info", "iso", name).strip())


class Clusters(unittest.TestCase):
    def create(self, name, *more):
        version = Python().default_version()
        words = [*credentials(), "-P", f"openshift_version={version}", "-P", "base_dns_domain=example.com", *more]
        aicli("create", "cluster", name, *words)

    def test_create_list_info_update_delete(self):
        name = fresh("edge")
        self.create(name, "-P", "infraenv=false")
        self.assertIn(name, aicli("list", "cluster"))
        shown = fields(aicli("info", "cluster", name))
        self.assertEqual((shown["base_dns_domain"], shown["high_availability_mode"]), ("example.com", "Full"))

        aicli("update", "cluster", name, "-P", "base_dns_domain=example.org", "-P", "infraenv=false")
        self.assertEqual(fields(aicli("info", "cluster", name))["base_dns_domain"], "example.org")
        self.assertIn("Date", aicli("list", "events", name))
        self.assertTrue(aicli("info", "validation", name).strip())

        aicli("delete", "cluster", "-y", name)
        self.assertNotIn(name, aicli("list", "cluster"))

    def test_a_cluster_with_an_infra_env_of_its_own(self):
        name = fresh("edge")
        self.create(name)
        (env,) = [entry for entry in aicli_json("list", "infraenv") if entry["name"] == f"{name}_infra-env"]
        (cluster,) = [entry for entry in aicli_json("list", "cluster") if entry["name"] == name]
        self.assertEqual(env["cluster_id"], cluster["id"])
        aicli("delete", "cluster", "-y", name)
        self.assertNotIn(name, aicli("list", "infraenv"))

    def test_the_same_by_program(self):
        python = Python()
        cluster = python.single_node(fresh("edge"))
        params = models.V2ClusterUpdateParams(ssh_public_key=SSH_KEY, http_proxy="http://proxy.example.com:3128")
        updated = python.installer.v2_update_cluster(cluster_id=cluster.id, cluster_update_params=params)
        self.assertEqual(updated.ssh_public_key, SSH_KEY)
        self.assertEqual(python.installer.v2_get_cluster(cluster_id=cluster.id).name, cluster.name)
        self.assertIn(cluster.id, [entry["id"] for entry in python.installer.v2_list_clusters()])
        python.installer.v2_deregister_cluster(cluster_id=cluster.id)
        with self.assertRaises(ApiException) as caught:
            python.installer.v2_get_cluster(cluster_id=cluster.id)
        self.assertEqual(caught.exception.status, 404)


class Hosts(unittest.TestCase):
    """Three free hosts that each test finds free and leaves free."""

    @classmethod
    def setUpClass(cls):
        cls.python = Python()
        cls.name = fresh("rack")
        cls.env = cls.python.infra_env(cls.name)
        cls.fleet = Fleet(cls.env.id, hosts=3, seed=101)
        cls.addClassCleanup(cls.fleet.stop)

    def setUp(self):
        self.hosts = wait_for("three free hosts", lambda: self.in_status("known-unbound", 3))
        self.host = self.hosts[0]

    def in_status(self, status, number):
        hosts = [host for host in self.python.hosts(self.env.id) if host["status"] == status]
        return hosts if len(hosts) == number else None

    def status(self, host_id):
        return self.python.installer.v2_get_host(infra_env_id=self.env.id, host_id=host_id).status

    def reach(self, host_id, status):
        wait_for(f"{host_id} to be {status}", lambda: self.status(host_id) == status)

    def single_node(self):
        name = fresh("sno")
        version = self.python.default_version()
        words = ["-P", "sno=true", "-P", "infraenv=false", "-P", "base_dns_domain=example.com"]
        aicli("create", "cluster", name, *credentials(), "-P", f"openshift_version={version}", *words)
        self.addCleanup(aicli, "delete", "cluster", "-y", name)
        (cluster,) = [entry for entry in aicli_json("list", "cluster") if entry["name"] == name]
        return cluster

    def test_list_and_info(self):
        table = aicli("list", "hosts")
        for host in self.hosts:
            self.assertIn(host["id"], table)
            self.assertNotIn("cluster_id", host)
        shown = fields(aicli("info", "host", self.host["id"]))
        self.assertEqual(shown["status"], "known-unbound")
        self.assertRegex(shown["ip"], r"^\d+\.\d+\.\d+\.\d+$")
        typed = self.python.installer.v2_get_host(infra_env_id=self.env.id, host_id=self.host["id"])
        self.assertEqual(typed.kind, "Host")
        self.assertGreater(json.loads(typed.inventory)["memory"]["physical_bytes"], 0)

    def test_update(self):
        name = fresh("node")
        words = ["-P", f"name={name}", "-P", "role=worker", "-P", "labels=[zone=a]"]
        aicli("update", "host", self.host["id"], *words)
        host = self.python.installer.v2_get_host(infra_env_id=self.env.id, host_id=self.host["id"])
        self.assertEqual((host.requested_hostname, host.role), (name, "worker"))
        self.assertEqual(json.loads(host.node_labels), {"zone": "a"})
        params = models.HostUpdateParams(host_role="auto-assign")
        self.python.installer.v2_update_host(
            infra_env_id=self.env.id, host_id=self.host["id"], host_update_params=params
        )
        aicli("update", "host", self.host["id"], "-P", "extra_args=--append-karg nosmt")
        host = self.python.installer.v2_get_host(infra_env_id=self.env.id, host_id=self.host["id"])
        self.assertEqual(host.role, "auto-assign")
        self.assertIn("nosmt", host.installer_args)

    def test_bind_wait_events_unbind(self):
        cluster = self.single_node()
        aicli("bind", "host", self.host["id"], cluster["name"])
        # Counts the hosts that are `known`: ours, once it has come back bound.
        aicli("wait", "hosts", "-n", "1", self.name)
        self.assertEqual(self.status(self.host["id"]), "known")
        self.assertIn(cluster["name"], aicli("list", "hosts"))
        bound = self.python.installer.list_cluster_hosts(cluster_id=cluster["id"])
        self.assertEqual([host["id"] for host in bound], [self.host["id"]])

        events = self.python.events.v2_list_events(cluster_id=cluster["id"])
        self.assertIn("host_bind_succeeded", [event["name"] for event in events])
        self.assertGreater(len(aicli("list", "events", cluster["name"]).splitlines()), 4)

        aicli("unbind", "host", self.host["id"])
        self.reach(self.host["id"], "known-unbound")
        (host,) = [host for host in self.python.hosts(self.env.id) if host["id"] == self.host["id"]]
        self.assertNotIn("cluster_id", host)

    def test_bind_and_unbind_by_program(self):
        cluster = self.single_node()
        params = models.BindHostParams(cluster_id=cluster["id"])
        bound = self.python.installer.bind_host(self.env.id, self.host["id"], params)
        self.assertEqual(bound.cluster_id, cluster["id"])
        self.reach(self.host["id"], "known")
        with self.assertRaises(ApiException) as caught:
            self.python.installer.bind_host(self.env.id, self.host["id"], params)
        self.assertEqual(caught.exception.status, 409)
        free = self.python.installer.unbind_host(infra_env_id=self.env.id, host_id=self.host["id"])
        self.assertIsNone(free.cluster_id)
        self.reach(self.host["id"], "known-unbound")

    def test_bind_and_unbind_a_whole_infra_env(self):
        name = fresh("trio")
        version = self.python.default_version()
        words = ["-P", "infraenv=false", "-P", "base_dns_domain=example.com", "-P", f"openshift_version={version}"]
        aicli("create", "cluster", name, *credentials(), *words)
        aicli("bind", "infraenv", self.name, name)
        wait_for("no free host", lambda: all("cluster_id" in host for host in self.python.hosts(self.env.id)))
        aicli("unbind", "infraenv", self.name)
        wait_for("three free hosts", lambda: self.in_status("known-unbound", 3))
        aicli("delete", "cluster", "-y", name)


class Deletion(unittest.TestCase):
    def test_hosts_that_no_longer_report_can_be_deleted_and_then_their_infra_env(self):
        python = Python()
        name = fresh("old")
        env = python.infra_env(name)
        fleet = Fleet(env.id, hosts=2, seed=202)
        self.addCleanup(fleet.stop)
        known = lambda: [host["id"] for host in python.hosts(env.id) if host["status"] == "known-unbound"]
        hosts = wait_for("two free hosts", lambda: known() if len(known()) == 2 else None)
        fleet.stop()

        self.assertNotEqual(aicli("delete", "infraenv", "-y", name, check=False), "")
        self.assertIn(name, aicli("list", "infraenv"), "an InfraEnv with hosts must not go")

        aicli("delete", "host", "-y", hosts[0])
        self.assertEqual([host["id"] for host in python.hosts(env.id)], hosts[1:])
        events = python.events.v2_list_events(infra_env_id=env.id)
        self.assertTrue(any(event.get("host_id") == hosts[0] for event in events))
        aicli("delete", "infraenv", "-y", "-f", name)
        self.assertNotIn(name, aicli("list", "infraenv"))


if __name__ == "__main__":
    unittest.main()
