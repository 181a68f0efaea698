"""Bound on the people of formats whose memory or time grows with each person (glb, html, rrd)."""

from pose.export.tracks import Recording

MOST_PEOPLE = 1000  # of a file: those in the most frames


def seen_most(recording: Recording, people: list[int]) -> tuple[list[int], list[str]]:
    """At most `MOST_PEOPLE` of them, in the same order, and a note if some are omitted."""
    if len(people) <= MOST_PEOPLE:
        return people, []
    frames = {person: len(recording.rows_of(person)) for person in people}
    most = set(sorted(people, key=lambda person: -frames[person])[:MOST_PEOPLE])
    shown = [person for person in people if person in most]
    return shown, [f"the {len(shown)} of {len(people)} people in the most frames; --person chooses others"]
