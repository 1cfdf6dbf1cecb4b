"""Whole clusters by aicli and assisted-service-client: installed on simulated hosts, grown, stopped, given back.

Run with test_clients, which says what it needs.
"""

import base64
import ipaddress
import json
import unittest
from pathlib import Path

from assisted_service_client import models
from assisted_service_client.rest import ApiException

from test_clients import HOME, Fleet, Python, aicli, aicli_json, credentials, fresh, setUpModule, wait_for

# Installations of seconds, and somebody who boots the discovery image on machines that are to come back.
QUICK = ["--install-time", "6s", "--return-boots", "1s"]
# Three masters, a controller and its operators, on two busy cores.
INSTALL_SECONDS = 150

__all__ = ["setUpModule"]


def create_cluster(python, name, *more):
    words = [*credentials(), "-P", f"openshift_version={python.default_version()}"]
    aicli("create", "cluster", name, *words, "-P", "base_dns_domain=example.com", *more)
    return next(entry for entry in aicli_json("list", "cluster") if entry["name"] == name)


def virtual_addresses(host):
    """Two addresses of the host's network that no host has."""
    addresses = [ip for nic in json.loads(host["inventory"])["interfaces"] for ip in nic["ipv4_addresses"] or []]
    network = ipaddress.ip_interface(addresses[0]).network
    return str(network.broadcast_address - 1), str(network.broadcast_address - 2)


class Pool:
    """An InfraEnv and the hosts that arrive in it."""

    def __init__(self, python, env_id):
        self.python, self.id = python, env_id

    def hosts(self, status):
        return [host for host in self.python.hosts(self.id) if host["status"] == status]

    def wait(self, number, status, seconds=90):
        def enough():
            hosts = self.hosts(status)
            return hosts if len(hosts) == number else None

        try:
            return wait_for(f"{number} hosts to be {status}", enough, seconds)
        except AssertionError as error:
            seen = [(host["status"], host["status_info"]) for host in self.python.hosts(self.id)]
            raise AssertionError(f"{error}: {seen}") from None


class Case(unittest.TestCase):
    def setUp(self):
        self.python = Python()

    def cluster(self, cluster_id):
        return self.python.installer.v2_get_cluster(cluster_id=cluster_id)

    def reach(self, cluster_id, status, seconds=INSTALL_SECONDS):
        def is_there():
            cluster = self.cluster(cluster_id)
            self.assertNotEqual(cluster.status, "error", cluster.status_info)
            return cluster if cluster.status == status else None

        return wait_for(f"the cluster to be {status}", is_there, seconds)

    def install(self, name, cluster_id):
        """As people do it; `aicli wait cluster` ends when the installation has ended, well or not."""
        aicli("wait", "cluster", "-s", "ready", name)
        aicli("start", "cluster", name)
        aicli("wait", "cluster", name)
        cluster = self.cluster(cluster_id)
        self.assertEqual((cluster.status, cluster.progress.total_percentage), ("installed", 100), cluster.status_info)
        return cluster


