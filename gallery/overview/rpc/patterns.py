"""Worker: an asynchronous parameter server, batched calls, and an agent with observers."""

import os
import sys
import threading
import warnings

# PyTorch's own code for RPC still uses what it has deprecated.
warnings.filterwarnings("ignore", "You are using a Backend", UserWarning)

import torch
from torch import nn
from torch.distributed import rpc

CLIENTS = ("client-1", "client-2")
STEPS = 20
RATE = 0.5


def examples(trainer, count):
    """Inputs and targets of a trainer, the same in every call."""
    generator = torch.Generator().manual_seed(CLIENTS.index(trainer))
    inputs = torch.randn(count, 3, generator=generator)
    return inputs, inputs.sum(dim=1)


# [server]
class ParameterServer:
    def __init__(self):
        self.table = torch.zeros(8, 3)

    def pull(self, rows):
        return self.table[rows]

    def push(self, rows, gradient):
        self.table[rows] -= gradient  # Without a lock, in any order.


def train_rows(server, trainer):
    dice = torch.Generator().manual_seed(CLIENTS.index(trainer))
    for step in range(100):
        rows = torch.randperm(8, generator=dice)[:4]
        inputs = torch.randn(4, 3, generator=dice)
        inputs = nn.functional.normalize(inputs)
        weights = server.rpc_sync().pull(rows).requires_grad_()
        errors = (weights * inputs).sum(dim=1) - inputs.sum(dim=1)
        loss = errors.square().sum() / 2
        loss.backward()
        server.rpc_sync().push(rows, weights.grad)
    return step + 1
# [/server]


# [batching]
class BatchingServer:
    def __init__(self):
        self.weights = torch.zeros(3)
        self.gradients = []
        self.calls = self.batches = 0
        self.answer = torch.futures.Future()
        self.lock = threading.Lock()

    def pull(self):
        return self.weights

    @rpc.functions.async_execution
    def push_and_pull(self, gradient):
        with self.lock:
            self.calls += 1
            self.gradients.append(gradient)
            answer = self.answer
            if len(self.gradients) == len(CLIENTS):
                mean = sum(self.gradients) / len(CLIENTS)
                self.weights = self.weights - RATE * mean
                self.batches += 1
                self.gradients = []
                self.answer = torch.futures.Future()
                answer.set_result(self.weights)
        return answer
# [/batching]


def train_weights(server, trainer):
    inputs, targets = examples(trainer, count=8)
    weights = server.rpc_sync().pull()
    losses = []
    for step in range(STEPS):
        weights.requires_grad_()
        loss = nn.functional.mse_loss(inputs @ weights, targets)
        loss.backward()
        weights = server.rpc_sync().push_and_pull(weights.grad)
        losses.append(loss.item())
    return losses


# [run]
def run_on_clients(function, rref):
    """Call function(rref, client) on both clients at the same time."""
    futures = [
        rpc.rpc_async(to, function, args=(rref, to)) for to in CLIENTS
    ]
    return [future.wait() for future in futures]
# [/run]


def report(all_losses):
    for trainer, losses in zip(CLIENTS, all_losses):
        print(f"{trainer}: loss {losses[0]:.4f} -> {losses[-1]:.4f}")
        assert losses[-1] < losses[0] / 100


GOAL = 4


def walk(agent, observer):
    """Walk from cell 0 to the goal, and return the reward of each move."""
    cell, rewards = 0, []
    while cell != GOAL and len(rewards) < 20:
        move = agent.rpc_sync().choose(observer, cell)
        cell = max(0, cell + move)
        rewards.append(-1.0)
    return rewards


class Agent:
    def __init__(self):
        # Two numbers for each cell: preferences for a step back and a step ahead.
        self.policy = torch.zeros(GOAL, 2, requires_grad=True)
        self.chosen = {observer: [] for observer in CLIENTS}
        self.dice = {
            observer: torch.Generator().manual_seed(seed)
            for seed, observer in enumerate(CLIENTS)
        }

    def choose(self, observer, cell):
        logs = self.policy[cell].log_softmax(dim=0)
        dice = self.dice[observer]
        choice = torch.multinomial(logs.exp(), 1, generator=dice)
        self.chosen[observer].append(logs[choice])
        return (-1, 1)[choice]

    def learn(self, walks):
        loss = 0.0
        for logs, rewards in zip(self.chosen.values(), walks):
            # For each move, the reward from there to the end of the walk.
            to_come = torch.tensor(rewards[::-1]).cumsum(dim=0).flip(0)
            loss -= torch.cat(logs) @ to_come
            logs.clear()
        (gradient,) = torch.autograd.grad(loss, self.policy)
        with torch.no_grad():
            self.policy -= 0.01 * gradient


rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
name = ("server", *CLIENTS)[rank]
rpc.init_rpc(name, rank=rank, world_size=world_size)
if name != "server":
    rpc.shutdown()
    sys.exit()

# [table]
server = rpc.RRef(ParameterServer())
pushes = run_on_clients(train_rows, server)
table = server.local_value().table
# [/table]
print(f"{sum(pushes)} pushes of two trainers, in any order")
print("numbers in the table:", table.round(decimals=3).unique().tolist())
torch.testing.assert_close(table, torch.ones(8, 3), atol=1e-3, rtol=0)

server = rpc.RRef(BatchingServer())
losses = run_on_clients(train_weights, server)

parts = [examples(trainer, count=8) for trainer in CLIENTS]
inputs = torch.cat([inputs for inputs, _ in parts])
targets = torch.cat([targets for _, targets in parts])
weights = torch.zeros(3)
for step in range(STEPS):
    weights.requires_grad_()
    nn.functional.mse_loss(inputs @ weights, targets).backward()
    weights = weights.detach() - RATE * weights.grad
torch.testing.assert_close(server.local_value().weights, weights)
print("Gradients in batches:")
report(losses)
calls, batches = server.local_value().calls, server.local_value().batches
print(f"{calls} calls were answered in {batches} batches")
assert (calls, batches) == (2 * STEPS, STEPS)

agent = Agent()
history = []
for step in range(30):
    walks = run_on_clients(walk, rpc.RRef(agent))
    agent.learn(walks)
    history += [sum(rewards) for rewards in walks]
first, last = sum(history[:10]) / 10, sum(history[-10:]) / 10
print(f"mean reward of the first ten walks: {first:.1f}")
print(f"mean reward of the last ten walks: {last:.1f}")
assert last > first / 2
assert agent.policy.argmax(dim=1).eq(1).all()

rpc.shutdown()
