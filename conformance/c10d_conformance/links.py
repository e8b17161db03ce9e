"""A program that carries packets between simulated hosts, with a latency and at a rate.

usage: links.py LATENCY RATE    (in seconds, and in bits per second)

Linux has `netem` for this, but not every kernel has that module. Here the interface of a host is a
TUN device: this program reads what the host sends, and writes it to the device of the target when
it would arrive. Its standard input is a socket, on which it gets the devices; `hosts.py` starts it.
"""

import contextlib
import ctypes
import gc
import heapq
import itertools
import os
import select
import signal
import socket
import sys
import time
from dataclasses import dataclass

LARGEST = 1 << 16  # bytes of a packet
AT_ONCE = 64  # packets of a host, before others have their turn
LONGEST_QUEUE = 10.0  # seconds; a card loses what would wait longer


@dataclass
class Card:
    """The network card of a host, and until when it sends and receives."""

    device: int
    sends: float = 0.0
    receives: float = 0.0
    is_cut: bool = False


class Links:
    """What is under way between the cards.

    A card sends one packet after another, each in the time that the rate gives it, and receives
    them likewise. The first byte of a packet takes the latency. So a message of one packet takes
    the latency and its bytes at the rate, and several senders share the card of their target.
    """

    def __init__(self, latency: float, rate: float) -> None:
        self._latency, self._seconds_per_byte = latency, 8 / rate
        self._cards: dict[bytes, Card] = {}  # by address
        self._numbers = itertools.count()  # keep the order of packets at one time
        self._starts: list[tuple[float, int, Card, bytes]] = []  # when a card begins to send
        self._arrivals: list[tuple[float, int, Card, bytes]] = []  # when the last byte is there

    def serve(self, control: socket.socket) -> None:
        """Carry packets until the other end of the socket is closed."""
        while True:
            devices = {card.device: card for card in self._cards.values()}
            files = [control.fileno(), *devices]
            readable, _, _ = select.select(files, [], [], self._seconds_to_wait())
            now = time.monotonic()
            for file in readable:
                if file in devices:
                    self._read(devices[file], now)
                elif not self._obey(*socket.recv_fds(control, 100, 1)[:2]):
                    return
            while self._starts and self._starts[0][0] <= now:
                self._start(*heapq.heappop(self._starts))
            while self._arrivals and self._arrivals[0][0] <= now:
                self._arrive(*heapq.heappop(self._arrivals))

    def _seconds_to_wait(self) -> float | None:
        times = [when for when, *_ in self._arrivals[:1]]
        # A start may be looked at until its packet may arrive.
        times += [when + self._latency for when, *_ in self._starts[:1]]
        return max(0, min(times) - time.monotonic()) if times else None

    def _obey(self, order: bytes, devices: list[int]) -> bool:
        """Do what the socket says; return whether it is still open."""
        word, _, address = order.decode().partition(" ")
        if word == "connect":
            self._cards[socket.inet_aton(address)] = Card(devices[0])
        elif word:
            self._cards[socket.inet_aton(address)].is_cut = word == "cut"
        return bool(word)

    def _read(self, card: Card, now: float) -> None:
        with contextlib.suppress(BlockingIOError):
            for _ in range(AT_ONCE):
                self._send(now, card, os.read(card.device, LARGEST))

    def _send(self, now: float, card: Card, packet: bytes) -> None:
        target = self._cards.get(packet[16:20])  # of IPv4
        start = max(now, card.sends)
        is_lost = card.is_cut or start > now + LONGEST_QUEUE
        if target is not None and packet[0] >> 4 == 4 and not is_lost:
            card.sends = start + len(packet) * self._seconds_per_byte
            heapq.heappush(self._starts, (start, next(self._numbers), target, packet))

    def _start(self, when: float, number: int, target: Card, packet: bytes) -> None:
        """Give a packet its time at the target: the order there is that of the starts."""
        first = max(when + self._latency, target.receives)
        target.receives = first + len(packet) * self._seconds_per_byte
        heapq.heappush(self._arrivals, (target.receives, number, target, packet))

    def _arrive(self, when: float, number: int, target: Card, packet: bytes) -> None:
        with contextlib.suppress(OSError):  # its host ends
            if not target.is_cut:
                os.write(target.device, packet)


def main(latency: str, rate: str) -> None:
    system = ctypes.CDLL(None).prctl
    system(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: end with the thread that has started this
    system(29, 1)  # PR_SET_TIMERSLACK: wake up in time
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the others
    with contextlib.suppress(PermissionError):  # a real network does not wait for a CPU
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    gc.disable()
    with contextlib.suppress(ConnectionError):
        Links(float(latency), float(rate)).serve(socket.socket(fileno=0))


if __name__ == "__main__":
    main(*sys.argv[1:])
