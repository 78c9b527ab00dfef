"""`SummaryWriter`: what a training run has to show, in files that TensorBoard reads.

The files are written without the package `tensorboard`, which shows them: records as TFRecord has them, each an `Event` of TensorFlow's protocol
buffers.
"""

from __future__ import annotations

import os
import socket
import struct
import threading
import time
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from argand.utils.tensorboard import plugins
from argand.utils.tensorboard.messages import (
    array,
    double,
    doubles,
    float32,
    integer,
    message,
    number,
    summary_metadata,
    tensor,
)
from argand.utils.tensorboard.model_graph import graph_of

__all__ = ["FileWriter", "SummaryWriter"]


def _crc_table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


_CRC_TABLE = _crc_table()


def _masked_crc(data: bytes) -> int:
    """CRC-32C, rotated and offset as the format wants it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _CRC_TABLE[(crc ^ byte) & 255]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


# Values of a summary ----------------------------------------------------------------------------


def _default_bins() -> Any:
    """Borders that grow by a tenth from 1e-12 to 1e20, to both sides of 0."""
    count = int(np.ceil(np.log(1e32) / np.log(1.1)))
    positive = 1e-12 * 1.1 ** np.arange(count)
    return np.concatenate([-positive[::-1], [0.0], positive])


def _histogram(values: Any, bins: Any, max_bins: int | None) -> bytes:
    flat = array(values).astype(np.float64).reshape(-1)
    if flat.size == 0:
        raise ValueError("SummaryWriter.add_histogram: got no values, expected at least one")
    borders = _default_bins() if isinstance(bins, str) and bins == "tensorflow" else bins
    counts, limits = np.histogram(flat, bins=borders)
    if max_bins is not None and len(counts) > max_bins:
        step = -(-len(counts) // max_bins)
        counts = np.add.reduceat(counts, np.arange(0, len(counts), step))
        limits = np.concatenate([limits[:-1:step], limits[-1:]])
    filled = np.nonzero(counts)[0]
    first, last = (filled[0], filled[-1] + 1) if len(filled) else (0, 1)
    # A limit ends its bucket; an empty one goes first, so that the next has a beginning.
    totals = np.concatenate([[0], counts[first:last]])
    return b"".join(
        (
            double(1, flat.min()),
            double(2, flat.max()),
            double(3, flat.size),
            double(4, flat.sum()),
            double(5, flat @ flat),
            doubles(6, limits[first : last + 1]),
            doubles(7, totals),
        )
    )


def _picture(pixels: Any, dataformats: str) -> bytes:
    """Pixels as an image's message."""
    height, width, channels, png = _png(pixels, dataformats)
    return integer(1, height) + integer(2, width) + integer(3, channels) + message(4, png)


def _png(pixels: Any, dataformats: str) -> tuple[int, int, int, bytes]:
    """Height, width, channels and the file: floats from 0 to 1, integers to 255."""
    found = array(pixels)
    if len(dataformats) != found.ndim or set(dataformats) not in ({*"CHW"}, {*"HW"}):
        raise ValueError(
            f"SummaryWriter.add_image: got an image of shape {list(found.shape)}, expected dimensions {dataformats!r}"
        )
    if "C" not in dataformats:
        found, dataformats = found[None], "C" + dataformats
    found = found.transpose([dataformats.index(d) for d in "HWC"])
    if found.dtype != np.uint8:
        scale = 255 if found.dtype.kind == "f" else 1
        found = (found * scale).clip(0, 255).astype(np.uint8)
    height, width, channels = found.shape
    kinds = {1: 0, 3: 2, 4: 6}
    if channels not in kinds:
        raise ValueError(f"SummaryWriter.add_image: got {channels} channels, expected 1, 3 or 4")

    def chunk(name: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        )

    rows = np.concatenate(
        [np.zeros((height, 1), np.uint8), found.reshape(height, width * channels)], axis=1
    )
    header = struct.pack(">IIBBBBB", width, height, 8, kinds[channels], 0, 0, 0)
    png = (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows.tobytes()))
        + chunk(b"IEND", b"")
    )
    return height, width, channels, png


