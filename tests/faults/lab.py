"""The laboratory: servers, a faulty link from every instance to every server, and how all of them are repaired."""

import base64
import os
import random
import subprocess
import time

from confluent_kafka.admin import AdminClient, NewTopic

from faults.proxy import Proxy
from faults.servers import PASSWORD, ROLE, Broker, Postgres, as_service, free_ports, library, make_directory
from oracle import broker as log
from support.services import Topic
from support.wait import wait_for

SEATS = "abc"  # instances at most
DISK = "1500m"


class Lab:
    """`brokers` brokers, one PostgreSQL and an empty place for its replica."""

    def __init__(self, brokers=1, seed=0):
        self.random, self.directory, self.disk = random.Random(seed), make_directory(), None
        self.proxy, self.brokers_list = Proxy(), []
        try:
            self.mount()
            self.start_brokers(brokers)
            ports = free_ports(2)
            self.places = [Postgres(self.directory, f"postgres-{name}", port) for name, port in zip("12", ports)]
            self.pg_links = {seat: [self.link(place.port) for place in self.places] for seat in SEATS}
            self.primary = self.places[0]
            for place in self.places:
                subprocess.run(as_service("mkdir", "-p", place.data.parent), check=True)
            self.primary.create()
            for one in self.brokers_list:
                one.await_answer()
            self.admin = AdminClient({"bootstrap.servers": self.brokers, "log_level": 2})
        except BaseException:
            self.close()
            raise

    def link(self, upstream):
        return self.proxy.link(upstream, self.random.random())

    def mount(self):
        """A small disk for PostgreSQL that can be filled: only root may have one."""
        place = self.directory / "disk"
        subprocess.run(as_service("mkdir", place), check=True)
        command = ["mount", "-t", "tmpfs", "-o", f"size={DISK},mode=0777", "receiptd-faults", str(place)]
        if os.getuid() == 0 and subprocess.run(command, stderr=subprocess.DEVNULL).returncode == 0:
            self.disk = place
            for name in ("postgres-1", "postgres-2"):
                subprocess.run(as_service("mkdir", place / name), check=True)
                (self.directory / name).symlink_to(place / name)

    def start_brokers(self, count):
        ports = free_ports(count * (2 + len(SEATS)))
        take = iter(ports).__next__
        plain, control = [take() for _ in range(count)], [take() for _ in range(count)]
        self.kafka_links = {seat: [] for seat in SEATS}
        class_path = library("fetch_kafka; kafka_class_path")
        # An id that begins with a dash is taken for an option.
        cluster_id = "A" + base64.urlsafe_b64encode(os.urandom(16)).decode()[1:22]
        for index in range(count):
            listeners = {"PLAINTEXT": (plain[index], plain[index])}
            for seat in SEATS:
                own = take()
                self.kafka_links[seat].append(self.link(own))
                listeners[f"SEAT_{seat.upper()}"] = (own, self.kafka_links[seat][-1].port)
            controllers = {number + 1: port for number, port in enumerate(control)}
            self.brokers_list.append(
                Broker(self.directory, index + 1, listeners, controllers, cluster_id, class_path))
            self.brokers_list[-1].start(wait=False)

    # ---- addresses

    @property
    def brokers(self):
        """For the producer and the oracle: not through the proxy."""
        return ",".join(f"127.0.0.1:{one.port}" for one in self.brokers_list)

    def seat_brokers(self, seat):
        return ",".join(f"127.0.0.1:{link.port}" for link in self.kafka_links[seat])

    def seat_dsn(self, seat, database):
        """A dsn of both places, through the proxy; libpq takes the writable one."""
        links = self.pg_links[seat]
        return (f"host={','.join('127.0.0.1' for _ in links)} port={','.join(str(link.port) for link in links)}"
                f" user={ROLE} password='{PASSWORD}' dbname={database} target_session_attrs=read-write")

    def direct_dsn(self, database):
        """As receiptd's role, to whichever server is the primary now, past the proxy."""
        return f"host=127.0.0.1 port={self.primary.port} user={ROLE} password='{PASSWORD}' dbname={database}"

    def links(self, what, seats=SEATS):
        table = {"postgres": (self.pg_links,), "kafka": (self.kafka_links,),
                 "both": (self.pg_links, self.kafka_links)}[what]
        return [link for one in table for seat in seats for link in one[seat]]

    # ---- topics

    def create_topic(self, name, partitions):
        copies = min(3, len(self.brokers_list))
        config = {"max.message.bytes": "16777216", "retention.ms": "-1", "segment.bytes": "1048576"}
        self.admin.create_topics([NewTopic(name, partitions, copies, config=config)])[name].result(30)
        wait_for(lambda: log.partition_count(self.brokers, name) == partitions, 30, f"topic {name}")
        return Topic(self, name, partitions)

    def leader(self, topic, partition):
        """Of a topic that may still be in creation."""
        deadline = time.monotonic() + 30
        while partition not in (known := self.admin.list_topics(topic, timeout=10).topics[topic].partitions):
            assert time.monotonic() < deadline, f"{topic} has no partition {partition}"
            time.sleep(0.1)
        return known[partition].leader

    # ---- fail-over

    @property
    def standby(self):
        return self.places[1 - self.places.index(self.primary)]

    def prepare_standby(self):
        self.standby.follow(self.primary)
        self.wait_for_standby()

    def wait_for_standby(self):
        """Waits until all present writes have arrived there."""
        position = self.primary.value("SELECT pg_current_wal_flush_lsn()::text")
        wait_for(lambda: self.standby.value("SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn", position), 30,
                 f"the standby is at {position}")

    def promote(self):
        """The standby becomes the primary; the old one is left as it is."""
        self.standby.value("SELECT pg_promote(true, 30)")
        self.primary = self.standby

    # ---- repair

    def heal(self):
        for link in self.proxy.links:
            link.heal()
        for server in [*self.places, *self.brokers_list]:
            server.thaw()
        for one in self.brokers_list:
            if not one.running:
                one.start(wait=False)
        for one in self.brokers_list:
            one.await_answer()
        if not self.primary.running:
            self.primary.start(wait=False)
        wait_for(self.primary.answers, 60, "PostgreSQL answers", details=self.primary.tail)

    def close(self):
        for server in [*getattr(self, "places", []), *self.brokers_list]:
            if server.running:
                server.process.kill()
                server.process.wait()
        self.proxy.close()
        if self.disk is not None:
            wait_for(lambda: subprocess.run(["umount", str(self.disk)], stderr=subprocess.DEVNULL).returncode == 0,
                     30, f"umount {self.disk}")
        subprocess.run(["rm", "-rf", str((self.directory / "socket").resolve()), str(self.directory)], check=False)
