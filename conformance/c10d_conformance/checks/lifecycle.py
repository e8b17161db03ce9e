"""Start and end of groups and processes: registration, initialization, exit, fork."""

import os
import socket
import subprocess
import sys
import time
from datetime import timedelta
from importlib.metadata import entry_points

import torch
import torch.distributed as dist

from c10d_conformance.inputs import compare
from c10d_conformance.operations import total
from c10d_conformance.rank import Rank, Wrong, require, require_equal
from c10d_conformance.registry import check
from c10d_conformance.verdicts import ABSENT

INIT = "torch.distributed.init_process_group"
REGISTER = "torch.distributed.Backend.register_backend"


def _start(rank: Rank, text: str, before: str = "") -> subprocess.Popen[str]:
    """Start a program in a new Python that has the backend."""
    load = f"import {rank.module}\n" if rank.module else ""
    return subprocess.Popen(
        [sys.executable, "-c", "import torch, torch.distributed as dist\n" + before + load + text],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def _program(rank: Rank, text: str, before: str = "") -> subprocess.CompletedProcess[str]:
    """Run a program in a new Python that has the backend, and return how it ended."""
    with _start(rank, text, before) as process:
        try:
            output, errors = process.communicate(timeout=120)
        finally:
            process.kill()
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


@check(
    "lifecycle",
    "The name is registered, and the backend says for which devices it is.",
    REGISTER,
    minimum=1,
    quick=True,
)
def registered(rank: Rank) -> None:
    name = rank.backend.lower()
    require(name in dist.Backend.backend_list, f"{name!r} is not in Backend.backend_list")
    devices = dist.Backend.backend_capability.get(name)
    if not isinstance(devices, list):
        raise Wrong(f"Backend.backend_capability[{name!r}] is {devices!r}")
    kind = rank.device.type
    require(kind in devices, f"{kind!r} is not in Backend.backend_capability, which is {devices}")
    require(dist.is_backend_available(name), "is_backend_available() is False")


@check(
    "lifecycle",
    "A group knows its backend, rank, size and device.",
    "torch.distributed.get_backend, get_rank, get_world_size",
    minimum=1,
    quick=True,
)
def names(rank: Rank) -> None:
    require_equal(dist.get_backend(), rank.backend.lower(), "get_backend()")
    require_equal((dist.get_rank(), dist.get_world_size()), (rank.rank, rank.size), "rank and size")
    backend = rank.world._get_backend(rank.device)
    require_equal((backend.rank(), backend.size()), (rank.rank, rank.size), "rank() and size()")
    require_equal(backend.name().lower(), rank.backend.lower(), "name() of the backend")


@check(
    "lifecycle",
    "A group can be made with the options of another group, and with another timeout in them.",
    "torch.distributed.new_group (pg_options); Backend.hpp (getBackendOptions)",
)
def options(rank: Rank) -> None:
    base = rank.world._get_backend(rank.device).options
    before, timeout = base._timeout, timedelta(seconds=41)
    base._timeout = timeout  # backends take either this timeout or that of new_group
    try:
        group = rank.new_group(timeout=timeout, pg_options=base)
    finally:
        base._timeout = before
    new = group._get_backend(rank.device).options
    require_equal(new._timeout, timeout, "the timeout of the new group's options")
    total(rank, group)


@check(
    "lifecycle",
    "A process can destroy the default group and initialize it again.",
    "torch.distributed.destroy_process_group",
    group=False,
    quick=True,
    cases=lambda rank: [
        (f"init, all_reduce, destroy, time {number + 1}", number) for number in range(4)
    ],
)
def again(rank: Rank, number: int) -> None:
    rank.init()
    try:
        if number == 2 and rank.rank == 0:
            time.sleep(0.1)
        total(rank)
        total(rank, rank.new_group())
    finally:  # Also where all_reduce is refused: the next case makes another group.
        dist.destroy_process_group()
    require(not dist.is_initialized(), "is_initialized() is True after destroy_process_group()")


@check(
    "lifecycle",
    "A process can start the default group again with another rank, and without another process.",
    INIT,
    group=False,
    ranks=(3,),
    cases=lambda rank: [
        ("in the reverse order", [2, 1, 0]),
        ("without the first process", [1, 2]),
    ],
)
def again_with_other_ranks(rank: Rank, order: list[int]) -> str | None:
    """`order` has the processes of the second start, by their ranks in the first one."""
    for processes in (list(range(rank.size)), order):
        if rank.rank not in processes:
            return ABSENT
        rank.init(rank=processes.index(rank.rank), world_size=len(processes))
        try:
            outputs = [rank.full(3, -1.0) for _ in processes]
            dist.all_gather(outputs, rank.full(3, float(rank.rank)))
            for number, process in enumerate(processes):
                compare(outputs[number], torch.full((3,), float(process)), f"that of rank {number}")
            total(rank, ranks=processes)
        finally:
            dist.destroy_process_group()
    return None


@check(
    "lifecycle",
    "Groups that follow each other can meet at one store.",
    "torch.distributed.PrefixStore (init_process_group makes one)",
    group=False,
)
def one_store(rank: Rank) -> None:
    store = dist.FileStore(f"{rank.folder}/one-store", rank.size)
    for number in range(3):
        rank.init(store=dist.PrefixStore(f"round {number}", store))
        total(rank)
        rank.meet()
        dist.destroy_process_group()


@check("lifecycle", "A group of one rank needs nobody else.", INIT, ranks=(1,), group=False)
def one_rank(rank: Rank) -> None:
    dist.init_process_group(rank.backend, store=dist.HashStore(), rank=0, world_size=1)
    total(rank)
    dist.barrier()
    dist.destroy_process_group()


@check(
    "lifecycle",
    "Every init_method works: env://, tcp:// and file://.",
    f"{INIT} (init_method)",
    group=False,
    ranks=(2,),
    cases=lambda rank: [(f"init_method {x}://", x) for x in ("env", "tcp", "file")],
)
def init_methods(rank: Rank, method: str) -> None:
    # The launching process cannot hold a port for the ranks, so rank 0 takes a free one.
    with socket.socket() as probe:
        probe.bind(("", 0))
        port = rank.share(str(probe.getsockname()[1]))[0]
    os.environ.update(MASTER_ADDR=rank.address, MASTER_PORT=port)
    place = {"env": "", "tcp": f"{rank.address}:{port}", "file": f"{rank.folder}/meeting"}[method]
    rank.init(init_method=f"{method}://{place}")
    try:
        total(rank)
    finally:
        rank.meet()
        dist.destroy_process_group()


@check(
    "lifecycle",
    "The backend can be chosen for its device, as in “cpu:NAME”.",
    f"{INIT} (backend: “a string like cpu:gloo,cuda:nccl”)",
    group=False,
)
def chosen_for_a_device(rank: Rank) -> None:
    rank.init(backend=f"{rank.device.type}:{rank.backend}")
    total(rank)
    dist.barrier()
    group = rank.new_group()
    dist.broadcast(rank.full(3, 1.0), 0, group=group)
    rank.meet()
    dist.destroy_process_group()


@check(
    "lifecycle",
    "A sub-group of this backend works beside a default group of gloo.",
    "torch.distributed.new_group (backend)",
    group=False,
)
def beside_gloo(rank: Rank) -> None:
    rank.init(backend="gloo")
    group = rank.new_group(backend=rank.backend)
    total(rank, group)
    rank.meet()
    dist.destroy_process_group()


@check(
    "lifecycle",
    "Importing and registering a backend prints nothing and starts nothing.",
    REGISTER,
    ranks=(1,),
    group=False,
    patience=6,
)
def silent_import(rank: Rank) -> None:
    before = (
        "import os, sys\n"
        "def count():\n"
        "    return len(os.listdir('/proc/self/task')) if sys.platform == 'linux' else 0\n"
        "before = count()\n"
    )
    text = (
        f"dist.Backend({rank.backend!r})\n"
        "if count() > before:\n    print(count() - before, 'threads are running')\n"
    )
    done = _program(rank, text, before)
    require_equal(done.returncode, 0, f"the exit status after the import ({done.stderr[-300:]})")
    require_equal(done.stdout, "", "what the import prints")
    require_equal(done.stderr, "", "what the import prints to stderr")


@check(
    "lifecycle",
    "PyTorch finds an installed backend by its entry point, without an import.",
    "torch.distributed.Backend._ensure_backend_registered",
    ranks=(1,),
    group=False,
    patience=6,
)
def entry_point(rank: Rank) -> None:
    rank.operation = "entry point"
    if rank.backend.lower() in ("gloo", "nccl", "mpi", "ucc", "xccl"):
        return
    points = [
        x
        for x in entry_points(group="torch.distributed.backends")
        if x.name.lower() == rank.backend.lower()
    ]
    if not points:
        raise NotImplementedError(
            f"{rank.backend} does not have an entry point in the group torch.distributed.backends"
        )
    if not hasattr(dist.Backend, "_ensure_backend_registered"):
        raise NotImplementedError("this release of PyTorch does not support entry points")
    text = f"dist.init_process_group({rank.backend!r}, store=dist.HashStore(), rank=0, "
    text += "world_size=1)\ndist.destroy_process_group()\n"
    module, rank.module = rank.module, None
    done = _program(rank, text)
    rank.module = module
    require(done.returncode == 0, f"the program fails: {done.stderr.strip()[-400:]}")


@check(
    "lifecycle",
    "A process that has not destroyed its group ends, without a crash or a hang.",
    "torch.distributed (Shutdown)",
    ranks=(2,),
    group=False,
    patience=6,
)
def exit_without_destroy(rank: Rank) -> None:
    folder = rank.folder
    text = (
        f"store = dist.FileStore({folder!r} + '/exit', {rank.size})\n"
        f"dist.init_process_group({rank.backend!r}, store=store, rank={rank.rank}, "
        f"world_size={rank.size})\n"
        f"t = torch.ones(1000, device={str(rank.device)!r})\n"
        f"dist.all_reduce(t)\nwork = dist.all_reduce(t, async_op=True)\nprint('end', flush=True)\n"
    )
    try:
        done = _program(rank, text)
    except subprocess.TimeoutExpired:
        raise Wrong("the process does not end") from None
    if done.returncode and "end" not in done.stdout:
        raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr else "no text")
    require_equal(done.returncode, 0, f"the exit status (stderr: {done.stderr.strip()[-600:]})")
    for word in ("terminate called", "Segmentation", "Fatal", "Traceback", "SIG"):
        require(word not in done.stderr, f"stderr has {word!r}: {done.stderr.strip()[-600:]}")


