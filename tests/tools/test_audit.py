"""The audit of `c10d-conformance audit`: headers, overrides, places that ask for a name."""

import json

import pytest
from c10d_conformance import audit
from c10d_conformance.audit import headers, live, places
from c10d_conformance.cli import ERROR, main

from tools.project.paths import ROOT

IN_PYTHON = pytest.mark.skipif(
    not (live.INCLUDE / headers.FOLDER / "py/PyBackend.hpp").exists(),
    reason="before PyTorch 2.14, a class in Python cannot be a backend",
)

OLD = """
// Deprecated: this comment is of the macro.
#define C10D_BACKEND_HAS_OLD 1
class TORCH_API Backend : public torch::CustomClassHolder {
 public:
  struct Options : torch::CustomClassHolder {
    virtual Options clone() const { return *this; }
  };
  explicit Backend(int rank, int size);
  ~Backend() override = 0;
  virtual bool supportsSplitting() const {
    return false;
  }
  virtual void removed(int /* tag */) {}
  virtual int renamed(const std::map<int, int>& before = {}, bool flag = f(1, 2)) {
    TORCH_CHECK(false, "{ no support ;");
  }
  virtual int old_name(int x) { return new_name(x); }
  virtual int new_name(int x) { return old_name(x); }
  virtual int wider(int x) { return 1; }
  virtual void timeout() { TORCH_CHECK(false, "no"); }
  int plain() const { return 0; }
  std::function<void(int)> member_;
};
"""
NEW = """
#define C10D_BACKEND_HAS_NEW 1
class TORCH_API Backend : public torch::CustomClassHolder {
 public:
  bool supportsSplitting() const { return capabilities()[0]; }
  virtual Capabilities capabilities() const { return {}; }
  virtual int renamed(const std::map<int, int>& after, bool other) { throw Error("no"); }
  // Deprecated: use new_name instead. Kept for a while.
  virtual int old_name(int x) { return new_name(x); }
  virtual int new_name(int x) { return old_name(x); }
  virtual int wider(int64_t x) { return 1; }
  virtual void timeout() { TORCH_WARN("ignored"); }
  virtual void send_fast(int tag) {}
};
"""


@pytest.fixture
def folder(tmp_path):
    """A folder with the newer header."""
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "Backend.hpp").write_text(NEW)
    return tmp_path / "new"


# -- Headers -----------------------------------------------------------------------


def test_a_header_is_read(tmp_path):
    path = tmp_path / "Backend.hpp"
    path.write_text(OLD)
    read = headers.read_class(path, "Backend")
    assert {name: x.inherited for name, x in read.virtuals.items()} == {
        "supportsSplitting": "returns false",
        "removed": "does nothing",
        "renamed": "raises",
        "old_name": "calls new_name",
        "new_name": "calls old_name",
        "wider": "returns 1",
        "timeout": "raises",
    }
    assert read.others == {"Backend", "plain"}
    assert read.virtuals["renamed"].signature == "int renamed(const std::map<int, int>&, bool)"
    lines = OLD.splitlines()
    assert all(name in lines[x.line - 1] for name, x in read.virtuals.items())
    assert not any(x.deprecated for x in read.virtuals.values())


def test_two_headers_are_compared(tmp_path, folder):
    (tmp_path / "Backend.hpp").write_text(OLD)
    old = headers.read_class(tmp_path / "Backend.hpp", "Backend")
    new = headers.read_class(folder / "Backend.hpp", "Backend")
    changes = {(x.kind, x.name) for x in headers.compare(old, new)}
    assert changes == {
        ("not virtual", "supportsSplitting"),
        ("removed", "removed"),
        ("deprecated", "old_name"),
        ("signature", "wider"),
        ("default", "timeout"),
        ("added", "capabilities"),
        ("added", "send_fast"),
    }
    assert new.virtuals["old_name"].deprecated == "Deprecated: use new_name instead"
    assert headers.macros(folder / "Backend.hpp") == {"C10D_BACKEND_HAS_NEW"}


@pytest.mark.parametrize("name", headers.FILES)
def test_all_virtual_functions_of_pytorch_are_read(name):
    text = (live.INCLUDE / headers.FOLDER / headers.FILES[name]).read_text()
    declared = [line for line in text.splitlines() if line.startswith("  virtual ")]
    virtuals = live.installed(name).virtuals
    assert len(virtuals) == len(declared) > 10
    assert all(
        function in text.splitlines()[x.line - 1] + text.splitlines()[x.line]
        for function, x in virtuals.items()
    )


# -- Backends ----------------------------------------------------------------------


def audit_of(tmp_path, monkeypatch, *arguments):
    """Audit a backend without its places, and return the JSON."""
    monkeypatch.setattr(places, "find", lambda *_: [])
    path = tmp_path / "audit.json"
    assert main(["audit", *arguments, "--json", str(path)]) == 0
    return json.loads(path.read_text())


def statuses(entry):
    return {row["name"]: row["status"] for row in entry["virtuals"]}


