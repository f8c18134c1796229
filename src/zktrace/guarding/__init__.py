"""The guard of a federation: every model that leaves the server carries its station's row, and none stays.

zktrace.guarding.subspace    the directions in which a federation never trains
zktrace.guarding.guard       a station's own copy of a round, and an aggregate without any mark
zktrace.guarding.broadcasts  who got which copy, on record, and the proof of it
"""

from zktrace.guarding.broadcasts import CopyProof, copy_proof, fitting, handed_out
from zktrace.guarding.guard import Broadcast, Guard, guard_of

__all__ = ["Broadcast", "CopyProof", "Guard", "copy_proof", "fitting", "guard_of", "handed_out"]