@check(
    "lifecycle",
    "A job whose processes were killed can start again at the same store.",
    f"{INIT} (store); torchrun (restarts)",
    ranks=(2,),
    group=False,
    patience=6,
)
def after_a_kill(rank: Rank) -> None:
    if rank.backend == "gloo":
        raise NotImplementedError(
            "gloo does not support it: a rank may find the address of a killed process, and then "
            "the start fails or takes several times its timeout"
        )
    place = f"{rank.folder}/job"
    text = (
        "from datetime import timedelta\n"
        f"store = dist.FileStore({place!r}, {rank.size})\n"
        f"dist.init_process_group({rank.backend!r}, store=store, rank={rank.rank}, "
        f"world_size={rank.size}, timeout=timedelta(seconds=60))\n"
        f"dist.all_reduce(torch.ones(9, device={str(rank.device)!r}))\n"
        "print('ready', flush=True)\n"
        "input()\n"
    )
    with _start(rank, text) as process:
        assert process.stdout and process.stderr
        ready = process.stdout.readline()
        rank.meet()  # the other process is still in the group, too
        process.kill()
        errors = process.stderr.read()
    rank.meet()
    if not ready:
        raise RuntimeError((errors.strip() or "no text").splitlines()[-1])
    if rank.rank == 0:
        time.sleep(0.5)  # what the others read of it by then is old
    rank.init(timeout=8, store=dist.FileStore(place, rank.size))
    total(rank)
    dist.destroy_process_group()


