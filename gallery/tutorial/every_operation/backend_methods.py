"""The methods of c10d's ``Backend`` in the installed headers, and their callers in a run."""

import json
import os
import re
import tempfile
from pathlib import Path

import torch

from launcher import PROFILER, launch
from result_table import show_table

HEADERS = Path(torch.__file__).parent / "include/torch/csrc/distributed/c10d"


def without_comments(header):
    """Return the text of a header. A name of a parameter in a comment stays."""
    text = re.sub(r"/\*\s*(\w+)\s*\*/", r"\1", (HEADERS / header).read_text())
    return re.sub(r"//.*", "", text)


def virtual_methods():
    """Return a dictionary from the name of a method to its declaration, without defaults."""
    text = without_comments("Backend.hpp").partition("explicit Backend(")[2]
    text = re.sub(r" =\s+(\w+\(\)|\{\}|\d+|\w+|std::nullopt)(?=[,)])", "", text)
    found = [" ".join(x.split()) for x in re.findall(r"\bvirtual\s+([^{;]+?)\s*[{;]", text)]
    return {re.search(r"(\w+)\s*\(", x)[1]: x.replace("( ", "(") for x in found}


def fields_of_options(methods):
    """Yield the name and the fields of each structure that a method receives."""
    structures = r"struct (\w+Options) \{\n(.*?)\n\};"
    for name, fields in re.findall(structures, without_comments("Types.hpp"), re.S):
        if f" {name}&" in str(methods):
            yield name, re.findall(r"(\w+)(?: = [^;]+)?;", fields)


def find_callers():
    """Return pairs of a method, and a Python call or a feature that called it."""
    [reached] = launch("every_operation/every_call.py", ranks=1, show=False)
    callers = [(method, call) for call, method in json.loads(reached).items()]
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"SHARED_FOLDER": folder, "MORE_FEATURES": "yes"}
        features = "shared/calls_of_features.py"
        reports = launch(features, ranks=2, expected_stderr=PROFILER, show=False)
    for report in reports:
        for feature, operations in json.loads(report).items():
            callers += [(operation, feature) for operation in operations]
    return callers


# Rows of the tables of callers. A row is a name, or two names of one operation.
SECTIONS = {
    "name, timeout and end": [
        "getBackendName",
        "setTimeout",
        "shutdown",
        "abort",
        "isInitialized",
        "getError",
    ],
    "DDP": ["broadcast", "allreduce", "allgather"],
    "FSDP2": [
        "all_gather_single / _allgather_base",
        "reduce_scatter_single / _reduce_scatter_base",
    ],
    "messages": ["send", "recv", "recvAnysource"],
    "roots and barriers": [
        "reduce",
        "gather",
        "gather_single / gather_into_tensor",
        "scatter",
        "barrier",
        "monitoredBarrier",
    ],
    "each to each": ["alltoall", "all_to_all_single / alltoall_base", "reduce_scatter"],
    "several tensors": [
        "allreduce_coalesced",
        "all_gather_single_coalesced / allgather_into_tensor_coalesced",
        "reduce_scatter_single_coalesced / reduce_scatter_tensor_coalesced",
        "allgather_coalesced",
        "supportsCoalescing",
        "startCoalescing",
        "endCoalescing",
    ],
    "debugging": [
        "getSequenceNumberForGroup",
        "setSequenceNumberForGroup",
        "enableCollectivesTiming",
        "supportsAbortHooks",
        "registerAbortHook",
        "unregisterAbortHook",
        "supportsCompletionHooks",
        "registerCompletionHook",
        "unregisterCompletionHook",
        "registerOnCompletionHook",
        "waitForPendingWorks",
    ],
    "groups": [
        "getBackendOptions",
        "supportsSplitting",
        "split",
        "merge",
        "supportsShrinking",
        "shrink",
        "supportsReconfigure",
        "get_reconfigure_handle",
        "reconfigure",
        "setGroupUid",
        "getBoundDeviceId",
        "setBoundDeviceId",
        "eagerConnectSingleDevice",
    ],
    "memory, windows and estimates": [
        "allreduce_sparse",
        "getMemAllocator",
        "allocateTensor",
        "supportsTensorAlloc",
        "suspend",
        "resume",
        "getMemoryStats",
        "supportsWindow",
        "new_window",
        "supportsTimeEstimation",
        "startTimeEstimate",
        "endTimeEstimate",
        "addEphemeralTimeout",
    ],
}


def describe(methods, callers, section):
    """Show the declarations and the callers of the methods of a section, and return their names."""
    table, described = [], set()
    for row in SECTIONS[section]:
        names = [name for name in row.split(" / ") if name in methods]
        described.update(names)
        for name in names:
            declaration = methods[name]
            if len(declaration) > 80:
                declaration = declaration.replace("(", "(\n    ", 1).replace(", ", ",\n    ")
            print(f"{declaration};")
        if found := dict.fromkeys(call for method, call in callers if method in names):
            table.append([" / ".join(names), ", ".join(f"``{x}``" for x in found)])
    if table:
        show_table(["method", "called by"], table)
    return described