class ThreeNodes(Case):
    def test_installed_grown_deleted_and_all_hosts_back_for_a_second_cluster(self):
        python = self.python
        env = python.infra_env(fresh("pool"))
        # These are machines that can be masters.
        fleet = Fleet(env.id, 4, 303, "--first-index", "1", *QUICK)
        self.addCleanup(fleet.stop)
        pool = Pool(python, env.id)
        free = pool.wait(4, "known-unbound")
        api_vip, ingress_vip = virtual_addresses(free[0])

        name = fresh("trio")
        more = ["-P", "infraenv=false", "-P", f"api_vip={api_vip}", "-P", f"ingress_vip={ingress_vip}"]
        cluster_id = create_cluster(python, name, *more)["id"]
        self.manifests(name, cluster_id)
        for host in free[:3]:
            aicli("bind", "host", host["id"], name)
        self.install(name, cluster_id)
        installed = pool.wait(3, "installed")
        self.assertEqual({host["role"] for host in installed}, {"master"})
        self.assertEqual([host.get("bootstrap") for host in installed].count(True), 1)
        self.files(name, cluster_id)

        self.day_two(name, pool)

        aicli("delete", "cluster", "-y", name)
        back = pool.wait(4, "known-unbound")
        for host in back:
            self.assertNotIn("cluster_id", host)
            self.assertEqual((host["kind"], host["role"]), ("Host", "auto-assign"))
        events = python.events.v2_list_events(infra_env_id=env.id)
        self.assertEqual([event["name"] for event in events].count("host_returned"), 4)

        second = create_cluster(python, fresh("next"), *more)
        for host in back:
            aicli("bind", "host", host["id"], second["name"])
        self.reach(second["id"], "ready")
        self.assertEqual({host["cluster_id"] for host in pool.wait(4, "known")}, {second["id"]})
        aicli("delete", "cluster", "-y", second["name"])
        pool.wait(4, "known-unbound")

    def manifests(self, name, cluster_id):
        directory = HOME / "manifests"
        directory.mkdir(exist_ok=True)
        (directory / "10-motd.yaml").write_text("kind: ConfigMap\n")
        aicli("create", "manifests", "--dir", str(directory), name)
        self.assertIn("10-motd.yaml", aicli("list", "manifests", name))
        params = models.CreateManifestParams(
            folder="openshift", file_name="20-more.yaml", content=base64.b64encode(b"kind: Secret\n").decode()
        )
        self.python.manifests.v2_create_cluster_manifest(cluster_id, create_manifest_params=params)
        listed = self.python.manifests.v2_list_cluster_manifests(cluster_id)
        names = {(entry["folder"], entry["file_name"]) for entry in listed}
        self.assertEqual(names, {("manifests", "10-motd.yaml"), ("openshift", "20-more.yaml")})
        self.python.manifests.v2_delete_cluster_manifest(cluster_id, "20-more.yaml", folder="openshift")
        self.assertEqual(len(self.python.manifests.v2_list_cluster_manifests(cluster_id)), 1)

    def files(self, name, cluster_id):
        aicli("download", "kubeconfig", "--path", str(HOME), name)
        self.assertIn("certificate-authority-data", Path(HOME / f"kubeconfig.{name}").read_text())
        aicli("download", "kubeadmin-password", "--path", str(HOME), name)
        password = Path(HOME / f"kubeadmin-password.{name}").read_text()
        credentials = self.python.installer.v2_get_credentials(cluster_id=cluster_id)
        self.assertEqual((credentials.username, credentials.password), ("kubeadmin", password))
        self.assertIn(f".apps.{name}.example.com", credentials.console_url)
        aicli("download", "ignition", "--role", "master", "--path", str(HOME), name)
        self.assertIn("ignition", json.loads(Path(HOME / f"master.ign.{name}").read_text()))
        aicli("download", "installconfig", "--path", str(HOME), name)
        self.assertIn(f"name: {name}", Path(HOME / f"install-config.yaml.{name}").read_text())
        logs = self.python.installer.v2_download_cluster_logs(
            cluster_id=cluster_id, logs_type="controller", _preload_content=False
        )
        self.assertTrue(logs.data)
        operators = self.python.operators.v2_list_of_cluster_operators(cluster_id=cluster_id)
        self.assertEqual({operator["status"] for operator in operators}, {"available"})

    def day_two(self, name, pool):
        """Imported from the installed cluster, as aicli does it for a name that ends so."""
        aicli("create", "cluster", f"{name}-day2", "-P", "infraenv=false")
        (worker,) = pool.hosts("known-unbound")
        aicli("bind", "host", worker["id"], f"{name}-day2")
        pool.wait(1, "known")
        aicli("start", "hosts", worker["id"])
        (added,) = pool.wait(1, "added-to-existing-cluster", INSTALL_SECONDS)
        self.assertEqual((added["role"], added["kind"]), ("worker", "AddToExistingClusterHost"))


class SingleNode(Case):
    def test_cancelled_reset_installed_again_grown_and_gone_with_its_cluster(self):
        python = self.python
        name = fresh("edge")
        cluster_id = create_cluster(python, name, "-P", "sno=true")["id"]
        env = next(entry for entry in aicli_json("list", "infraenv") if entry["name"] == f"{name}_infra-env")
        pool = Pool(python, env["id"])
        fleet = Fleet(env["id"], 1, 404, *QUICK)
        self.addCleanup(fleet.stop)
        self.reach(cluster_id, "ready")
        with self.assertRaises(ApiException) as caught:
            python.installer.v2_cancel_installation(cluster_id=cluster_id)
        self.assertEqual(caught.exception.status, 409)

        aicli("start", "cluster", name)
        pool.wait(1, "installing-in-progress")
        self.assertEqual(python.installer.v2_cancel_installation(cluster_id=cluster_id).status, "cancelled")
        pool.wait(1, "cancelled")
        aicli("stop", "cluster", name)
        self.assertIn(self.cluster(cluster_id).status, ["insufficient", "pending-for-input", "ready"])
        # Its agent is told to start anew, or somebody boots the machine; either way it comes back by itself.
        pool.wait(1, "known")
        self.install(name, cluster_id)

        aicli("update", "cluster", name, "-P", "day2=true")
        self.assertEqual(self.cluster(cluster_id).status, "adding-hosts")
        more = Fleet(env["id"], 1, 404, "--first-index", "4", *QUICK)
        self.addCleanup(more.stop)
        pool.wait(1, "known")
        aicli("start", "cluster", name)
        pool.wait(1, "added-to-existing-cluster", INSTALL_SECONDS)

        aicli("delete", "cluster", "-y", name)
        self.assertNotIn(name, aicli("list", "cluster"))
        self.assertNotIn(name, aicli("list", "infraenv"), "hosts that came with the cluster go with it")


if __name__ == "__main__":
    unittest.main()
