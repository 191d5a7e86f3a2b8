"""PgBouncer between receiptd and the session's PostgreSQL."""

import os
import signal
import subprocess

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from support.ports import free_ports
from support.wait import wait_for

CONFIG = """
[databases]
* = host={host} port={port} user={user}{password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {own}
unix_socket_dir =
ignore_startup_parameters = options
auth_type = any
pool_mode = {mode}
logfile = {directory}/pgbouncer.log
pidfile = {directory}/pgbouncer.pid
server_login_retry = 1
"""


class Pooler:
    def __init__(self, directory, dsn, mode):
        self.directory, self.process = directory, None
        server = conninfo_to_dict(dsn)
        (self.port,) = free_ports(1)
        password = f" password={server['password']}" if "password" in server else ""
        self.config = directory / "pgbouncer.ini"
        self.write = lambda mode: self.config.write_text(CONFIG.format(
            host=server["host"], port=server["port"], user=server["user"], password=password, own=self.port, mode=mode, directory=directory))
        self.write(mode)
        self.dsn = make_conninfo(dsn, host="127.0.0.1", port=self.port)
        self.start()

    def start(self):
        user = None
        if os.getuid() == 0:  # it does not run as root
            user = "postgres"
            subprocess.run(["chown", "-R", user, self.directory], check=True)
            self.directory.chmod(0o755)
        self.process = subprocess.Popen(["pgbouncer", "-q", self.config], user=user, group=user, extra_groups=[] if user else None,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(self.answers, 30, "PgBouncer answers", details=lambda: (self.directory / "pgbouncer.log").read_text())

    def answers(self):
        try:
            psycopg.connect(self.dsn, connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def end(self, number=signal.SIGKILL):
        self.process.send_signal(number)
        self.process.wait(30)
