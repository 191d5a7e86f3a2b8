"""Running the binary: configuration files, commands, and `receiptd run` as processes."""

import functools
import json
import os
import re
import signal
import subprocess
from pathlib import Path

from support.services import ROOT
from support.wait import wait_for

SANITIZER = re.compile(r"(ERROR|WARNING|SUMMARY): \w+Sanitizer|runtime error: |AddressSanitizer:DEADLYSIGNAL")


def binary():
    """The receiptd under test; RECEIPTD_BINARY names another build, for example one with sanitizers."""
    return Path(os.environ.get("RECEIPTD_BINARY", ROOT / "build/receiptd"))


@functools.lru_cache
def migrate_options(program):
    """Tests migrate as the superuser that made their databases, unless they say otherwise; the previous release has no such option."""
    shown = subprocess.run([program, "migrate", "--help"], text=True, capture_output=True, check=True).stdout
    return ("--as-superuser",) if "--as-superuser" in shown else ()


def to_yaml(value, indent=0):
    """Block YAML of dicts, lists and scalars; scalars as JSON, which is YAML too."""
    if isinstance(value, dict) and value:
        lines = []
        for key, item in value.items():
            nested = isinstance(item, dict) and item
            text = to_yaml(item, indent + 2)
            lines.append(" " * indent + f"{key}:" + ("\n" + text if nested else " " + text))
        return "\n".join(lines)
    return json.dumps(value, ensure_ascii=False)


def merge(base, extra):
    """A copy of `base` with the nested keys of `extra` put in; None removes a key."""
    merged = dict(base)
    for key, value in extra.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict) and isinstance(merged.get(key), dict):
            merged[key] = merge(merged[key], value)
        else:
            merged[key] = value
    return merged


class Process:
    """A running `receiptd run` or `receiptd intake`; its output goes to a log file, or to the descriptor `output`."""

    def __init__(self, arguments, log_path, environment, output=None):
        self.log_path = log_path
        self._log = open(log_path, "ab")
        self._process = subprocess.Popen(arguments, stdout=output or self._log, stderr=subprocess.STDOUT,
                                         stdin=subprocess.DEVNULL, env=environment)
        self.expected_status = None

    @property
    def pid(self):
        return self._process.pid

    @property
    def running(self):
        return self._process.poll() is None

    def log(self):
        return self.log_path.read_text(errors="replace")

    def log_tail(self, lines=40):
        return "\n".join(self.log().splitlines()[-lines:])

    def wait_for(self, condition, timeout=30.0, what="the condition"):
        """wait_for, ended early when the process ends."""

        def condition_or_end():
            result = condition()
            assert result or self.running, \
                f"{what}: receiptd ended with {self._process.returncode} before\n{self.log_tail()}"
            return result

        return wait_for(condition_or_end, timeout, what, details=self.log_tail)

    def wait_for_log(self, pattern, timeout=30.0):
        """Until a line matches the regular expression; returns the match."""
        return self.wait_for(lambda: re.search(pattern, self.log(), re.MULTILINE), timeout, f"log line /{pattern}/")

    def signal(self, number):
        self._process.send_signal(number)

    def wait(self, timeout=30.0):
        """The exit status, negative for a signal."""
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"receiptd did not end within {timeout:g} s\n{self.log_tail()}") from None

    def catches(self, number):
        """Whether it has its signal handler by now; an earlier signal ends it like any process that has just begun. Valgrind has a
        handler of its own from the first moment on; then a second line in the log must do."""
        if "valgrind" in str(binary()) and self.log().count("\n") < 2:
            return False
        try:
            status = Path(f"/proc/{self.pid}/status").read_text()
        except OSError:
            return False
        return int(re.search(r"^SigCgt:\s*(\w+)", status, re.MULTILINE).group(1), 16) >> (number - 1) & 1

    def stop(self, timeout=30.0):
        """SIGTERM; the status must be 0."""
        self.expected_status = 0
        wait_for(lambda: not self.running or self.catches(signal.SIGTERM), 30, "a handler of SIGTERM")
        if self.running:
            self.signal(signal.SIGTERM)
        status = self.wait(timeout)
        assert status == 0, f"receiptd ended with {status} after SIGTERM\n{self.log_tail()}"

    def kill(self):
        """kill -9, as a crash would."""
        self.expected_status = -signal.SIGKILL
        if self.running:
            self._process.kill()
        self._process.wait()

    def close(self):
        """End of the test: no process stays, and a crash that the test did not check is a failure."""
        crashed = None
        if self.running:
            self._process.kill()
            self._process.wait()
        elif self._process.returncode < 0 and self.expected_status != self._process.returncode:
            crashed = -self._process.returncode
        self._log.close()
        assert crashed is None, f"receiptd was ended by signal {crashed}\n{self.log_tail()}"


