"""Called by scripts/demo, with servers running and the binary built."""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import psycopg
from confluent_kafka.admin import AdminClient, NewTopic

from demonstration import campaigns, platform, producers, stream, verdict
from demonstration.view import State, number, open_view

TOPIC = "dlr-events"
MESSAGES, STATUSES = "messages", "message-status"  # with --kafka-only: in and out
DATABASE = "receiptd"
OWNER = "receiptd_owner"  # of the schema: no superuser
WORKER = "receiptd_worker"  # the daemon's role
PATIENCE_S = 90  # without any progress
LATE_AT = (0.3, 0.5, 0.7, 0.85)  # shares of the stream after which late message rows appear
RATE = re.compile(r"\w+_per_\w+ ")


class Stop(Exception):
    """Ends the demonstration with a text for the user."""


def parse(arguments):
    parser = argparse.ArgumentParser(prog="scripts/demo", add_help=False)
    parser.add_argument("--binary", type=Path, required=True)
    parser.add_argument("--directory", type=Path, required=True)
    parser.add_argument("--dsn", required=True)
    parser.add_argument("--brokers", required=True)
    parser.add_argument("--messages", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pace", type=float, default=30.0)
    parser.add_argument("--page-port", type=int, required=True)
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--kafka-only", action="store_true")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args(arguments)
    options.workers = 2
    options.topic = TOPIC
    options.now_ms = int(time.time() * 1000)
    return options


class Demonstration:
    def __init__(self, options):
        self.options = options
        self.config = options.directory / "receiptd.yaml"
        self.log_path = options.directory / "receiptd.log"
        self.daemon = self.readers = self.announcer = None
        self.page = f"http://127.0.0.1:{options.page_port}/"

    def run(self):
        options = self.options
        options.directory.mkdir(parents=True, exist_ok=True)
        writers = producers.Producers(options)  # forks, so it comes first
        self._prepare()
        self._start_readers()
        self._say(f"\nopen {self.page} and watch the funnels fill\n")
        self._say(f"{'announcing' if options.kafka_only else 'inserting'} {number(options.messages)} messages of {len(campaigns.CAMPAIGNS)} campaigns")
        self._insert(number for number in range(options.messages) if not stream.is_late(number))
        ledger = writers.ledger()
        self._say(f"written: {number(ledger.total)} receipts, {number(ledger.duplicates)} of them twice, "
                  f"{number(ledger.parked)} of messages nobody knows, {sum(ledger.dead_letters.values())} that are poison")
        self._start_daemon()
        writers.go()
        seconds, peak = self._watch(writers, ledger)
        print(f"\n{number(ledger.total)} receipts settled in {seconds:.1f} s (they came in over {options.pace:g} s), "
              f"at most {number(peak)} a second\n")
        good = self._results(ledger)
        self._page_says()
        if not options.keep:
            self._stop_daemon()
        self._next_steps()
        return 0 if good else 1

    # ---- before

    def _prepare(self):
        options = self.options
        with psycopg.connect(options.dsn, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)")
            connection.execute(f"CREATE DATABASE {DATABASE}")
            connection.execute(f"CREATE ROLE {OWNER} LOGIN CREATEROLE")
            connection.execute(f"GRANT CREATE ON DATABASE {DATABASE} TO {OWNER}")
        options.dsn = psycopg.conninfo.make_conninfo(options.dsn, dbname=DATABASE)
        admin = AdminClient({"bootstrap.servers": options.brokers, "log_level": 2})
        for topic in (TOPIC, MESSAGES, STATUSES) if options.kafka_only else (TOPIC,):
            admin.create_topics([NewTopic(topic, stream.PARTITIONS, 1)])[topic].result(30)
        if options.kafka_only:
            self.announcer = platform.Announcer(options.brokers, MESSAGES)
        self._configure(OWNER)
        self._command("migrate", "--role", WORKER, quiet=True)
        with psycopg.connect(options.dsn, autocommit=True) as connection:
            connection.execute(f"ALTER ROLE {OWNER} NOCREATEROLE")
            connection.execute("CREATE SCHEMA marketing")  # the platform names its campaigns
            connection.execute("CREATE VIEW marketing.campaigns AS SELECT DISTINCT campaign_id AS id, initcap(replace(campaign_id, '-', ' ')) AS name,"
                               " current_date AS date FROM receiptd.campaign_changed")
            connection.execute(f"GRANT USAGE ON SCHEMA marketing TO {WORKER}; GRANT SELECT ON marketing.campaigns TO {WORKER}")
        self._configure(WORKER)
        self.connection = psycopg.connect(options.dsn, autocommit=True)

    def _configure(self, role):
        dsn = psycopg.conninfo.make_conninfo(self.options.dsn, user=role)
        self.config.write_text(
            f'kafka:\n  brokers: "{self.options.brokers}"\n  topics: [{TOPIC}]\n  group: receiptd\n'
            + (f'  message_topics: [{MESSAGES}]\n' if self.options.kafka_only else "") +
            f'postgres:\n  dsn: "{dsn}"\n  connections: 2\nlanes: 8\nunknown: park\n'
            'counters: {series: 30d, reasons: true, gateways: 30d, times: true, by: [variant, channel, gateway], groups: [customer, logical]}\n'
            'timeline: {retention: 1d}\n'
            + (f'stream: {{topic: {STATUSES}, mode: state}}\n' if self.options.kafka_only else "") +
            f'serve:\n  listen: "127.0.0.1:{self.options.page_port}"\n  open: true\n  campaigns: marketing.campaigns\n')

    def _insert(self, numbers):
        """The platform brings its messages: rows, or with --kafka-only announcements of them."""
        if self.announcer is not None:
            self.announcer.announce(numbers, self.options.messages)
        else:
            platform.insert(self.connection, numbers, self.options.messages)

    def _start(self, command, log_path, pid_name):
        with open(log_path, "wb") as log:
            process = subprocess.Popen([self.options.binary, command, "--config", self.config], stdout=log,
                                       stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True)
        (self.options.directory / pid_name).write_text(f"{process.pid}\n")
        return process

    def _start_daemon(self):
        self.daemon = self._start("run", self.log_path, "receiptd.pid")

    def _start_readers(self):
        log_path = self.options.directory / "serve.log"
        self.readers = self._start("serve", log_path, "serve.pid")
        deadline = time.monotonic() + 30
        while not self._ask("campaigns"):
            if self.readers.poll() is not None or time.monotonic() > deadline:
                raise Stop(f"receiptd serve does not answer, see {log_path}")
            time.sleep(0.1)

    def _ask(self, path):
        """The answer of the interface that the page reads; None while there is none."""
        try:
            with urllib.request.urlopen(f"{self.page}api/v1/{path}", timeout=5) as answer:
                return json.load(answer)
        except OSError:
            return None

    def _stop_daemon(self):
        for process in (self.daemon, self.readers):
            process.send_signal(signal.SIGTERM)
            status = process.wait(30)
            if status != 0:
                raise Stop(f"receiptd ended with status {status} after SIGTERM, see {self.log_path}")
        self.daemon = self.readers = None

    # ---- while it runs

    def _watch(self, writers, ledger):
        state = State(total=ledger.total)
        late = [value for value in range(self.options.messages) if stream.is_late(value)]
        portions = [late[index::len(LATE_AT)] for index in range(len(LATE_AT))]
        view = open_view(self.options.plain)
        started = moved = time.monotonic()
        try:
            while True:
                all_sent = writers.check()
                while portions and writers.produced >= LATE_AT[-len(portions)] * state.total:
                    self._insert(portions.pop(0))
                before = state.settled, state.parked
                self._look(state, writers.produced)
                view.update(state, self._note(all_sent, state, ledger))
                now = time.monotonic()
                if all_sent and state.settled >= state.total and state.parked <= ledger.parked and state.targeted >= self.options.messages:
                    return now - started, view.rate.peak
                if (state.settled, state.parked) != before:
                    moved = now
                self._check_alive(now - moved)
                time.sleep(0.2)  # the pace of the pictures
        finally:
            view.close()

    def _look(self, state, produced):
        rows = self.connection.execute(
            "SELECT campaign_id, status, messages, events, current FROM receiptd.campaign_funnel").fetchall()
        state.funnel = {(campaign, status): tuple(counts) for campaign, status, *counts in rows}
        state.targeted = sum(messages for (_, status), (messages, _, _) in state.funnel.items() if status == 0)
        state.parked, state.dead = self.connection.execute(
            "SELECT (SELECT count(*) FROM receiptd.parked_event), (SELECT count(*) FROM receiptd.dead_letter)").fetchone()
        state.settled = sum(events for _, events, _ in state.funnel.values()) + state.parked + state.dead
        state.produced = max(produced, state.settled)

    @staticmethod
    def _note(all_sent, state, ledger):
        if not all_sent:
            return "receipts are coming in; some before the platform has inserted their message"
        if state.settled >= state.total and state.parked > ledger.parked:
            return "waiting for parked receipts whose message is there now"
        return ""

    def _check_alive(self, still_s):
        status = self.daemon.poll()
        if status is not None:
            raise Stop(f"receiptd ended with status {status}:\n{self._log_tail()}")
        if still_s > PATIENCE_S:
            raise Stop(f"no progress for {PATIENCE_S} s; the end of {self.log_path}:\n{self._log_tail()}")

    def _log_tail(self):
        return "\n".join(self.log_path.read_text(errors="replace").splitlines()[-15:])

    # ---- afterwards

    def _results(self, ledger):
        self._funnels()
        self._heading("receiptd audit: the counters against a recount of all messages")
        drift_free = self._command("audit", check=False) == 0
        print()
        self._heading("the ledger: the generator kept its own account, now compared with the database")
        equal = verdict.compare(self.connection, ledger, self.options.messages)
        print()
        if self.options.kafka_only:
            self._heading("the status stream: the last record of each message, as the platform reads it")
            equal = platform.compare(self.options.brokers, STATUSES, self.connection) and equal
            print()
        self._heading("dead letters by reason: the neighbours of each were counted")
        for reason, count in self.connection.execute(
                "SELECT reason, count(*) FROM receiptd.dead_letter GROUP BY reason ORDER BY count(*) DESC, reason"):
            print(f"  {reason:<20}{count:>8}")
        print()
        if not drift_free or not equal:
            print("NOT as it must be: see above", file=sys.stderr)
        return drift_free and equal

    def _page_says(self):
        """For those who could not look: the page's numbers."""
        self._heading(f"what the page shows at {self.page}")
        for row in (self._ask("campaigns") or {"campaigns": []})["campaigns"]:
            print(f"  {row['campaign_id']:<16}{number(row['targeted']):>10} targeted{number(row['sent']):>10} sent"
                  f"{number(row['delivered']):>10} delivered ({row['delivery_rate'] or 0:.1%} of sent)"
                  f"{number(row['failed']):>8} failed")
        print()

    def _funnels(self):
        """One campaign as the command prints it, of the others the tree without the rates."""
        for campaign in campaigns.CAMPAIGNS:
            self._heading(f"receiptd funnel {campaign.name}")
            text = self._output("funnel", campaign.name)
            if campaign is not campaigns.CAMPAIGNS[0]:
                text = "\n".join(line for line in text.splitlines() if not RATE.match(line))
            print(f"{text.strip()}\n")

    def _next_steps(self):
        options = self.options
        self._heading("to try next")
        if not options.keep:
            print("  scripts/demo --keep              the same, and leaves everything running for you to look around\n"
                  "  scripts/demo --messages 1000000  more\n"
                  "  scripts/test                     all tests, with servers of their own")
            return
        binary, config = os.path.relpath(options.binary), os.path.relpath(self.config)
        id = campaigns.message_id(3)
        print(f"  open {self.page} in a browser; {self.page}support#{id}\n"
              f"  {binary} funnel spring-sale --format json --config {config}\n"
              f"  {binary} audit --config {config}\n"
              f"  {binary} dead-letters --reason unknown_status --limit 3 --config {config}\n"
              f"  psql '{options.dsn}' -c \"SELECT * FROM receiptd.message_inbox WHERE message_id = '{id}'\"\n"
              f"  scripts/demo --send '{{\"message_id\":\"{id}\",\"status\":\"CLICKED\"}}'\n"
              f"  kill -9 {self.daemon.pid}; {binary} run --config {config}   # goes on where it was, exactly\n"
              f"  tail -f {os.path.relpath(self.log_path)}\n"
              f"  scripts/demo --stop              ends receiptd, Kafka and PostgreSQL, removes their data")

    # ---- small things

    def _command(self, *arguments, check=True, quiet=False):
        result = subprocess.run([self.options.binary, *arguments, "--config", self.config], stdin=subprocess.DEVNULL,
                                text=True, capture_output=quiet)
        if check and result.returncode != 0:
            raise Stop(f"receiptd {' '.join(arguments)} ended with status {result.returncode}\n"
                       f"{result.stderr or ''}{result.stdout or ''}")
        return result.returncode

    def _output(self, *arguments):
        return subprocess.run([self.options.binary, *arguments, "--config", self.config], stdin=subprocess.DEVNULL,
                              text=True, check=True, stdout=subprocess.PIPE).stdout

    @staticmethod
    def _say(text):
        print(text, flush=True)

    @staticmethod
    def _heading(text):
        bold = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        print(f"\x1b[1m{text}\x1b[0m" if bold else text, flush=True)

    def close(self):
        for process in (self.daemon, self.readers):
            if process is not None and process.poll() is None:
                process.kill()
                process.wait()


def main():
    sys.stdout.reconfigure(line_buffering=True)  # commands print between our lines
    demonstration = Demonstration(parse(sys.argv[1:]))
    keep = False
    try:
        status = demonstration.run()
        keep = demonstration.options.keep
        return status
    except (Stop, producers.Failed, psycopg.Error, subprocess.CalledProcessError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        if not keep:
            demonstration.close()


sys.exit(main())
