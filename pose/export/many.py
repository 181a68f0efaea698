"""Limits on the number of people in formats whose memory or time grows with each person (glb, html, rrd)."""

from pose.body.tracks import Selection

MAX_PEOPLE = 1000  # maximum per file
MAX_CHARACTERS = 100  # maximum per file of skinned meshes, 0.8 MB each


def people_with_most_frames(recording: Selection, people: list[int], max_people: int) -> tuple[list[int], list[str]]:
    """Select at most `max_people` people with the most frames, in their order, and note omitted people."""
    if len(people) <= max_people:
        return people, []
    frames = {person: len(recording.rows_of(person)) for person in people}
    chosen = set(sorted(people, key=lambda person: -frames[person])[:max_people])
    shown = [person for person in people if person in chosen]
    return shown, [f"the {len(shown)} of {len(people)} people in the most frames; --person chooses others"]
