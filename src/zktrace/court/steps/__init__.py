"""Steps 2 to 9 of the judge's protocol, one file each (`zktrace.court.protocol` has them all in order)."""