class Receiptd:
    """One installation in a directory: configuration, commands, processes."""

    def __init__(self, directory, dsn, brokers, topics, prepare=lambda: None):
        """`prepare` is called before a program runs with this configuration."""
        self.prepare = prepare
        self.directory = Path(directory)
        self._config_path = self.directory / "receiptd.yaml"
        self.processes = []
        # A group of its own: a member that was killed stays in it for a session, and the next test would wait for that.
        self.settings = {
            "kafka": {"brokers": brokers, "topics": [str(topic) for topic in topics], "group": f"receiptd-{next(iter(topics), None)}"},
            "postgres": {"dsn": dsn},
            "http": {"listen": "127.0.0.1:0"},  # several run at once
            "control": {"socket": ""},  # support/operations.py sets one for tests that need it
        }
        self.configure()

    @property
    def config_path(self):
        self.prepare()
        return self._config_path

    def configure(self, **settings):
        """Changes settings (nested dicts, None removes a key) and writes the file."""
        self.settings = merge(self.settings, settings)
        self.write_config(to_yaml(self.settings) + "\n")

    def write_config(self, text):
        fresh = self._config_path.with_suffix(".new")  # a process that starts reads the old file or the new one
        fresh.write_text(text)
        fresh.replace(self._config_path)

    def command(self, *arguments, check=True, timeout=60, environment=None):
        """Runs a command to its end; stdout and stderr are in the result."""
        result = subprocess.run([binary(), *self._with_config(arguments)], text=True, capture_output=True,
                                timeout=timeout, env=self._environment(environment), stdin=subprocess.DEVNULL)
        assert not SANITIZER.search(result.stderr), result.stderr
        if check:
            assert result.returncode == 0, \
                f"receiptd {' '.join(arguments)}: status {result.returncode}\n{result.stdout}{result.stderr}"
        return result

    @staticmethod
    def command_binary():
        return str(binary())

    def json(self, *arguments, **options):
        """The parsed output of a command with --format json."""
        return json.loads(self.command(*arguments, "--format", "json", **options).stdout)

    def migrate(self):
        self.command("migrate")

    def start(self, name="a", config=None, environment=None, output=None, command="run"):
        """`receiptd run` (or intake) as process; `name` tells log files of several instances apart."""
        log_path = self.directory / f"receiptd-{name}.log"
        self.prepare()
        # Tests read /proc of the process. For a process that may not dump core only root may do that.
        arguments = [binary(), command, "--config", config or self.config_path, *(["--core-dumps"] if os.geteuid() else [])]
        process = Process(arguments, log_path, self._environment(environment), output)
        self.processes.append(process)
        return process

    def close(self):
        errors = []
        for process in self.processes:
            try:
                process.close()
            except AssertionError as error:
                errors.append(str(error))
        for log_path in {process.log_path for process in self.processes}:
            found = SANITIZER.search(log_path.read_text(errors="replace"))
            if found:
                errors.append(f"{log_path.name}: sanitizer report\n{log_path.read_text(errors='replace')[found.start():][:6000]}")
        assert not errors, "\n".join(errors)

    def _with_config(self, arguments):
        if "--config" in arguments or not arguments or arguments[0].startswith("-"):
            return arguments
        more = migrate_options(str(binary())) if arguments[0] == "migrate" else ()
        return (arguments[0], "--config", str(self.config_path), *more, *arguments[1:])

    @staticmethod
    def _environment(extra):
        environment = dict(os.environ)
        environment.setdefault("ASAN_OPTIONS", "abort_on_error=1:detect_leaks=1")
        environment.setdefault("UBSAN_OPTIONS", "print_stacktrace=1:halt_on_error=1")
        environment.setdefault("TSAN_OPTIONS", "halt_on_error=0:second_deadlock_stack=1")
        environment.update(extra or {})
        return environment
