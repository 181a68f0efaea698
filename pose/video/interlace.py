"""Deinterlacing of frames.

The two fields of an interlaced frame are recorded at different times, so the edges of fast limbs look like combs.
FFmpeg's `bwdif` filter interpolates the rows of the second field. Progressive frames are unchanged.
"""

from collections.abc import Iterator
from fractions import Fraction

import av

FILTER = "mode=send_frame:deint=interlaced"  # one output frame per input frame; changes only interlaced frames


def deinterlaced(frames: Iterator[av.VideoFrame], time_base: Fraction) -> Iterator[av.VideoFrame]:
    """Yield all frames, interlaced ones deinterlaced, with their time stamps."""
    graph: av.filter.Graph | None = None
    shape: tuple[object, ...] = ()
    for frame in frames:
        seen = (frame.width, frame.height, frame.format.name)
        if graph is not None and shape != seen:
            yield from _filtered(graph, None, time_base)
            graph = None
        if graph is None and frame.interlaced_frame:
            graph, shape = _graph(frame, time_base), seen
        if graph is None:
            yield frame
        else:
            yield from _filtered(graph, frame, time_base)
    if graph is not None:
        yield from _filtered(graph, None, time_base)


def _graph(frame: av.VideoFrame, time_base: Fraction) -> av.filter.Graph:
    graph = av.filter.Graph()
    source = graph.add_buffer(width=frame.width, height=frame.height, format=frame.format, time_base=time_base)
    graph.link_nodes(source, graph.add("bwdif", FILTER), graph.add("buffersink")).configure()
    return graph


def _filtered(graph: av.filter.Graph, frame: av.VideoFrame | None, time_base: Fraction) -> Iterator[av.VideoFrame]:
    """Send a frame to the filter, and yield the frames that are ready. A frame of None ends the stream."""
    graph.vpush(frame)
    while True:
        try:
            picture = graph.vpull()
        except (av.BlockingIOError, av.EOFError):
            return
        if picture.pts is not None and picture.time_base is not None:
            picture.pts = round(picture.pts * picture.time_base / time_base)
        yield picture
