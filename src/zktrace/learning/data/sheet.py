"""Contact sheets: a row a class, so that a person can look at the data. Needs Pillow."""

import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from zktrace.errors import InputError, MissingExtra
from zktrace.learning.data.dataset import Dataset
from zktrace.learning.data.gnss.render import CEILING_DB, FLOOR_DB
from zktrace.learning.data.gnss.settings import GnssConfig
from zktrace.learning.data.gnss.simulator import CLASS_NAMES, Simulator
from zktrace.learning.data.gnss_dataset import NOTE

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont, ImageFont

Pixels = NDArray[np.uint8]  # [height, width, 3]

MOST_PER_CLASS: Final = 50
_MARGIN: Final = 24
_GAP: Final = 10
_LABEL_WIDTH: Final = 130
_CAPTION: Final = 20
_INK, _FAINT, _PAPER = (24, 28, 36), (98, 106, 120), (255, 255, 255)
_DARK_TO_BRIGHT: Final = np.array(  # perceptually even, readable without colour vision
    [
        [0, 0, 4],
        [31, 12, 72],
        [85, 15, 109],
        [136, 34, 106],
        [186, 54, 85],
        [227, 89, 51],
        [249, 140, 10],
        [249, 201, 50],
        [252, 255, 164],
    ],
    np.float64,
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tile:
    """One sample."""

    pixels: Pixels
    caption: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sheet:
    """A page of tiles."""

    title: str
    subtitle: str
    rows: Sequence[tuple[str, Sequence[Tile]]]  # class name, samples
    footer: str = ""
    scale: Sequence[str] = field(default=())  # captions along a colour bar, dark to bright

    def png(self) -> bytes:
        """The page as a PNG file."""
        buffer = io.BytesIO()
        image_module = _pillow()
        from PIL.PngImagePlugin import PngInfo  # noqa: PLC0415

        about = PngInfo()
        about.add_text("Title", self.title)
        about.add_text("Description", self.subtitle)
        page = image_module.new("RGB", self._size(), _PAPER)
        self._draw(page)
        page.save(buffer, "PNG", pnginfo=about)
        return buffer.getvalue()

    def _tile_size(self) -> tuple[int, int]:
        height, width = self.rows[0][1][0].pixels.shape[:2]
        return width, height

    def _size(self) -> tuple[int, int]:
        width, height = self._tile_size()
        columns = max(len(tiles) for _, tiles in self.rows)
        across = 2 * _MARGIN + _LABEL_WIDTH + columns * (width + _GAP) - _GAP
        down = 118 + len(self.rows) * (height + _CAPTION + _GAP) + 56
        return max(across, 760), down

    def _draw(self, page: "Image") -> None:
        from PIL import ImageDraw  # noqa: PLC0415

        pen = ImageDraw.Draw(page)
        pen.text((_MARGIN, 22), self.title, fill=_INK, font=_font(28))
        pen.text((_MARGIN, 64), self.subtitle, fill=_FAINT, font=_font(15))
        width, height = self._tile_size()
        top = 104
        for name, tiles in self.rows:
            pen.text((_MARGIN, top + height // 2 - 10), name, fill=_INK, font=_font(18))
            for column, tile in enumerate(tiles):
                left = _MARGIN + _LABEL_WIDTH + column * (width + _GAP)
                page.paste(_pillow().fromarray(tile.pixels), (left, top))
                pen.text((left, top + height + 3), tile.caption, fill=_FAINT, font=_font(12))
            top += height + _CAPTION + _GAP
        pen.text((_MARGIN, top + 14), self.footer, fill=_FAINT, font=_font(13))
        if self.scale:
            self._colour_bar(page, pen, top + 8)

    def _colour_bar(self, page: "Image", pen: "ImageDraw", top: int) -> None:
        length, right = 200, page.size[0] - _MARGIN
        bar = np.repeat(coloured(np.linspace(0, 1, length))[None], 12, axis=0)
        page.paste(_pillow().fromarray(bar), (right - length, top))
        for place, text in enumerate(self.scale):
            share = place / max(len(self.scale) - 1, 1)
            anchor = "lmr"[round(2 * share)] + "a"
            pen.text((right - length + share * length, top + 16), text, _FAINT, _font(12), anchor)


def gnss_sheet(*, seed: int, per_class: int, config: GnssConfig, stations: int = 10) -> Sheet:
    """Simulated samples of each class, weak to strong; a tile shows the four elements as they stand."""
    _check(per_class)
    simulator = Simulator(seed=seed, config=config, stations=stations)
    rows = []
    for label, name in enumerate(CLASS_NAMES):
        numbers = np.arange(per_class) + label * per_class
        made = simulator.samples(numbers, label, numbers % stations)
        tiles = [
            Tile(
                pixels=mosaic(made.images[place]),
                caption=f"JNR {made.jnr_db[place]:.0f} dB, station {made.stations[place]}",
            )
            for place in np.argsort(made.jnr_db)
        ]
        rows.append((name, tiles))
    return Sheet(
        title=f"{NOTE[0].upper()}{NOTE[1:]}",
        subtitle=f"{config.title}; seed {seed}",
        rows=rows,
        footer="2 x 2 array elements; time to the right (10.24 us), frequency upwards (+-50 MHz)",
        scale=(f"{FLOOR_DB:g} dB", "over nominal noise", f"{CEILING_DB:g} dB"),
    )


def dataset_sheet(dataset: Dataset, *, seed: int, per_class: int) -> Sheet:
    """Random samples of each class that has any."""
    _check(per_class)
    rng = np.random.default_rng(seed)
    rows = []
    for label, name in enumerate(dataset.class_names):
        members = np.flatnonzero(dataset.labels == label)
        chosen = rng.permutation(members)[:per_class]
        tiles = [Tile(pixels=_picture(dataset, int(index)), caption=f"#{index}") for index in chosen]
        if tiles:
            rows.append((name, tiles))
    return Sheet(title=dataset.note, subtitle=f"{len(dataset)} images; seed {seed}", rows=rows)


def coloured(values: NDArray[np.floating]) -> Pixels:
    """0..1 to colours from dark to bright."""
    place = np.clip(values, 0, 1) * (len(_DARK_TO_BRIGHT) - 1)
    low = np.minimum(place.astype(np.int64), len(_DARK_TO_BRIGHT) - 2)
    part = (place - low)[..., None]
    mixed = (1 - part) * _DARK_TO_BRIGHT[low] + part * _DARK_TO_BRIGHT[low + 1]
    colours: Pixels = np.rint(mixed).astype(np.uint8)
    return colours


def enlarged(pixels: Pixels, times: int) -> Pixels:
    """Every pixel a square."""
    return np.repeat(np.repeat(pixels, times, axis=0), times, axis=1)


def mosaic(image: NDArray[np.float32], times: int = 2) -> Pixels:
    """Four elements [4, frequency, time] as a 2 x 2 picture with low frequencies at the bottom."""
    four = [enlarged(coloured(element[::-1]), times) for element in image]
    gap = np.full((four[0].shape[0], 2, 3), 255, np.uint8)
    upper, lower = (np.hstack((four[i], gap, four[i + 2])) for i in (1, 0))  # y upwards, x to the right
    return np.vstack((upper, np.full((2, upper.shape[1], 3), 255, np.uint8), lower))


def _picture(dataset: Dataset, index: int) -> Pixels:
    image = dataset.images[index]
    if image.dtype == np.uint8:
        return enlarged(np.ascontiguousarray(image.transpose(1, 2, 0)).astype(np.uint8), 3)
    return mosaic(np.asarray(image, np.float32))


def _check(per_class: int) -> None:
    if not 1 <= per_class <= MOST_PER_CLASS:
        raise InputError(f"{per_class} samples a class: a sheet holds 1..{MOST_PER_CLASS}")


def _pillow() -> ModuleType:
    try:
        from PIL import Image  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtra("PIL") from error
    return Image


def _font(size: int) -> "FreeTypeFont | ImageFont":
    from PIL.ImageFont import load_default  # noqa: PLC0415

    return load_default(size)
