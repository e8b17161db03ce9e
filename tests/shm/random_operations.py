"""Random operations of one group, the same on all of its ranks, whose results are checked."""

import random
import time

import tensors as t
import torch
import torch.distributed as dist
from torch.distributed import ReduceOp

# Elements: none, one, on both sides of the border between the two ways to reduce, and more than
# a slot or a ring holds.
COUNTS = [0, 1, 63, 1000, 4097, 20_000, 70_001]
KEPT = 4  # operations that have begun and for which the thread has not waited


class Operations:
    """The operations of one thread in one group.

    All ranks draw the operations from `shared`, a generator of the same seed, and so agree on
    them. How a rank calls an operation, and when it waits, is its own choice.
    """

    def __init__(self, group, seed, coalescing):
        self.group, self.rank, self.size = group, dist.get_rank(group), dist.get_world_size(group)
        self.shared = random.Random(f"{seed}")
        self.own = random.Random(f"{seed} {self.rank}")
        self.kinds = [self.moves, self.reductions, self.uneven, dist.barrier]
        if coalescing:  # Only where no other thread calls the group meanwhile.
            self.kinds += [self.coalesced, self.batch]
        self.tag = 0
        self.begun = []  # for each operation, a function that waits and one that checks its results

    def collective(self):
        """Begin a collective, which may have ended when this returns."""
        kind = self.shared.choice(self.kinds)
        if kind == dist.barrier:
            self.begin(lambda **options: dist.barrier(self.group, **options), lambda: None)
        else:
            kind()
        while len(self.begun) > self.own.randrange(1 + KEPT):
            self.end(self.begun.pop(self.own.randrange(len(self.begun))))

    def finish(self):
        """Wait for all operations that have begun, and check them."""
        while self.begun:
            self.end(self.begun.pop())

    def end(self, begun):
        wait, check = begun
        wait()
        check()

    def begin(self, call, check):
        way = self.own.choice(["synchronous", "wait", "future", "callback", "poll", "drop"])
        if way == "synchronous":
            call()
            check()
            return
        work = call(async_op=True)
        if way == "wait":
            self.begun.append((work.wait, check))
        elif way == "future":
            self.begun.append((work.get_future().wait, check))
        elif way == "callback":
            self.begun.append((work.get_future().then(lambda future: future.value()).wait, check))
        elif way == "poll":
            self.begun.append((lambda: poll(work), check))

    def data(self):
        """Return the inputs of all ranks, and the layout of the tensors that hold them."""
        dtype = self.shared.choice(t.DTYPES)
        count, seed = self.shared.choice(COUNTS), self.shared.randrange(1000)
        inputs = [t.data(rank, count, dtype, seed) for rank in range(self.size)]
        return inputs, self.shared.choice(t.LAYOUTS)

    def reductions(self):
        inputs, layout = self.data()
        dtype, mine = inputs[0].dtype, inputs[self.rank]
        ops = [op for op in t.OPS if not t.is_refused(dtype, op)]
        # torch.distributed has complex numbers reduced as pairs of real ones.
        op = self.shared.choice([ReduceOp.SUM, ReduceOp.AVG] if dtype.is_complex else ops)
        expected = t.reduced(inputs, op)
        tolerant = op in (ReduceOp.PRODUCT, ReduceOp.AVG)
        kind = self.shared.choice(["all_reduce", "reduce", "reduce_scatter", "single"])
        root = self.shared.randrange(self.size)
        if kind in ("all_reduce", "reduce"):
            output = layout(mine)
            if kind == "reduce" and self.rank != root:
                expected, tolerant = mine, False
        else:
            # Rank r sends to rank k its input rotated by k.
            output, expected = layout(torch.zeros_like(mine)), expected.roll(self.rank)
            pieces = [layout(mine.roll(rank)) for rank in range(self.size)]

        def call(**options):
            options |= {"group": self.group}
            if kind == "all_reduce":
                return dist.all_reduce(output, op, **options)
            if kind == "reduce":
                return dist.reduce(output, op=op, group_dst=root, **options)
            if kind == "reduce_scatter":
                return dist.reduce_scatter(output, pieces, op, **options)
            return dist.reduce_scatter_single(output, layout(torch.cat(pieces)), op, **options)

        self.begin(call, lambda: t.assert_same(output, expected, tolerant))

    def moves(self):
        inputs, layout = self.data()
        mine, everything = inputs[self.rank], torch.cat(inputs)
        root = self.shared.randrange(self.size)
        kind = self.shared.choice(["broadcast", "all_gather", "single", "gather", "scatter", "all"])
        rotated = [layout(mine.roll(rank)) for rank in range(self.size)]
        outputs = [layout(torch.zeros_like(mine)) for _ in inputs]
        first, at_root = outputs[0], self.rank == root
        group = {"group": self.group}

        if kind == "broadcast":
            first = layout(mine)
            self.begin(
                lambda **options: dist.broadcast(first, group_src=root, **group, **options),
                lambda: t.assert_same(first, inputs[root]),
            )
        elif kind == "all_gather":
            self.begin(
                lambda **options: dist.all_gather(outputs, layout(mine), **group, **options),
                lambda: t.assert_same(torch.cat(outputs), everything),
            )
        elif kind == "single":
            whole = layout(torch.zeros_like(everything))
            self.begin(
                lambda **options: dist.all_gather_single(whole, layout(mine), **group, **options),
                lambda: t.assert_same(whole, everything),
            )
        elif kind == "gather":
            self.begin(
                lambda **options: dist.gather(
                    layout(mine), outputs if at_root else None, group_dst=root, **group, **options
                ),
                lambda: at_root and t.assert_same(torch.cat(outputs), everything),
            )
        elif kind == "scatter":
            self.begin(
                lambda **options: dist.scatter(
                    first, rotated if at_root else None, group_src=root, **group, **options
                ),
                lambda: t.assert_same(first, inputs[root].roll(self.rank)),
            )
        else:
            self.begin(
                lambda **options: dist.all_to_all(outputs, rotated, **group, **options),
                lambda: t.assert_same(
                    torch.cat(outputs), torch.cat([other.roll(self.rank) for other in inputs])
                ),
            )

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
            lambda **options: dist.all_to_all_single(
                output, sent, received, rows[self.rank], group=self.group, **options
            ),
            lambda: t.assert_same(output, expected.unsqueeze(1).expand(-1, 2)),
        )

    def coalesced(self):
        counts = [self.shared.choice(COUNTS) for _ in range(3)]
        lists = [[t.data(r, count, torch.float32) for r in range(self.size)] for count in counts]
        outputs = [inputs[self.rank].clone() for inputs in lists]
        with dist._coalescing_manager(group=self.group, async_ops=True) as manager:
            for output in outputs:
                dist.all_reduce(output, group=self.group)

        def check():
            for output, inputs in zip(outputs, lists, strict=True):
                t.assert_same(output, t.reduced(inputs, ReduceOp.SUM))

        self.begun.append((manager.wait, check))

    def batch(self):
        """Send to the next rank and receive from the one before, in one call."""
        inputs, layout = self.data()
        output = layout(torch.zeros_like(inputs[0]))
        after, before = (self.rank + 1) % self.size, (self.rank - 1) % self.size
        group = {"group": self.group, "tag": self.next_tag()}
        operations = [
            dist.P2POp(dist.isend, layout(inputs[self.rank]), group_peer=after, **group),
            dist.P2POp(dist.irecv, output, group_peer=before, **group),
        ]
        for work in dist.batch_isend_irecv(operations):
            work.wait()
        t.assert_same(output, inputs[before])

    def next_tag(self):
        self.tag += 1
        return self.tag

    def messages(self):
        """Send some messages between random ranks and receive them in another order."""
        self.shared.choice([self.one_message, self.many_messages, self.from_any_source])()

    def one_message(self):
        inputs, layout = self.data()
        source, target = self.shared.choices(range(self.size), k=2)
        tag = {"group": self.group, "tag": self.next_tag()}
        if source == target:  # A blocking call to itself would wait for ever.
            return
        if self.rank == source:
            dist.send(layout(inputs[source]), group_dst=target, **tag)
        if self.rank == target:
            output = layout(torch.zeros_like(inputs[source]))
            dist.recv(output, group_src=source, **tag)
            t.assert_same(output, inputs[source])

    def many_messages(self):
        first = self.next_tag()
        self.tag += 1  # two tags, so that some messages have the same one and stay in order
        sends, receives = [], {}
        for _ in range(self.shared.randrange(1, 8)):
            inputs, layout = self.data()
            source, target = self.shared.choices(range(self.size), k=2)
            tag, data = self.shared.choice([first, self.tag]), inputs[source]
            if self.rank == source:
                sends.append(dist.isend(layout(data), group_dst=target, group=self.group, tag=tag))
            if self.rank == target:
                receives.setdefault((source, tag), []).append((layout, data))
        waits = [(send.wait, lambda: None) for send in sends]
        while receives:
            source, tag = self.own.choice(list(receives))
            layout, data = receives[source, tag].pop(0)
            if not receives[source, tag]:
                del receives[source, tag]
            output = layout(torch.zeros_like(data))
            work = dist.irecv(output, group_src=source, group=self.group, tag=tag)
            waits.append((work.wait, lambda got=output, data=data: t.assert_same(got, data)))
        self.own.shuffle(waits)
        for begun in waits:
            self.end(begun)

    def from_any_source(self):
        inputs, layout = self.data()
        target, tag = self.shared.randrange(self.size), self.next_tag()
        # PyTorch refuses a message of the rank itself here.
        others = [rank for rank in range(self.size) if rank != target]
        sources = self.shared.choices(others, k=self.shared.randrange(1, 4)) if others else []
        group = {"group": self.group, "tag": tag}
        sends = [
            dist.isend(layout(inputs[source]), group_dst=target, **group)
            for source in sources
            if self.rank == source
        ]
        found = []
        for _ in sources if self.rank == target else []:
            output = layout(torch.zeros_like(inputs[0]))
            source = dist.get_group_rank(self.group, dist.recv(output, **group))
            t.assert_same(output, inputs[source])
            found.append(source)
        for send in sends:
            send.wait()
        assert sorted(found) == (sorted(sources) if self.rank == target else [])


def poll(work):
    while not work.is_completed():
        time.sleep(0.001)
    work.wait()
