"""Hostile model files -> named arrays, and the canonical digest of a model's state.

from zktrace.models import model_digest, open_model

state = open_model("suspect.pt")      # safetensors, GGUF, ONNX, npz, torch zip, shards; nothing is executed
state["bn1.weight"]                   # a read-only numpy array
model_digest(state)                   # 32 bytes, the same for the same state in any container
open_confined("suspect.gguf")         # the same by a child process with capped resources: one file, any kind
save_model("copy.safetensors", state) # the same 32 bytes; lazy tensors are made and written a piece at a time
"""

from zktrace.models.confined import open_confined
from zktrace.models.digest import model_digest
from zktrace.models.limits import DEFAULT_LIMITS, Limits
from zktrace.models.open import open_model
from zktrace.models.saving import save_model
from zktrace.models.state import LazyTensor, ModelState, Tensor

__all__ = [
    "DEFAULT_LIMITS",
    "LazyTensor",
    "Limits",
    "ModelState",
    "Tensor",
    "model_digest",
    "open_confined",
    "open_model",
    "save_model",
]
