"""`--demo`: a short clip from the package index, fetched once and verified by its hash."""

from pose.utils.progress import hidden_progress

FOLDER = "demo"  # folder of the results of `pose-run --demo` in the working directory


def demo_clip(*, quiet: bool = False) -> str:
    """Return the path of the demo clip, and fetch the clip if it is not on this machine."""
    from pose.networks.weights import locate
    from pose.networks.weights.catalogue import DEMO_CLIP

    with hidden_progress(quiet):
        return str(locate(DEMO_CLIP.name))