def test_a_compiled_backend(tmp_path, monkeypatch, folder, capsys):
    options = ["--backend", "dummy", "--import", "dummy_collectives", "--headers", str(folder)]
    report = audit_of(tmp_path, monkeypatch, *options)
    source = ROOT / "extension/dummy_collectives/src/dummy.cpp"
    for entry in report["classes"]:
        declared = headers.read_class(source, f"{entry['name']}Dummy").bodies
        overridden = {name for name, status in statuses(entry).items() if status == "overridden"}
        assert overridden == {name for name in declared if name in statuses(entry)}
        assert entry["language"] == "C++" and entry["type"].endswith(f"{entry['name']}Dummy")
    assert [entry["name"] for entry in report["classes"]] == ["Backend", "Work"]

    effects = {x["name"]: x["effect"] for x in report["headers"]["changes"]}
    assert "stops compiling" in effects["allreduce"]
    assert effects["supportsSplitting"] == "" and effects["broadcast"] == ""
    assert effects["send_fast"] == "inherited silently: does nothing"
    assert effects["capabilities"] == "inherited silently: returns {}"
    assert report["headers"]["macros"]["added"] == ["C10D_BACKEND_HAS_NEW"]
    assert "Backend::allreduce, removed: your override stops" in capsys.readouterr().out


def test_a_compiled_backend_of_pytorch(tmp_path, monkeypatch):
    report = audit_of(tmp_path, monkeypatch, "--backend", "gloo")
    backend = report["classes"][0]
    assert backend["type"] == "c10d::ProcessGroupGloo"
    found = statuses(backend)
    assert found["allreduce"] == found["monitoredBarrier"] == "overridden"
    assert found["startCoalescing"] == found["suspend"] == "inherited"
    rows = {row["name"]: row for row in backend["virtuals"]}
    assert rows["supportsSplitting"]["text"] == "True"
    assert rows["suspend"]["inherits"] == "raises"


def test_a_module_of_another_release(monkeypatch, capfd):
    read = live.installed

    def shifted(name):
        kind = read(name)
        virtuals = list(kind.virtuals.items())
        kind.virtuals = dict([virtuals[0], ("added", virtuals[0][1]), *virtuals[1:]])
        return kind

    monkeypatch.setattr(live, "installed", shifted)
    assert main(["audit", "--backend", "dummy", "--import", "dummy_collectives"]) == ERROR
    error = capfd.readouterr().err
    assert "the virtual table is isInitialized, and Backend.hpp" in error
    assert error.strip().endswith("has added there: build the backend again")


PYTHON = """
import os
import time

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import Backend


class Done(dist.Work):
    def wait(self, timeout=None):
        return True


class Mine(Backend):
    supports_splitting = True

    def __init__(self, rank, size):
        super().__init__(rank, size)

    def getBackendName(self):
        return "mine"

    @property
    def options(self):
        return Backend.Options("mine")

    def allreduce(self, tensors, opts=None):
        return Done()

    def gather(self, *arguments):
        raise RuntimeError("Backend mine does not support gather")

    def scatter(self, *arguments):
        raise RuntimeError("the cable is out")

    def recv_anysource(self, *arguments):
        time.sleep(1000)

    def barrier(self, *arguments):
        os._exit(7)


def create(store, rank, size, timeout):
    return Mine(rank, size)


dist.Backend.register_backend("mine", create, devices=["cpu"])
"""


@IN_PYTHON
def test_a_backend_in_python(tmp_path, monkeypatch, folder, capsys):
    (tmp_path / "mine_in_python.py").write_text(PYTHON)
    monkeypatch.syspath_prepend(tmp_path)
    options = ["--backend", "mine", "--import", "mine_in_python", "--limit", "3"]
    report = audit_of(tmp_path, monkeypatch, *options, "--headers", str(folder))
    backend, work = report["classes"]
    assert backend["language"] == "Python" and backend["type"] == "mine_in_python.Mine"
    found = {name: status for name, status in statuses(backend).items() if status != "inherited"}
    overridden = ["supportsSplitting", "getBackendName", "getBackendOptions", "allreduce"]
    overridden += ["scatter", "recvAnysource", "barrier"]
    assert found == dict.fromkeys(overridden, "overridden") | {"gather": "refused"}
    calls = {row["name"]: row["call"] for row in backend["virtuals"] if row["call"]}
    assert calls["gather"] == "refused" and calls["scatter"] == "raised"
    assert calls["recvAnysource"] == "hung" and calls["barrier"] == "crashed"
    rows = {row["name"]: row for row in backend["virtuals"]}
    assert "ended with exit status 7" in rows["barrier"]["text"]
    # Neither of two names that call each other is overridden.
    assert rows["all_gather_single"]["inherits"] == "raises"
    assert statuses(work)["wait"] == "overridden" and statuses(work)["getFuture"] == "inherited"
    effects = {x["name"]: x["effect"] for x in report["headers"]["changes"]}
    assert effects["allreduce"] == "PyTorch no longer calls your method"
    assert "gather: Backend mine does not support gather" in capsys.readouterr().out


