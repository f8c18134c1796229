"""Enrol, release, dispatch, leak, trace, judge: the life cycle in 25 lines.

python examples/life_cycle.py
"""

import tempfile
from pathlib import Path

import numpy as np

import zktrace

rng = np.random.default_rng(1)
model = {}
for layer in range(8):  # a model of yours, of any kind: arrays, a file, or a torch state_dict
    model[f"layer{layer}.weight"] = rng.normal(0, 0.1, (64, 64)).astype(np.float32)
    model[f"layer{layer}.bias"] = np.zeros(64, np.float32)

with tempfile.TemporaryDirectory() as folder:
    home = zktrace.Workspace.create(Path(folder) / "operator", title="three stations", budget="1/100")
    for name in ("alpha", "bravo", "charlie"):
        home.enrol(name, zktrace.Credential.new(name).request(home.setup))
    release = home.release(model)
    copies = {name: home.dispatch(name, release) for name in ("alpha", "bravo", "charlie")}
    leaked = {name: array.astype(np.float16) for name, array in copies["bravo"].arrays.items()}
    case = home.trace(leaked, budget="1/1000")
    print(f"{case.verdict}: {', '.join(case.named)}")
    judgement = zktrace.judge(case.evidence, head=home.head, suspect=leaked, shared=model)
    print(f"upheld: {', '.join(judgement.named)}; {judgement.bound}")
