"""Two instances over one database and one topic, and the faults that a scenario's cycles choose from."""

import signal
import time


class Instances:
    """Two processes of one installation. Each fault leaves both running, or about to."""

    def __init__(self, pair, database, installation, random):
        self.pair, self.database, self.installation, self.random = pair, database, installation, random
        self.names = iter(range(1, 1_000_000))
        self.processes = [self.start(), self.start()]

    def start(self):
        return self.installation.start(str(next(self.names)))

    def faults(self):
        return [self.kill, self.replace, self.freeze, self.disconnect, self.crash_database, self.restart_database, self.nothing]

    def kill(self):
        index = self.random.randrange(2)
        self.processes[index].kill()
        self.processes[index] = self.start()

    def replace(self):
        index = self.random.randrange(2)
        self.processes[index].stop(60)
        self.processes[index] = self.start()

    def freeze(self):
        """Stopped for longer than leases: the other instance takes over its actions."""
        process = self.processes[self.random.randrange(2)]
        process.signal(signal.SIGSTOP)
        time.sleep(self.random.choice((0.3, 1.0, 2.2)))
        process.signal(signal.SIGCONT)

    def disconnect(self):
        self.database.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
                              " AND application_name LIKE 'receiptd/%'")

    def crash_database(self):
        """The crash rolls back the last asynchronous commits."""
        self.pair.postgres("immediate")
        self.pair.postgres("start")

    def restart_database(self):
        self.pair.postgres("fast")
        self.pair.postgres("start")

    def nothing(self):
        time.sleep(0.2)

    def close(self):
        for process in self.processes:
            process.kill()
