"""A model behind HTTP is asked, traced by its scores and judged, with the page's own commands and code."""

import json
import re
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from dispatch.small import code_of, operator
from fixed_directions import fixed_directions
from zktrace.cli.app import run
from zktrace.models import model_digest, open_model
from zktrace.readouts.outputs import draw_queries
from zktrace.readouts.samples import Pool
from zktrace.readouts.scores import output_frames, scattered
from zktrace.readouts.views import in_views, mean_view
from zktrace.registry.custody import CodeShape
from zktrace.registry.readouts import readout_bytes, readout_digest
from zktrace.registry.records import Layout, ReleaseRecord
from zktrace.registry.workspace import Home
from zktrace.releases import OpenRelease, ReleaseFolder

PAGE = Path(__file__).parents[2] / "docs" / "queries.md"
LENGTH, CLASSES = 256, 4
SHAPES = (CodeShape(carrier="output", colluders=2),)


def reference(images: np.ndarray) -> np.ndarray:
    """The shared model: some fixed function of an image."""
    return np.asarray(
        images.reshape(len(images), -1) @ np.random.default_rng(0).standard_normal((48, CLASSES))
    )


__all__ = ["fixed_directions"]  # for all tests here


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A release with the output carrier, made without torch."""
    place = operator(tmp_path / "op", "alpha", "beta", "gamma", shapes=SHAPES)
    rng = np.random.default_rng(1)
    images = rng.standard_normal((400, 3, 4, 4)).astype(np.float32)
    pool = Pool(images=images, labels=np.arange(400) % CLASSES, episodes={}, note="")
    queries = draw_queries(pool, LENGTH, place.custody.probe_stream("output", 0))
    folder = ReleaseFolder(path=place.release_folder("r1"))
    folder.path.mkdir(parents=True)
    folder.save_pool(pool)
    folder.save_probes("output", queries)
    scores = mean_view(reference(in_views(queries["probes"]))).reshape(-1)
    folder.reference_path("output").write_bytes(readout_bytes(scores))
    layout = Layout(
        carrier="output",
        profile="informed",
        length=LENGTH,
        law="tardos",
        dimension=CLASSES,
        layers=(),
        deviations=b"",
        reference=readout_digest(scores),
        probes=model_digest(open_model(folder.probes_path("output"))),
        frozen=False,
    )
    root = place.registry.ledger().root
    place.registry.add(ReleaseRecord(name="r1", number=0, root=root, model=bytes(32), layouts=(layout,)))
    monkeypatch.chdir(place.root)
    return place


def leaked(place: Home, images: np.ndarray, row: int) -> np.ndarray:
    """A copy of station `row`: the shared model's scores, moved where an image is a probe."""
    layout = place.registry.ledger().release("r1").layouts[0]
    probes = ReleaseFolder(path=place.release_folder("r1")).probes(layout)["probes"]  # type: ignore[index]
    views = in_views(probes)
    where = {each.tobytes(): at % len(probes) for at, each in enumerate(views)}
    bits = np.unpackbits(code_of(place, "output").rows([row])[0])
    frames = output_frames(OpenRelease.of(place, "r1").terms("output").seed, mean_view(reference(views)))
    signs = scattered(2.0 * bits - 1, frames.shape[1])
    scores = 2.0 * reference(images)
    for i, image in enumerate(images):
        at = where.get(image.tobytes())
        if at is not None:
            scores[i] += 2.0 * signs[at] @ frames[at]
    return scores


@contextmanager
def endpoint(place: Home, row: int) -> Iterator[str]:
    class Answering(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            images = np.array(body["inputs"], dtype=np.float32)
            data = json.dumps({"scores": leaked(place, images, row).tolist()}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_queried_model_is_traced_and_judged(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    export = ["probes", "export", "--decoys", "100", "--out", "queries.npz", "--order", "order.key", "--json"]
    assert run(export) == 0
    assert json.loads(capsys.readouterr().out)["queries"] == 4 * (LENGTH + 100)
    assert stat.S_IMODE(Path("order.key").stat().st_mode) == 0o600
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    with endpoint(home, 1) as url:
        exec(code, {"URL": url})  # noqa: S102
    assert run(["probes", "collect", "answers.npz", "--order", "order.key", "--out", "scores.npz"]) == 0
    capsys.readouterr()
    assert run(["trace", "--scores", "scores.npz", "--out", "case.zkt.json", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert [each["station"] for each in facts["named"]] == ["beta"]
    assert [each["alignment"] for each in facts["looks"]] == ["identity"]
    head = home.registry.head().to_text()
    Path("policy.toml").write_text("accept_weak_credentials = true\n")  # the stations' keys are for tests
    asked = ["judge", "case.zkt.json", "--head", head, "--policy", "policy.toml", "--scores"]
    assert run([*asked, "scores.npz", "--json"]) == 0
    steps = json.loads(capsys.readouterr().out)["steps"]
    assert any("256 values of the suspect read again" in fact for fact in steps[4]["checked"])
    scores = np.load("scores.npz")["scores"]
    np.savez("other.npz", scores=scores + 0.01 * np.arange(CLASSES) ** 2)
    assert run([*asked, "other.npz"]) == 1
    assert "step 5" in capsys.readouterr().err


def test_labels_alone_name_nobody(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    layout = home.registry.ledger().release("r1").layouts[0]
    probes = ReleaseFolder(path=home.release_folder("r1")).probes(layout)["probes"]  # type: ignore[index]
    answers = leaked(home, probes, 1)
    one_hot = (answers == answers.max(axis=1, keepdims=True)).astype(np.float64)
    np.savez("scores.npz", scores=one_hot)
    assert run(["trace", "--scores", "scores.npz"]) in (3, 4)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["trace"], "name the suspect's file"),
        (["trace", "x.safetensors", "--scores", "scores.npz"], "give --scores, one of them"),
        (["trace", "--scores", "scores.npz", "--carrier", "weight"], "output carrier alone"),
        (["trace", "--scores", "scores.npz"], "the release has 256 probes and 4 classes"),
        (["trace", "--scores", "none.npz"], "none.npz"),
        (["probes", "collect", "scores.npz", "--order", "scores.npz", "--out", "o.npz"], "order"),
        (["probes", "export", "--decoys", "9999", "--out", "q.npz", "--order", "o.key"], "no probes"),
    ],
)
def test_bad_input_is_one_line(
    home: Home, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    np.savez("scores.npz", scores=np.random.default_rng(0).standard_normal((5, 4)))
    assert run(arguments) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1
    assert home.registry.ledger().spent == 0
    assert not Path("o.key").exists()
