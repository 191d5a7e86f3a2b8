"""The fault proxy does what it says: otherwise the campaign would prove less than it claims."""

import socket
import threading
import time

import pytest

from faults.proxy import Proxy


class Echo(threading.Thread):
    """Sends back what it gets, if it answers at all, and remembers it."""

    def __init__(self):
        super().__init__(daemon=True)
        self.answers = True
        self.listener, self.got, self.ends = socket.create_server(("127.0.0.1", 0)), b"", []
        self.port = self.listener.getsockname()[1]
        self.start()

    def run(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        try:
            while data := connection.recv(65536):
                self.got += data
                if self.answers:
                    connection.sendall(data)
            self.ends.append("closed")
        except OSError as error:
            self.ends.append(type(error).__name__)


@pytest.fixture
def echo():
    server = Echo()
    yield server
    server.listener.close()


@pytest.fixture
def link(echo):
    proxy = Proxy()
    yield proxy.link(echo.port)
    proxy.close()


def connect(link):
    client = socket.create_connection(("127.0.0.1", link.port), 5)
    client.settimeout(5)
    return client


def receive(client, size):
    data = b""
    while len(data) < size:
        data += client.recv(size - len(data)) or pytest.fail("closed")
    return data


def stays_silent(client, seconds=0.3):
    client.settimeout(seconds)
    with pytest.raises(TimeoutError):
        client.recv(1)
    client.settimeout(5)


def test_without_a_fault_everything_passes(link):
    data = bytes(range(256)) * 4000
    with connect(link) as client:
        threading.Thread(target=client.sendall, args=(data,)).start()
        assert receive(client, len(data)) == data


def test_delay_is_a_delay_and_no_throttle(link):
    link.shape(delay=0.2)
    with connect(link) as client:
        began = time.monotonic()
        for _ in range(20):
            client.sendall(b"x" * 1000)
            time.sleep(0.005)
        receive(client, 20_000)
        assert 0.4 <= time.monotonic() - began < 15


def test_a_throttle_limits_the_rate(link):
    link.shape(("up",), rate=100_000)
    with connect(link) as client:
        began = time.monotonic()
        client.sendall(b"x" * 50_000)
        receive(client, 50_000)
        client.sendall(b"x")
        receive(client, 1)
        assert time.monotonic() - began > 0.4


@pytest.mark.parametrize("way", ["up", "down"])
def test_a_hole_keeps_what_comes_and_delivers_it_afterwards(link, echo, way):
    with connect(link) as client:
        link.shape((way,), held=True)
        client.sendall(b"abc")
        stays_silent(client)
        assert echo.got == (b"abc" if way == "down" else b"")
        link.heal()
        assert receive(client, 3) == b"abc"


def test_reset_is_seen_at_both_ends(link, echo):
    with connect(link) as client:
        client.sendall(b"abc")
        receive(client, 3)
        link.reset()
        with pytest.raises(ConnectionResetError):
            client.recv(1)
    assert wait(lambda: echo.ends == ["ConnectionResetError"])


def wait(condition):
    deadline = time.monotonic() + 5
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()


@pytest.mark.parametrize("limit", [1, 1000, 99_999])
def test_a_cut_lets_exactly_so_many_bytes_pass(link, echo, limit):
    link.shape(("up",), cut=(limit, "reset"))
    echo.answers = False  # an answer to a connection that is reset would end the reading too early
    with connect(link) as client:
        try:
            client.sendall(b"x" * 100_000)
            while client.recv(65536):
                pass
        except ConnectionResetError:
            pass
    assert wait(lambda: echo.ends) and len(echo.got) == limit


def test_half_open_the_client_is_reset_and_the_server_knows_nothing(link, echo):
    link.shape(("up",), cut=(10, "half"))
    with connect(link) as client:
        client.sendall(b"x" * 100)
        with pytest.raises(ConnectionResetError):
            while client.recv(100):
                pass
    time.sleep(0.3)
    assert len(echo.got) == 10 and echo.ends == []
    link.heal()
    assert wait(lambda: echo.ends)


def test_a_stalled_connection_ends_when_the_link_is_healed(link, echo):
    link.shape(("up",), cut=(10, "stall"))
    with connect(link) as client:
        client.sendall(b"x" * 100)
        receive(client, 10)
        stays_silent(client)
        assert echo.ends == []
        link.heal()
        with pytest.raises(ConnectionResetError):
            client.recv(1)


def test_refused_and_silent_until_healed(link):
    link.refuse()
    with pytest.raises(ConnectionRefusedError):
        connect(link)
    link.heal()
    link.silent = True
    with connect(link) as client:
        client.sendall(b"abc")
        stays_silent(client)
    link.heal()
    with connect(link) as client:
        client.sendall(b"abc")
        assert receive(client, 3) == b"abc"
