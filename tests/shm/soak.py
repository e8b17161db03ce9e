"""Episodes of random operations in random groups, in most of which a rank is lost."""

import ctypes
import gc
import mmap
import os
import random
import re
import signal
import threading
import time
import traceback
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import torch.distributed as dist
from random_operations import Operations
from ranks import Killed, run, start_group, store_server
from shm_collectives import Options

SOON = 1.0  # seconds, from the loss of a rank to the error of each other one
TIMEOUT = 4  # seconds, of a group
READING = 2.0  # seconds for which rank 0 waits until all others know that the group begins
LIMIT = 60  # seconds, of an episode; most take less than 3
OPERATIONS = 60  # of each thread whose group does not lose a rank

# The ways to lose a rank, with the error that the others must raise then. A receive from any rank
# waits for its timeout if a rank has only left: another one may still send. If rank 0 dies before
# it has answered all, those who have its answer miss the others.
LOSSES = {
    "SIGKILL": r"rank {}\b.* has died",
    "os._exit": r"rank {}\b.* has died",
    "exception": r"rank {}\b.* has left|all other ranks have left|it waits for any rank",
    "abort": r"rank {}\b.* has aborted the group",
    "SIGKILL while meeting": r"rank {}\b.* (did not come|has died)",
}

EXIT_CODES = {
    "SIGKILL": -signal.SIGKILL,
    "SIGKILL while meeting": -signal.SIGKILL,
    "os._exit": 3,
}


@dataclass
class Group:
    """A group, and what each thread does with it in each of its ranks."""

    ranks: list
    slot_bytes: int
    threads: list


@dataclass
class Plan:
    """The course of an episode, drawn from its seed."""

    seed: int
    size: int
    groups: list  # the first one has all ranks
    loss: str  # of LOSSES, or nothing
    victim: int
    delay: float  # seconds until the loss

    @classmethod
    def of(cls, seed):
        draw = random.Random(seed)
        size = draw.randint(2, 4)
        everyone, loss = range(size), draw.choice(["", *LOSSES])
        members = [list(everyone)]
        if "meeting" not in loss:
            for _ in range(draw.randint(0, 3)):
                members.append(sorted(draw.sample(everyone, draw.randint(1, size))))
        ways = [[["collective", "messages"]], [["collective"], ["messages"]]]
        groups = [
            Group(ranks, draw.choice([1024, 8192, 256 << 10]), draw.choice(ways))
            for ranks in members
        ]
        longest = 0.02 if "meeting" in loss else 0.6
        return cls(seed, size, groups, loss, draw.randrange(size), draw.uniform(0, longest))

    def loses(self, group):
        return self.loss != "" and self.victim in group.ranks


@dataclass
class Ending:
    """The end of one thread of a rank."""

    group: Group
    trace: str = ""  # nothing if the thread has done everything
    at: float = 0  # seconds, on the clock that all processes share


class Lost(Exception):
    """Ends the threads of a rank that an exception ends."""


