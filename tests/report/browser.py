"""A headless Chromium on the DevTools pipe: what it loads, what it complains of, how wide a page gets."""

import base64
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# the protocol's descriptors: 3 is read by the browser, 4 written
_START = """
import fcntl, os, sys
copies = [fcntl.fcntl(int(word), fcntl.F_DUPFD_CLOEXEC, 10) for word in sys.argv[1:3]]
os.dup2(copies[0], 3)
os.dup2(copies[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
_CUT = """[...document.querySelectorAll("main *")].filter(
  each => getComputedStyle(each).overflowX != "visible" && each.scrollWidth > each.clientWidth + 1
).map(each => each.className || each.tagName).join(" ")"""
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome", "headless_shell")


def executable() -> str | None:
    """The browser of this machine."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


@dataclass
class Seen:
    """What a page did while it was open."""

    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    width: int = 0  # of the content
    cut: list[str] = field(default_factory=list)  # elements whose content is wider than they are
    screenshot: bytes = b""
    background: str = ""


class Browser:
    """One page, driven by messages that end in a zero byte."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._out, self._in = to_browser, from_browser
        self._buffer, self._number = b"", 0
        self._events: list[dict[str, Any]] = []
        self._session: str | None = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]
            self._events.append(answer)

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            chunk = os.read(self._in, 1 << 20)
            assert chunk, "the browser has ended"
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(line)

    def _wait_for(self, name: str) -> None:
        while not any(event.get("method") == name for event in self._events):
            self._events.append(self._read())

    def visit(
        self, path: Path, *, width: int, scheme: str = "light", media: str = "screen", height: int = 900
    ) -> Seen:
        """Open a file at this width and look around; the screenshot has this height."""
        self._events.clear()
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False
        )
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", media=media, features=features)
        self.call("Page.navigate", url=path.resolve().as_uri())
        self._wait_for("Page.loadEventFired")
        self._value("document.querySelectorAll('details').forEach(each => each.open = true)")
        seen = Seen()
        seen.width = int(self._value("document.documentElement.scrollWidth"))
        seen.cut = self._value(_CUT).split()
        seen.background = str(self._value("getComputedStyle(document.body).backgroundColor"))
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        shot = self.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=height > 900)
        seen.screenshot = base64.b64decode(shot["data"])
        for event in self._events:
            self._file(event, seen)
        return seen

    @staticmethod
    def _file(event: dict[str, Any], seen: Seen) -> None:
        method, found = event.get("method"), event.get("params", {})
        if method == "Network.requestWillBeSent":
            seen.requests.append(found["request"]["url"])
        elif method in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
            seen.complaints.append(json.dumps(found))

    def _value(self, expression: str) -> Any:
        return self.call("Runtime.evaluate", expression=expression)["result"].get("value")


@contextmanager
def headless(program: str, profile: Path) -> Iterator[Browser]:
    """A browser with an empty profile; it is gone when the block ends."""
    ours_out, theirs_in = os.pipe()[::-1]
    ours_in, theirs_out = os.pipe()
    arguments = [
        program,
        "--headless=new",
        "--remote-debugging-pipe",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--disable-extensions",
        "--disable-background-networking",
        f"--user-data-dir={profile}",
    ]

    child = subprocess.Popen(
        [sys.executable, "-S", "-c", _START, str(theirs_in), str(theirs_out), *arguments],
        pass_fds=(theirs_in, theirs_out),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"HOME": str(profile)},
        start_new_session=True,
    )
    os.close(theirs_in)
    os.close(theirs_out)
    try:
        yield Browser(ours_out, ours_in)
    finally:
        os.close(ours_out)
        os.close(ours_in)
        try:
            child.wait(5)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        time.sleep(0.1)  # its helpers end with it; the profile is theirs until then
