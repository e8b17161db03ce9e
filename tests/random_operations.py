"""Random operations of groups, the same on all of their ranks, whose results are checked."""

import random
import time

import torch
import torch.distributed as dist
from c10d_conformance import inputs
from c10d_conformance.inputs import GuardedTensor, compare, reduction, values
from c10d_conformance.operations import OPERATIONS, REDUCING, Setting
from torch.distributed import ReduceOp

# Elements: none, one, on both sides of the border between the two ways to reduce, and more than
# a slot or a ring holds.
COUNTS = [0, 1, 63, 1000, 4097, 20_000, 70_001]
PENDING = 4  # operations that have begun and for which the thread has not waited


class Operations:
    """The operations of one thread in one group.

    All ranks draw the operations from `shared`, a generator of the same seed, and so agree on
    them. How a rank calls an operation, and when it waits, is its own choice.
    """

    def __init__(self, group, seed, coalescing):
        self.group, self.rank, self.size = group, dist.get_rank(group), dist.get_world_size(group)
        self.shared = random.Random(f"{seed}")
        self.own = random.Random(f"{seed} {self.rank}")
        self.kinds = [self.equal, self.equal, self.uneven, self.barrier]
        if coalescing:  # Only where no other thread calls the group meanwhile.
            self.kinds.append(self.coalesced)
        self.tag = 0
        self.pending = []  # for each operation, a function that waits and one that checks

    def collective(self):
        """Begin a collective, which may have ended when this returns."""
        self.shared.choice(self.kinds)()
        while len(self.pending) > self.own.randrange(1 + PENDING):
            self.end(self.pending.pop(self.own.randrange(len(self.pending))))

    def finish(self):
        """Wait for all operations that have begun, and check them."""
        while self.pending:
            self.end(self.pending.pop())

    def end(self, operation):
        wait, check = operation
        wait()
        check()

    def begin(self, call, check):
        """Run `call(async_op)`, and note how this rank waits for its end."""
        way = self.own.choice(["synchronous", "wait", "future", "callback", "poll", "drop"])
        work = call(way != "synchronous")
        if way == "synchronous":
            check()
        elif way == "wait":
            self.pending.append((work.wait, check))
        elif way == "future":
            self.pending.append((work.get_future().wait, check))
        elif way == "callback":
            self.pending.append((work.get_future().then(lambda future: future.value()).wait, check))
        elif way == "poll":
            self.pending.append((lambda: poll(work), check))

    def equal(self):
        """Call an operation of the suite, for which all ranks have tensors of one size."""
        operation, dtype = self.shared.choice([*OPERATIONS]), self.shared.choice(inputs.DTYPES)
        ops = [op for op in inputs.OPS if not inputs.is_meaningless(dtype, op)]
        setting = Setting(
            operation,
            dtype,
            op=self.shared.choice(ops) if operation in REDUCING else ReduceOp.SUM,
            shape=(self.shared.choice(COUNTS),),
            layout=self.shared.choice(inputs.LAYOUTS),
            root=self.shared.randrange(self.size),
            group=self.group,
            ranks=tuple(dist.get_process_group_ranks(self.group)),
            me=self.rank,
            seed=self.shared.randrange(1000),
        )
        call = OPERATIONS[operation](setting)
        self.begin(call.run, call.check)

    def barrier(self):
        self.begin(lambda async_op: dist.barrier(self.group, async_op=async_op), lambda: None)

    def uneven(self):
        """Let each pair of ranks exchange another number of rows."""
        largest = self.shared.choice([3, 2000, 30_000])
        everyone = range(self.size)
        rows = [[self.shared.randrange(largest) for _ in everyone] for _ in everyone]
        received = [rows[other][self.rank] for other in everyone]
        output = torch.full((sum(received), 2), -1)
        sent = torch.full((sum(rows[self.rank]), 2), self.rank)
        expected = torch.arange(self.size).repeat_interleave(torch.tensor(received))
        self.begin(
            lambda async_op: dist.all_to_all_single(
                output, sent, received, rows[self.rank], self.group, async_op
            ),
            lambda: compare(output, expected.unsqueeze(1).expand(-1, 2)),
        )

    def coalesced(self):
        counts = [self.shared.choice(COUNTS) for _ in range(3)]
        lists = [[values(r, (n,), torch.float32) for r in range(self.size)] for n in counts]
        outputs = [contents[self.rank].clone() for contents in lists]
        with dist._coalescing_manager(group=self.group, async_ops=True) as manager:
            for output in outputs:
                dist.all_reduce(output, group=self.group)

        def check():
            for output, contents in zip(outputs, lists, strict=True):
                compare(output, reduction(contents, ReduceOp.SUM))

        self.pending.append((manager.wait, check))

    def messages(self):
        """Send some messages between random ranks and receive them in another order."""
        self.shared.choice([self.many_messages, self.from_any_source])()

    def many_messages(self):
        tags = self.tag + 1, self.tag + 2  # Some messages have the same one and stay in order.
        self.tag += 2
        operations, receives = [], {}
        for _ in range(self.shared.randrange(1, 8)):
            source, target = self.shared.choices(range(self.size), k=2)
            tag, layout = self.shared.choice(tags), self.shared.choice(inputs.LAYOUTS)
            shape = (self.shared.choice(COUNTS),)
            content = values(source, shape, self.shared.choice(inputs.DTYPES), tag)
            if self.rank == source:
                sent = GuardedTensor(content, layout, "cpu").tensor
                work = dist.isend(sent, group_dst=target, group=self.group, tag=tag)
                operations.append((work.wait, lambda: None))
            if self.rank == target:
                receives.setdefault((source, tag), []).append((layout, content))
        while receives:
            source, tag = self.own.choice([*receives])
            layout, content = receives[source, tag].pop(0)
            if not receives[source, tag]:
                del receives[source, tag]
            output = GuardedTensor(torch.zeros_like(content), layout, "cpu")
            work = dist.irecv(output.tensor, group_src=source, group=self.group, tag=tag)
            operations.append((work.wait, lambda output=output, x=content: output.check(x)))
        self.own.shuffle(operations)
        for operation in operations:
            self.end(operation)

    def from_any_source(self):
        self.tag += 1
        target, shape = self.shared.randrange(self.size), (self.shared.choice(COUNTS),)
        # PyTorch refuses a message of the rank itself here.
        others = [rank for rank in range(self.size) if rank != target]
        sources = self.shared.choices(others, k=self.shared.randrange(1, 4)) if others else []
        options = {"group": self.group, "tag": self.tag}
        sends = [
            dist.isend(values(source, shape, torch.float32), group_dst=target, **options)
            for source in sources
            if self.rank == source
        ]
        senders = []
        for _ in sources if self.rank == target else []:
            output = torch.zeros(shape)
            senders.append(dist.get_group_rank(self.group, dist.recv(output, **options)))
            compare(output, values(senders[-1], shape, torch.float32))
        for send in sends:
            send.wait()
        assert sorted(senders) == (sorted(sources) if self.rank == target else [])


def play(rank, size, seed, count):
    """Call operations of all ranks and of all but rank 0, in an order on which all ranks agree."""
    groups = [dist.group.WORLD, *([dist.new_group(range(1, size))] if size > 1 else [])]
    players = [
        Operations(group, f"{seed} {number}", coalescing=True)
        for number, group in enumerate(groups)
        if rank >= number
    ]
    shared = random.Random(seed)
    for _ in range(count):
        kind, number = shared.choice(["collective", "messages"]), shared.randrange(len(groups))
        if number < len(players):
            getattr(players[number], kind)()
    for player in players:
        player.finish()


def poll(work):
    while not work.is_completed():
        time.sleep(0.001)
    work.wait()