class Rank:
    """One rank of an episode."""

    def __init__(self, plan, rank, lost_at):
        self.plan, self.rank, self.lost_at = plan, rank, lost_at
        self.leaving = threading.Event()
        self.endings = []

    def play(self):
        """Return the endings of all threads, and what is left after that."""
        plan = self.plan
        is_victim = plan.loss != "" and self.rank == plan.victim
        if is_victim and "meeting" in plan.loss:
            threading.Thread(target=self.get_lost, daemon=True).start()
        with self.noting(plan.groups[0]):
            threads = self.start_threads()
            if is_victim:
                self.get_lost()
            for thread in threads:
                thread.join()
        if dist.is_initialized():
            if self.leaving.is_set():
                self.lost_at.value = time.monotonic()
            dist.destroy_process_group()
        return self.endings, leftovers()

    def get_lost(self):
        time.sleep(self.plan.delay)
        if self.plan.loss == "exception":
            self.leaving.set()
            return
        self.lost_at.value = time.monotonic()
        if self.plan.loss == "abort":
            # PyTorch's function for all groups also frees what calls in other threads still use.
            for group in list(dist.distributed_c10d._world.pg_map):
                group.abort()
        elif self.plan.loss == "os._exit":
            os._exit(3)
        else:
            os.kill(os.getpid(), signal.SIGKILL)

    def start_threads(self):
        world, *others = self.plan.groups
        start_group(TIMEOUT, self.options(world))
        process_groups = [dist.group.WORLD]
        for group in others:
            process_groups.append(dist.new_group(group.ranks, pg_options=self.options(group)))
        threads = []
        for number, group in enumerate(self.plan.groups):
            for kinds in group.threads if self.rank in group.ranks else []:
                seed = f"{self.plan.seed} {number} {kinds}"
                alone = len(group.threads) == 1
                operations = Operations(process_groups[number], seed, coalescing=alone)
                calls = [getattr(operations, kind) for kind in kinds]
                thread = threading.Thread(
                    target=self.work, args=(group, calls, operations), daemon=True
                )
                thread.start()
                threads.append(thread)
        return threads

    def options(self, group):
        options = Options(timedelta(seconds=TIMEOUT))
        options.slot_bytes = group.slot_bytes
        options.yield_for = timedelta(microseconds=random.Random(self.rank).choice([0, 500]))
        return options

    def work(self, group, calls, operations):
        """Run operations: some of them, or in a group that loses a rank, until an error."""
        with self.noting(group):
            done = 0
            while done < OPERATIONS or self.plan.loses(group):
                if self.leaving.is_set():
                    raise Lost
                operations.shared.choice(calls)()
                done += 1
            operations.finish()
            self.endings.append(Ending(group))

    @contextmanager
    def noting(self, group):
        """Note the exception of a block as the ending of a thread."""
        try:
            yield
        except Exception:
            self.endings.append(Ending(group, traceback.format_exc(), time.monotonic()))


def leftovers():
    """Return what this process still has, after a second, of the groups that it has destroyed."""
    deadline = time.monotonic() + 1  # Other threads may be about to let go of the last of it.
    while (left := threads_and_memory()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left


def threads_and_memory():
    gc.collect()
    names = [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]
    files = [os.readlink(path) for path in Path("/proc/self/fd").iterdir() if path.is_symlink()]
    mappings = Path("/proc/self/maps").read_text().splitlines()
    memory = [text for text in files + mappings if "memfd:shm_collectives" in text]
    return memory + [name for name in names if name.startswith("shm_")]


def problems(plan, answers, lost_at):
    """Yield what is wrong with the answers of the ranks."""
    for rank, answer in enumerate(answers):
        is_victim = plan.loss != "" and rank == plan.victim
        if isinstance(answer, Killed):
            if not is_victim or answer.args[0] != EXIT_CODES.get(plan.loss):
                yield f"rank {rank} crashed, with exit code {answer.args[0]}"
            continue
        endings, left = answer
        yield from (f"rank {rank} leaves {text}" for text in left)
        for ending in endings if not is_victim else []:
            where = f"rank {rank}, in the group of {ending.group.ranks}"
            if not plan.loses(ending.group):
                if ending.trace:
                    yield f"{where}: {ending.trace}"
                continue
            lost = ending.group.ranks.index(plan.victim)
            named = r"\d+" if lost == 0 and "meeting" in plan.loss else lost
            if not re.search(LOSSES[plan.loss].format(named), ending.trace):
                yield f"{where}: this does not say that rank {lost} is lost:\n{ending.trace}"
            late, limit = ending.at - lost_at, SOON
            limit += TIMEOUT * bool(re.search("waits for any rank|did not come", ending.trace))
            limit += READING * ("meeting" in plan.loss)
            if late > limit:
                yield f"{where}: this came {late:.2f} s after the loss:\n{ending.trace}"


def episode(seed):
    """Play the episode of a seed; raise AssertionError if anything is wrong."""
    plan = Plan.of(seed)
    lost_at = ctypes.c_double.from_buffer(mmap.mmap(-1, mmap.PAGESIZE))  # the ranks share it
    try:
        with store_server() as (_, port):
            answers = run(
                lambda rank: Rank(plan, rank, lost_at).play(),
                plan.size,
                init=False,
                timeout=LIMIT,
                port=port,
                may_be_killed=True,
            )
        faults = list(problems(plan, answers, lost_at.value))
    except Exception as error:
        faults = [str(error)]
    # Others may follow from a wrong result.
    faults.sort(key=lambda text: "Wrong" not in text and "AssertionError" not in text)
    assert not faults, f"with SOAK_SEED={seed}, {plan}:\n" + "\n".join(faults)
    return plan
