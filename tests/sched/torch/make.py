# SPDX-License-Identifier: MIT
"""make.py - write the CSV files of this folder from torch's own generators of schedules.

    pip download torch==2.9.1 --no-deps --only-binary=:all: --platform macosx_11_0_arm64 --python-version 3.11
    unzip torch-*.whl 'torch/distributed/pipelining/*'
    python3 make.py PATH_TO/torch/distributed/pipelining

Only the pure part of torch is needed, so any platform's wheel does and what it imports is left empty.
"""
import sys
import types


class Anything(types.ModuleType):
    def __getattr__(self, name):
        return type(name, (), {}) if name[:1].isupper() or name[:1] == "_" else Anything(name)

    def __call__(self, *arguments, **named):
        return lambda function: function


for module in ("torch", "torch.distributed", "torch._dynamo", "torch.distributed.fsdp", "torch.nn",
               "torch.nn.modules", "torch.nn.modules.loss", "torch.profiler", "torch.distributed.device_mesh",
               "pipelining.microbatch", "pipelining.stage"):
    sys.modules[module] = Anything(module)
package = types.ModuleType("pipelining")
package.__path__ = [sys.argv[1]]
sys.modules["pipelining"] = package
from pipelining import schedules as torch_schedules  # noqa: E402


def write(name, kind, positions, microbatches, chunks):
    cls = getattr(torch_schedules, kind)
    s = object.__new__(cls)
    s._n_microbatches, s.pp_group_size, s.n_local_stages = microbatches, positions, chunks
    s._num_stages = s.num_stages = positions * chunks
    s.rank = 0
    if kind == "ScheduleInterleaved1F1B":
        s.number_of_rounds = max(1, microbatches // positions)
        s.microbatches_per_round = microbatches // s.number_of_rounds
    if hasattr(cls, "_calculate_single_rank_operations"):
        order = {rank: s._calculate_single_rank_operations(rank) for rank in range(positions)}
    else:
        order = s._get_pipeline_order()
    with open(f"{name}-{positions}x{microbatches}.csv", "w") as file:
        for rank in range(positions):
            file.write(",".join("" if a is None else str(a) for a in order[rank]) + "\n")


class Recorder:
    """A stage that writes down what it is told to run."""

    def __init__(self, stage):
        self.stage_index, self.calls = stage, []

    def forward_one_chunk(self, unit, *rest, **named):
        self.calls.append(f"{self.stage_index}F{unit}")

    def backward_one_chunk(self, unit, *rest, **named):
        self.calls.append(f"{self.stage_index}B{unit}")

    def __getattr__(self, name):
        return lambda *rest, **named: []


class Nothing:
    def __enter__(self):
        pass

    def __exit__(self, *rest):
        pass


def run(name, kind, positions, microbatches):
    """What torch runs, which is not always what it describes."""
    torch_schedules._batch_p2p = torch_schedules._wait_batch_p2p = lambda *rest, **named: None
    torch_schedules._sorted_batch_p2p = lambda *rest, **named: {}
    torch_schedules.record_function = lambda text: Nothing()
    with open(f"{name}-{positions}x{microbatches}.csv", "w") as file:
        for rank in range(positions):
            s = object.__new__(getattr(torch_schedules, kind))
            s._n_microbatches, s._num_stages, s._stage = microbatches, positions, Recorder(rank)
            s._stage_initialized, s.scale_grads = True, False
            s._check_inputs = lambda *rest: ([()] * microbatches, [{}] * microbatches)
            s._maybe_compute_loss = s._maybe_get_loss = s._update_losses = lambda *rest: None
            s._step_microbatches()
            file.write(",".join(s._stage.calls) + "\n")


run("run-gpipe", "ScheduleGPipe", 4, 8)
run("run-1f1b", "Schedule1F1B", 4, 8)
run("run-1f1b", "Schedule1F1B", 5, 3)
write("gpipe", "ScheduleGPipe", 4, 8, 1)
write("1f1b", "Schedule1F1B", 4, 8, 1)
write("1f1b", "Schedule1F1B", 5, 3, 1)
write("interleaved2", "ScheduleInterleaved1F1B", 4, 8, 2)
write("interleaved3", "ScheduleInterleaved1F1B", 2, 6, 3)
write("interleaved2", "ScheduleInterleaved1F1B", 4, 10, 2)
write("zbv", "ScheduleZBVZeroBubble", 4, 8, 2)
write("zbv", "ScheduleZBVZeroBubble", 4, 4, 2)
write("zbv", "ScheduleZBVZeroBubble", 3, 11, 2)
write("dualpipev", "ScheduleDualPipeV", 2, 6, 2)
write("dualpipev", "ScheduleDualPipeV", 4, 10, 2)