@check(
    "lifecycle",
    "A fork that does not use the group, as of a DataLoader, leaves it as it is.",
    "torch.utils.data.DataLoader (num_workers)",
    group=False,
)
def fork(rank: Rank) -> None:
    rank.init()
    total(rank)
    work = dist.all_reduce(rank.full(5, 1.0), async_op=True)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if float(torch.ones(3).sum()) == 3 else 2
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    require_equal(os.waitstatus_to_exitcode(status), 0, "the exit status of the child")
    work.wait()
    total(rank)
    dist.destroy_process_group()


@check(
    "lifecycle",
    "The timeout and the options of a group can be left out and can be given.",
    f"{INIT} (timeout, pg_options)",
    group=False,
)
def default_timeout(rank: Rank) -> None:
    store = dist.FileStore(f"{rank.folder}/default", rank.size)
    dist.init_process_group(rank.backend, store=store, rank=rank.rank, world_size=rank.size)
    total(rank)
    rank.meet()
    dist.destroy_process_group()


@check(
    "lifecycle",
    "destroy_process_group waits for no rank that has done its part.",
    "torch.distributed.destroy_process_group",
    group=False,
    minimum=2,
)
def leaves_early(rank: Rank) -> None:
    """Rank 0 has its result and goes; a late rank must still get its own."""
    rank.init()
    total(rank)
    tensor = rank.full(20, float(rank.rank))
    if rank.rank:
        time.sleep(0.2)
    dist.broadcast(tensor, 0)
    dist.barrier()
    if rank.rank == 0:
        dist.destroy_process_group()
        return
    time.sleep(0.2)
    compare(tensor, torch.zeros(20))
    dist.destroy_process_group()