# -- Places ------------------------------------------------------------------------

SOURCE = """
ALL = {"gloo", "mpi"}
def asks(group, backend, device):
    if dist.get_backend(group) not in {"nccl", "nccl2"}:  # 4
        pass
    if backend == "mine" or backend is dist.Backend.GLOO:  # 6
        pass
    if not isinstance(backend, ProcessGroupNCCL) and backend in ALL:  # 8, twice
        pass
    dist.new_group(backend="gloo")  # 10
    ProcessGroupGloo(1)  # 11
    return device.type == "cuda" or device.is_cuda  # 13
def make_gloo_group(backend):
    isinstance(backend, ProcessGroupGloo)
    backend.name == "other", backend == Backend.FAKE, "nccl", device.type == "cpu"
    print("gloo")
"""


def lines_of(folder, device):
    return [place.line for place in places.find("mine", device, folder)]


def test_places_that_ask_for_a_name(tmp_path):
    (tmp_path / "distributed").mkdir()
    (tmp_path / "testing").mkdir()
    for name in ("distributed/asks.py", "distributed/_nccl4py.py", "testing/asks.py"):
        (tmp_path / name).write_text(SOURCE)
    assert lines_of(tmp_path, "cpu") == [4, 6, 8, 8, 10, 11]
    assert lines_of(tmp_path, "cuda") == [4, 6, 8, 8, 10, 11]
    assert lines_of(tmp_path, "npu") == [4, 6, 8, 8, 10, 11, 12, 12]
    found = places.find("mine", "cpu", tmp_path)
    assert [place.outcome for place in found] == [True, False, False, False, None, None]
    assert found[0].differs == ("nccl", "nccl2") and found[3].differs == ("gloo", "mpi")
    assert found[1].condition == "backend == 'mine' or backend is dist.Backend.GLOO"
    assert {place.function for place in found} == {"asks"}
    # gloo is not treated otherwise than gloo.
    assert [x.line for x in places.find("gloo", "cpu", tmp_path)] == [4, 6, 8, 8]


def test_places_of_pytorch():
    found = {(place.file, place.function.split(".")[-1]) for place in places.find("mine", "cpu")}
    known = {
        ("distributed/distributed_c10d.py", "_get_default_timeout"),
        ("distributed/distributed_c10d.py", "_new_process_group_helper"),
        ("distributed/distributed_c10d.py", "_object_to_tensor"),
        ("distributed/distributed_c10d.py", "_tensor_to_object"),
        ("distributed/_shard/sharded_tensor/api.py", "_get_preferred_device"),
        ("distributed/algorithms/ddp_comm_hooks/ddp_zero_hook.py", "hook_with_zero_step"),
        ("distributed/checkpoint/_async_process_executor.py", "_checkpointing_subprocess"),
        ("distributed/c10d_logger.py", "_get_msg_dict"),
        ("distributed/nn/functional.py", "backward"),
        ("distributed/nn/functional.py", "forward"),
        ("nn/modules/_functions.py", "forward"),
    }
    assert known <= found


# -- The command -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["nothing"], "no backend is called 'nothing'"),
        (["gloo", "--import", "no_such_module"], "No module named 'no_such_module'"),
        (["gloo", "--headers", str(ROOT)], "neither Backend.hpp nor torch/csrc"),
        (["gloo", "--json", "/no/folder/a.json"], "--json /no/folder/a.json cannot be written"),
        (["gloo", "--device", "moon"], "--device moon"),
        (["gloo", "--limit", "0"], "--limit must be more than 0"),
        (["failing", "--import", "failing_backends"], "OSError: no cable"),
        (["ending", "--import", "failing_backends"], "ended with exit status 3"),
    ],
)
def test_a_wrong_call_is_one_message(arguments, text, tmp_path, monkeypatch, capfd):
    (tmp_path / "failing_backends.py").write_text(
        "import os\nimport torch.distributed as dist\n"
        "def fail(*_):\n    raise OSError('no cable')\n"
        "dist.Backend.register_backend('failing', fail, devices=['cpu'])\n"
        "dist.Backend.register_backend('ending', lambda *_: os._exit(3), devices=['cpu'])\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert main(["audit", "--backend", *arguments]) == ERROR
    output, error = capfd.readouterr()
    assert text in error and "Traceback" not in error + output
    assert error.startswith("c10d-conformance: ") and len(error.strip().splitlines()) == 1


def test_the_json_has_what_the_readme_names(tmp_path, monkeypatch):
    report = audit_of(tmp_path, monkeypatch, "--backend", "gloo")
    assert list(report) == "format torch backend module device classes headers places".split()
    assert report["format"] == audit.FORMAT == 1 and report["headers"] is None
    for entry in report["classes"]:
        assert list(entry) == ["name", "type", "language", "virtuals"]
        for row in entry["virtuals"]:
            assert list(row) == "name signature line status inherits call text deprecated".split()
            assert row["status"] in ("overridden", "refused", "inherited", "unknown")
            assert bool(row["inherits"]) == (row["status"] == "inherited")
