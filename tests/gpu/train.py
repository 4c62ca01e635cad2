"""A small transformer-like training loop with checkpointing, marked for both profilers.

usage: train.py plain|nvtx|profiler|both [OUT.json]     STEPS: how many steps (20)
"""
import json
import os
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

MODE = sys.argv[1]
OUT = sys.argv[2] if len(sys.argv) > 2 else None
STEPS = int(os.environ.get("STEPS", "20"))
CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"
DTYPE = torch.bfloat16 if CUDA else torch.float32
WIDTH, BATCH, LENGTH, LAYERS = (1024, 8, 256, 4) if CUDA else (64, 2, 16, 2)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False)
        return self.head(x)


class Range:
    """One range for both: NVTX for tracekit collect, record_function for Kineto."""

    def __init__(self, name):
        self.name = name
        self.record = torch.profiler.record_function(name)

    def __enter__(self):
        if CUDA:
            torch.cuda.nvtx.range_push(self.name)
        self.record.__enter__()

    def __exit__(self, *error):
        self.record.__exit__(*error)
        if CUDA:
            torch.cuda.nvtx.range_pop()


torch.manual_seed(0)
net = Net().to(DEVICE, DTYPE)
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4, fused=CUDA)
data = [torch.randn(BATCH, LENGTH, WIDTH, device=DEVICE, dtype=DTYPE) for _ in range(4)]


def step(number):
    with Range("phase.forward"):
        loss = F.mse_loss(net(data[number % 4]), data[(number + 1) % 4])
    with Range("phase.backward"):
        loss.backward()
    with Range("phase.optimizer"):
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


def wait():
    if CUDA:
        torch.cuda.synchronize()


def measured():
    with Range("measured"):
        for number in range(STEPS):
            with Range(f"ProfilerStep#{number}"):
                step(number)
        wait()


for number in range(5):
    step(number)
wait()
start = time.perf_counter()
if MODE in ("profiler", "both"):
    activities = [torch.profiler.ProfilerActivity.CPU]
    if CUDA:
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    with torch.profiler.profile(activities=activities, record_shapes=True) as profile:
        measured()
    seconds = time.perf_counter() - start
    profile.export_chrome_trace(OUT)
else:
    measured()
    seconds = time.perf_counter() - start
print(json.dumps({"mode": MODE, "steps": STEPS, "ms_per_step": round(1e3 * seconds / STEPS, 3),
                  "torch": torch.__version__, "device": DEVICE}))
