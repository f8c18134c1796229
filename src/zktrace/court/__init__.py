"""Re-checks evidence against a head of the log and a policy. Trusts no number that it can recompute.

from zktrace.court import judge

judge(Path("case.zkt.json").read_bytes(), head=head)   # a Judgement, or EvidenceRejected with its step
"""

from zktrace.court.judgement import STEPS, Judgement, Minutes, Step, Total
from zktrace.court.policy import Policy
from zktrace.court.protocol import judge

__all__ = ["STEPS", "Judgement", "Minutes", "Policy", "Step", "Total", "judge"]
