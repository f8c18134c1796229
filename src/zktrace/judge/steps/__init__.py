"""Steps 2 to 9 of the judge's protocol, one file each (`zktrace.judge.protocol` has them all in order)."""
