"""A shared model on record: its folder, how it is made, what it is asked, and how its copies are read.

from zktrace.releases import OpenRelease, make_release
"""

from zktrace.releases.folder import ReleaseFolder
from zktrace.releases.making import make_release
from zktrace.releases.opened import OpenRelease

__all__ = ["OpenRelease", "ReleaseFolder", "make_release"]
