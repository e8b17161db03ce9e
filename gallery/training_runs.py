"""What a worker trains: a model in several ways, as the pages about training explain them."""

import warnings

# PyTorch's own code for optimizers still uses what PyTorch has deprecated.
warnings.filterwarnings("ignore", "`torch.jit.* is deprecated", DeprecationWarning)

import torch
import torch.distributed.nn  # See gallery/overview/several_nodes/several_nodes.py.
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)
from torch.nn.parallel import DistributedDataParallel

CPU = torch.device("cpu")
RATES = {"SGD": 0.5, "Adam": 0.01}


def make_model(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 16))


def make_batch():
    torch.manual_seed(1)
    return torch.randn(8, 16), torch.randn(8, 16)


class Training:
    """A model, its optimizer, and a step that returns the loss of this rank."""

    def __init__(self, model, inputs, targets, optimizer="SGD"):
        self.model, self.inputs, self.targets = model, inputs, targets
        make_optimizer = getattr(torch.optim, optimizer)
        self.optimizer = make_optimizer(model.parameters(), lr=RATES[optimizer])

    def step(self):
        self.optimizer.zero_grad()
        loss = self.compute_gradients()
        self.optimizer.step()
        return loss.item()

    def compute_gradients(self):
        loss = nn.functional.mse_loss(self.model(self.inputs), self.targets)
        loss.backward()
        return loss


class PipelineTraining(Training):
    """The same for one stage of a model; only the last rank has a loss."""

    def __init__(self, model, group):
        super().__init__(model, *make_batch())
        self.stage = PipelineStage(model, group.rank(), group.size(), CPU, group=group)
        self.schedule = ScheduleGPipe(self.stage, n_microbatches=4, loss_fn=nn.MSELoss())

    def compute_gradients(self):
        if self.stage.is_first:
            self.schedule.step(self.inputs)
            return torch.tensor(0.0)
        losses = []
        self.schedule.step(target=self.targets, losses=losses)
        return torch.stack(losses).mean()


def own_rows(group):
    return [tensor.chunk(group.size())[group.rank()] for tensor in make_batch()]


def mesh_of(group):
    # Meshes of the same ranks are equal, and DTensor then takes the group of the first one.
    # The name makes them differ.
    return DeviceMesh.from_group(group, "cpu", mesh_dim_names=(f"group {group.group_name}",))


def ddp(group, optimizer="SGD"):
    model = DistributedDataParallel(make_model(), process_group=group)
    return Training(model, *own_rows(group), optimizer)


def fsdp2(group, optimizer="SGD", seed=0):
    model = make_model(seed)
    mesh = mesh_of(group)
    for layer in [model[0], model[2], model]:
        fully_shard(layer, mesh=mesh)
    return Training(model, *own_rows(group), optimizer)


def fsdp2_by_4(group):
    training = fsdp2(group)
    for layer in [training.model[0], training.model[2]]:
        layer.set_gradient_divide_factor(4)
    return training


def tensor_parallel(group):
    mesh = mesh_of(group)
    plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
    model = parallelize_module(make_model(), mesh, plan)
    return Training(model, *make_batch())


def pipeline(group):
    model = make_model()
    part = model[:2] if group.rank() == 0 else model[2:]
    return PipelineTraining(part, group)