class _EventFile:
    """Events, one after the other, in a file of their own."""

    _numbers = iter(range(1 << 62))

    def __init__(self, folder: Path, suffix: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        name = f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}.{os.getpid()}.{next(self._numbers)}{suffix}"
        self._file = (folder / name).open("ab")
        self._lock = threading.Lock()
        self.write(double(1, time.time()) + message(3, "brain.Event:2"))

    def write(self, event: bytes) -> None:
        length = struct.pack("<Q", len(event))
        crcs = [struct.pack("<I", _masked_crc(part)) for part in (length, event)]
        with self._lock:
            self._file.write(length + crcs[0] + event + crcs[1])

    def flush(self) -> None:
        with self._lock:
            self._file.flush()

    def close(self) -> None:
        with self._lock:
            self._file.close()


class FileWriter:
    """The events of a `SummaryWriter`, without tags: what programs add that make their summaries themselves."""

    def __init__(self, writer: SummaryWriter) -> None:
        self._writer = writer

    def get_logdir(self) -> str:
        """The folder."""
        return self._writer.log_dir

    def add_summary(
        self, summary: bytes, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """Add what a function of `argand.utils.tensorboard.summary` made."""
        self._writer._write(message(5, summary), global_step, walltime)

    def flush(self) -> None:
        """Hand what was written to the system."""
        self._writer.flush()

    def close(self) -> None:
        """Close the files."""
        self._writer.close()


class SummaryWriter:
    """Writes what TensorBoard shows to a file in a folder; also a context manager.

    Args:
        log_dir: the folder; by default one below `runs`, named by the time, the machine and `comment`.
        comment: the end of that name.
        purge_step: what a run that broke off wrote from this step on is not shown.
        max_queue: accepted; events are written as they are added.
        flush_secs: after how many seconds what was written is handed to the system, at the next event.
        filename_suffix: the end of the file's name.
    """

    def __init__(
        self,
        log_dir: str | os.PathLike[str] | None = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: int = 120,
        filename_suffix: str = "",
    ) -> None:
        if not log_dir:
            moment = time.strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{moment}_{socket.gethostname()}{comment}")
        self.log_dir = os.fspath(log_dir)
        self.filename_suffix, self.flush_secs = filename_suffix, flush_secs
        self._files: dict[str, _EventFile] = {}
        self._flushed = time.monotonic()
        file = self._file("")
        if purge_step is not None:
            start = integer(1, 1)  # a session begins
            file.write(double(1, time.time()) + integer(2, purge_step) + message(7, start))

    def _file(self, part: str) -> _EventFile:
        if part not in self._files:
            self._files[part] = _EventFile(Path(self.log_dir, part), self.filename_suffix)
        return self._files[part]

    def _add(
        self, tag: str, value: bytes, step: int | None, walltime: float | None, part: str = ""
    ) -> None:
        self._write(message(5, message(1, message(1, tag) + value)), step, walltime, part)

    def _write(
        self, content: bytes, step: int | None, walltime: float | None, part: str = ""
    ) -> None:
        event = double(1, time.time() if walltime is None else walltime)
        if step is not None:
            event += integer(2, int(step))
        self._file(part).write(event + content)
        if time.monotonic() - self._flushed > self.flush_secs:
            self.flush()

    @property
    def file_writer(self) -> FileWriter:
        """What writes the events."""
        return FileWriter(self)

    def _get_file_writer(self) -> FileWriter:
        return self.file_writer

    def get_logdir(self) -> str:
        """The folder."""
        return self.log_dir

    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        """Add a number.

        Args:
            tag: the name of the curve; a part before "/" groups curves.
            scalar_value: a number, or a tensor or array of one.
            global_step: where it lies on the curve.
            walltime: seconds since 1970; None is now.
            new_style, double_precision: accepted; numbers are written with 32 bits.
        """
        self._add(tag, float32(2, number(scalar_value)), global_step, walltime)

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: Mapping[str, Any],
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Add numbers of several curves of one picture, each as a run of its own in a folder below."""
        for tag, value in tag_scalar_dict.items():
            part = f"{main_tag}_{tag}".replace("/", "_")
            self._add(main_tag, float32(2, number(value)), global_step, walltime, part)

    def add_histogram(
        self,
        tag: str,
        values: Any,
        global_step: int | None = None,
        bins: Any = "tensorflow",
        walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:
        """Add the distribution of values.

        Args:
            values: a tensor or array.
            bins: "tensorflow" (borders that grow by a tenth), or what `numpy.histogram` takes.
            max_bins: more are put together.

        Raises:
            ValueError: there are no values.
        """
        self._add(tag, message(5, _histogram(values, bins, max_bins)), global_step, walltime)

    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """Add a picture.

        Args:
            img_tensor: floats from 0 to 1, or integers to 255, with 1, 3 or 4 channels.
            dataformats: its dimensions: "CHW", "HWC" or "HW".

        Raises:
            ValueError: it has others.
        """
        self._add(tag, message(4, _picture(img_tensor, dataformats)), global_step, walltime)

    def add_images(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:
        """Add a batch of pictures beside each other; see `add_image`."""
        found = array(img_tensor)
        if dataformats not in ("NCHW", "NHWC") or found.ndim != 4:
            raise ValueError(
                f"SummaryWriter.add_images: got a shape of {list(found.shape)} as {dataformats!r}, expected NCHW or NHWC"
            )
        row = np.concatenate(list(found), axis=dataformats.index("W") - 1)
        self.add_image(tag, row, global_step, walltime, dataformats[1:])

    def add_figure(
        self,
        tag: str,
        figure: Any,
        global_step: int | None = None,
        close: bool = True,
        walltime: float | None = None,
    ) -> None:
        """Add a figure of Matplotlib's as a picture; with `close` it is closed."""
        from matplotlib import pyplot
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        self.add_image(tag, np.asarray(canvas.buffer_rgba()), global_step, walltime, "HWC")
        if close:
            pyplot.close(figure)

    def add_text(
        self,
        tag: str,
        text_string: str,
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Add a text in Markdown."""
        self._add(
            f"{tag}/text_summary",
            message(8, tensor([text_string])) + summary_metadata("text"),
            global_step,
            walltime,
        )

    def add_audio(
        self,
        tag: str,
        snd_tensor: Any,
        global_step: int | None = None,
        sample_rate: int = 44100,
        walltime: float | None = None,
    ) -> None:
        """Add a sound of one channel.

        Args:
            snd_tensor: numbers from -1 to 1, `(1, length)`; those beyond are cut.
            sample_rate: a second has so many of them.
        """
        self._add(tag, plugins.audio(snd_tensor, sample_rate), global_step, walltime)

    def add_pr_curve(
        self,
        tag: str,
        labels: Any,
        predictions: Any,
        global_step: int | None = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Add a curve of precision over recall.

        Args:
            labels: 0 or 1, or bool.
            predictions: probabilities that they are 1.
            num_thresholds: so many points, 127 at most.
            weights: of the predictions.
        """
        counts = plugins.curve(labels, predictions, min(num_thresholds, 127), weights)
        self._add(tag, plugins.pr_curve(counts), global_step, walltime)

    def add_pr_curve_raw(
        self,
        tag: str,
        true_positive_counts: Any,
        false_positive_counts: Any,
        true_negative_counts: Any,
        false_negative_counts: Any,
        precision: Any,
        recall: Any,
        global_step: int | None = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Add a curve of precision over recall by what is counted at every threshold."""
        rows = (
            true_positive_counts, false_positive_counts, true_negative_counts,
            false_negative_counts, precision, recall,
        )  # fmt: skip
        counts = np.stack([array(row) for row in rows])[:, : min(num_thresholds, 127)]
        self._add(tag, plugins.pr_curve(counts), global_step, walltime)

    def add_mesh(
        self,
        tag: str,
        vertices: Any,
        colors: Any = None,
        faces: Any = None,
        config_dict: Mapping[str, Any] | None = None,
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Add clouds of points, or surfaces.

        Args:
            vertices: `(batch, points, 3)`.
            colors: of every point, `(batch, points, 3)`, 0 to 255.
            faces: three points of every triangle, `(batch, triangles, 3)`.
            config_dict: how it is shown: "camera", "material" and "lights" of THREE.js.
        """
        for name, value in plugins.mesh(tag, vertices, colors, faces, config_dict):
            self._add(name, value, global_step, walltime)

    def add_custom_scalars(self, layout: Mapping[str, Any]) -> None:
        """Say which curves share a chart.

        Args:
            layout: by category the charts, by title: `["Multiline", tags]`, or `["Margin", [tag, lower, upper]]`.
        """
        self._add("custom_scalars__config__", plugins.custom_scalars(layout), None, None)

    def add_custom_scalars_multilinechart(
        self, tags: Sequence[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Say that these curves share a chart."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(
        self, tags: Sequence[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Say that a curve and its lower and upper bounds share a chart."""
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    def add_hparams(
        self,
        hparam_dict: Mapping[str, Any],
        metric_dict: Mapping[str, Any],
        hparam_domain_discrete: Mapping[str, Any] | None = None,
        run_name: str | None = None,
        global_step: int | None = None,
    ) -> None:
        """Add what a run was set to and what came of it, as a run of its own in a folder below.

        Args:
            hparam_dict: bools, texts and numbers by name; None is left out.
            metric_dict: numbers by name.
            hparam_domain_discrete: the values that a setting may have.
            run_name: the folder; by default the time.

        Raises:
            TypeError: they are no dicts.
            ValueError: a setting is something else.
        """
        if type(hparam_dict) is not dict or type(metric_dict) is not dict:
            raise TypeError("hparam_dict and metric_dict should be dictionary.")
        values = plugins.hparams(hparam_dict, metric_dict, hparam_domain_discrete)
        part = str(time.time()) if run_name is None else run_name
        for tag, value in values:
            self._add(tag, value, global_step, None, part)
        for name, metric in metric_dict.items():
            self._add(name, float32(2, number(metric)), global_step, None, part)
        self._files.pop(part).close()

    def add_embedding(
        self,
        mat: Any,
        metadata: Any = None,
        label_img: Any = None,
        global_step: int | None = None,
        tag: str = "default",
        metadata_header: Any = None,
    ) -> None:
        """Add points, which the projector shows in two or three dimensions.

        Args:
            mat: a row a point.
            metadata: a label a point; with a header a row of labels.
            label_img: a picture a point, `(points, channels, height, width)`.
            metadata_header: names of several labels.

        Raises:
            ValueError: there are not as many labels or pictures as points.
        """
        pictures = None
        if label_img is not None:
            pictures = _png(plugins.sprite(array(label_img)), "CHW")[3]
        plugins.write_embedding(
            Path(self.log_dir), array(mat), metadata, metadata_header, pictures,
            array(label_img).shape if label_img is not None else (), global_step, tag,
        )  # fmt: skip

    def add_graph(
        self,
        model: Any,
        input_to_model: Any = None,
        verbose: bool = False,
        use_strict_trace: bool = True,
    ) -> None:
        """Add a model as the operators that a run of it calls, grouped by modules.

        Args:
            input_to_model: a tensor, or a tuple of what `model` is called with.
            verbose: print the operators.
            use_strict_trace: accepted.
        """
        self._write(message(4, graph_of(model, input_to_model, verbose)), None, None)

    def flush(self) -> None:
        """Hand what was written to the system."""
        self._flushed = time.monotonic()
        for file in self._files.values():
            file.flush()

    def close(self) -> None:
        """Close the files; what is added later begins new ones."""
        while self._files:
            self._files.popitem()[1].close()

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
