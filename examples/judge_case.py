"""A judge's script: re-check an accusation offline, with nothing of the operator's but what is handed in.

python examples/judge_case.py EVIDENCE HEAD SUSPECT SHARED

The head comes from somebody whom the judge trusts for it, not from the evidence.
Exit 0: upheld, 1: rejected, 2: not decided.
"""

import sys
from fractions import Fraction
from pathlib import Path

import zktrace

POLICY = zktrace.Policy(max_budget=Fraction(1, 1000), require_suspect=True, require_readout=True)


def main(evidence: str, head: str, suspect: str, shared: str) -> int:
    try:
        found = zktrace.judge(
            Path(evidence), head=head, suspect=Path(suspect), shared=Path(shared), policy=POLICY
        )
    except zktrace.EvidenceRejected as error:
        print(f"not upheld: {error}")
        return 1
    except zktrace.Error as error:  # unreadable, or it cannot be told from what was given
        print(f"not decided: {error}")
        return 2
    for step in found.steps:
        print(f"({step.number}) {step.title}")
        for fact in step.checked:
            print(f"    {fact}")
        for fact in step.unchecked:
            print(f"    not checked: {fact}")
    print(f"upheld: {found.verdict}, {', '.join(found.named) or 'nobody is accused'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
