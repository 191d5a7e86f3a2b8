"""A TCP proxy that misbehaves on purpose: between receiptd and one server, each direction with rules of its own.

Every link listens on a port of its own and forwards to one upstream. It cannot lose packets under a TCP
connection: a proxy acknowledges bytes that it does not deliver. To both ends that resembles a stopped peer.
"""

import asyncio
import random
import socket
import struct
import threading

from support.ports import free_ports

UP, DOWN = "up", "down"  # towards the server, towards receiptd
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close() sends RST
CHUNK = 65_536


class Way:
    """How one direction of a link behaves now; written by the test's thread, read by the loop."""

    def __init__(self):
        self.clear()

    def clear(self):
        self.delay = self.jitter = 0.0  # seconds
        self.rate = None  # bytes per second
        self.held = False  # a black hole: bytes are kept, and delivered when the hole is closed
        self.cut = None  # (bytes that still pass, "reset" | "half" | "stall")


class Connection:
    def __init__(self, link, reader, writer):
        self.link, self.client, self.server = link, (reader, writer), None
        self.tasks, self.stalled = [], False

    async def run(self):
        if self.link.silent:  # accepted, as by the kernel of a stopped server, and never answered
            await asyncio.sleep(3600)
        try:
            self.server = await asyncio.open_connection("127.0.0.1", self.link.upstream)
        except OSError:
            return self.abort(self.client)
        queues = asyncio.Queue(64), asyncio.Queue(64)
        self.tasks = [
            asyncio.ensure_future(self.read(self.client[0], queues[0], UP)),
            asyncio.ensure_future(self.read(self.server[0], queues[1], DOWN)),
        ]
        delivery = [
            asyncio.ensure_future(self.deliver(queues[0], self.server[1], UP)),
            asyncio.ensure_future(self.deliver(queues[1], self.client[1], DOWN)),
        ]
        self.tasks += delivery
        await asyncio.wait(delivery, return_when=asyncio.FIRST_COMPLETED)
        while self.stalled:
            await asyncio.sleep(0.05)
        self.end()

    async def read(self, reader, queue, way):
        """Reads ahead, so that a delay is a delay and no throttle. The end of the stream is an empty piece."""
        loop, due, data = asyncio.get_running_loop(), 0.0, True
        while data:
            try:
                data = await reader.read(CHUNK)
            except OSError:
                data = b""
            rules = self.link.ways[way]
            due = max(due, loop.time() + rules.delay + rules.jitter * self.link.random.random())
            await queue.put((due, data))

    async def deliver(self, queue, writer, way):
        loop, rules = asyncio.get_running_loop(), self.link.ways[way]
        while True:
            due, data = await queue.get()
            if due > loop.time():
                await asyncio.sleep(due - loop.time())
            while rules.held:
                await asyncio.sleep(0.01)
            if not data:
                return
            if rules.cut is not None and await self.is_cut(rules, writer, data):
                return
            writer.write(data)
            if rules.rate is not None:
                await asyncio.sleep(len(data) / rules.rate)
            await writer.drain()

    async def is_cut(self, rules, writer, data):
        """False while the limit is not reached; there the rest of it is delivered and the connection broken."""
        left, kind = rules.cut
        if len(data) < left:
            rules.cut = (left - len(data), kind)
            return False
        rules.cut = None
        writer.write(data[:left])
        await writer.drain()
        await asyncio.sleep(0.005)
        self.link.cuts += 1
        if kind == "reset":
            return True
        self.stalled = True  # neither end learns anything, until the link is healed
        if kind == "half":  # receiptd loses its connection, the server does not notice
            self.abort(self.client)
        while self.stalled:
            await asyncio.sleep(0.02)
        return True

    @staticmethod
    def abort(pair):
        if pair is None:
            return
        try:
            pair[1].get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        except (OSError, AttributeError):
            pass
        pair[1].transport.abort()

    def end(self):
        self.stalled = False
        for task in self.tasks:
            task.cancel()
        self.abort(self.client)
        self.abort(self.server)
        self.link.connections.discard(self)


class Link:
    """One listening port and its upstream port."""

    def __init__(self, proxy, upstream, seed):
        self.proxy, self.upstream, self.random = proxy, upstream, random.Random(seed)
        self.ways = {UP: Way(), DOWN: Way()}
        self.connections, self.silent, self.cuts = set(), False, 0
        self.port, self.listener = free_ports(1)[0], None
        self.call(self.listen)

    def call(self, function):
        """Runs the coroutine function on the proxy's loop."""
        return asyncio.run_coroutine_threadsafe(function(), self.proxy.loop).result(30)

    async def listen(self):
        if self.listener is None:
            self.listener = await asyncio.start_server(self.accept, "127.0.0.1", self.port, limit=CHUNK)

    async def accept(self, reader, writer):
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection = Connection(self, reader, writer)
        self.connections.add(connection)
        try:
            await connection.run()
        finally:
            connection.end()

    # ---- the test's side

    def shape(self, ways=(UP, DOWN), **rules):
        """delay, jitter (seconds), rate (bytes per second), held, cut=(bytes, kind)"""
        for way in ways:
            for name, value in rules.items():
                setattr(self.ways[way], name, value)

    def reset(self):
        """Both ends of every connection see RST."""

        async def work():
            for connection in list(self.connections):
                connection.end()

        self.call(work)

    def refuse(self):
        """Refuses new connections; existing ones go on."""

        async def work():
            if self.listener is not None:
                self.listener.close()
                await self.listener.wait_closed()
                self.listener = None

        self.call(work)

    def heal(self, reset=False):
        """Ends all faults. Connections that a cut or a silent phase has broken are reset."""

        async def work():
            was_silent, self.silent = self.silent, False
            for way in self.ways.values():
                way.clear()
            for connection in list(self.connections):
                if reset or connection.stalled or (was_silent and connection.server is None):
                    connection.end()
            await self.listen()

        self.call(work)

    def close(self):
        self.refuse()
        self.reset()


class Proxy:
    """All links on one loop in one thread."""

    def __init__(self):
        self.loop, self.links = asyncio.new_event_loop(), []
        self.loop.set_exception_handler(lambda loop, context: None)  # connections end in every way there is
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True, name="proxy")
        self.thread.start()

    def link(self, upstream, seed=0):
        self.links.append(Link(self, upstream, seed))
        return self.links[-1]

    def close(self):
        for link in self.links:
            link.close()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)
