"""Worker processes: each writes its share of the stream, then sends it to Kafka at a steady pace."""

import mmap
import multiprocessing
import time

from confluent_kafka import Producer

from demonstration import stream


class Failed(Exception):
    pass


def _produce(records, brokers, topic, pace_s, count):
    producer = Producer({"bootstrap.servers": brokers, "enable.idempotence": True, "compression.type": "lz4",
                         "linger.ms": 10, "message.max.bytes": 8 << 20, "log_level": 2,
                         "queue.buffering.max.kbytes": 1 << 20})
    errors = []

    def on_delivery(error, _):
        if error:
            errors.append(str(error))

    started = time.monotonic()
    for index, (partition, value, receipts) in enumerate(records):
        due = started + pace_s * index / len(records)
        producer.poll(0)
        while (early := due - time.monotonic()) > 0:  # less than 0 would wait forever
            producer.poll(early)
        producer.produce(topic, value, partition=partition, on_delivery=on_delivery)
        count(receipts)
    producer.flush(120)
    if errors or len(producer):
        raise Failed(f"Kafka did not take the whole stream: {errors[:1] or 'time is up'}")


def _work(pipe, worker, options, produced):
    def count(receipts):
        produced[worker] += receipts

    try:
        records, ledger = stream.write_share(worker, options.workers, options.messages, options.seed, options.now_ms)
        pipe.send(ledger)
        pipe.recv()  # waits for the signal to start
        _produce(records, options.brokers, options.topic, options.pace, count)
        pipe.send(None)
    except KeyboardInterrupt:
        pass
    except Exception as error:  # the parent reports it
        pipe.send(error)


class Producers:
    """Made before the parent opens any connection, for it forks."""

    def __init__(self, options):
        context = multiprocessing.get_context("fork")
        # Shared with the children, a number for each; multiprocessing's own values need /dev/shm.
        self._produced = memoryview(mmap.mmap(-1, 8 * options.workers)).cast("q")
        self.pipes, self.processes = [], []
        for worker in range(options.workers):
            ours, theirs = context.Pipe()
            process = context.Process(target=_work, args=(theirs, worker, options, self._produced), daemon=True)
            process.start()
            theirs.close()
            self.pipes.append(ours)
            self.processes.append(process)

    @property
    def produced(self):
        """Receipts that the workers have handed to their clients."""
        return sum(self._produced)

    def ledger(self):
        """Waits until the whole stream is written; returns the expected result."""
        whole = stream.Ledger()
        for pipe in self.pipes:
            whole.add(self._receive(pipe))
        return whole

    def go(self):
        for pipe in self.pipes:
            pipe.send("go")

    def check(self):
        """Raises when one of them has failed. True when all have ended."""
        for pipe in self.pipes:
            if pipe.poll():
                self._receive(pipe)
                self.pipes.remove(pipe)
        return not self.pipes

    @staticmethod
    def _receive(pipe):
        try:
            message = pipe.recv()
        except EOFError:
            raise Failed("a process that writes receipts has ended") from None
        if isinstance(message, Exception):
            raise message
        return message
