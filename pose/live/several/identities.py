"""Matching of the tracks of several live cameras to people, as tracks begin and end."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pose.multiview.identities import agree, find_people
from pose.multiview.types import ViewCamera, ViewTrack

Key = tuple[int, int]  # camera, id of the track in it


@dataclass(slots=True)
class Identities:
    """The assignment of tracks to people.

    A match stays while both tracks last. It ends early only where another person confirms both cameras: then the tracks
    swapped people. Otherwise the cameras contradict each other and are listed in `contradicted`.

    Attributes:
        people: Person id of each track.
        next: Id of the next person.
        contradicted: Indices of the cameras whose matches were all contradicted in the last update.
    """

    people: dict[Key, int] = field(default_factory=dict)
    contradicted: frozenset[int] = frozenset()
    next: int = 1

    def tracks_of(self, person: int) -> list[Key]:
        """Return the tracks of a person."""
        return [key for key, number in self.people.items() if number == person]

    def updated(self, tracks: Sequence[ViewTrack], cameras: Mapping[int, ViewCamera]) -> "Identities":
        """Match the tracks of the last seconds and return a new object.

        Args:
            tracks: Tracks of calibrated cameras, with the index of their source.
            cameras: Cameras by index of the source.
        """
        new = Identities(dict(self.people), self.contradicted, self.next)
        new._match(tracks, cameras)
        return new

    def _match(self, tracks: Sequence[ViewTrack], cameras: Mapping[int, ViewCamera]) -> None:
        views = [cameras.get(index, next(iter(cameras.values()))) for index in range(max(cameras) + 1)]
        keys = [(track.camera, track.number) for track in tracks]
        self.people = {key: person for key, person in self.people.items() if key in keys}
        self._check(dict(zip(keys, tracks, strict=True)), cameras)
        for rows in find_people(tracks, views):
            self._join([keys[row] for row in rows])

    def _check(self, tracks: Mapping[Key, ViewTrack], cameras: Mapping[int, ViewCamera]) -> None:
        """End the matches that were wrong."""
        good: set[int] = set()
        bad: list[tuple[Key, Key]] = []
        for one, other in self._matches():
            found = agree(tracks[one], tracks[other], cameras[one[0]], cameras[other[0]])
            if found is None:
                continue
            if found.cost < float("inf"):
                good |= {one[0], other[0]}
            else:
                bad.append((one, other))
        self.contradicted = frozenset(camera for pair in bad for camera, _ in pair) - good
        for one, other in bad:
            if one[0] in good and other[0] in good:
                self.people.pop(other, None)

    def _matches(self) -> list[tuple[Key, Key]]:
        """Return the pairs of tracks in two cameras that belong to one person."""
        keys = sorted(self.people)
        return [
            (one, other)
            for place, other in enumerate(keys)
            for one in keys[:place]
            if one[0] != other[0] and self.people[one] == self.people[other]
        ]

    def _join(self, keys: Sequence[Key]) -> None:
        """Give the tracks of one person the id that most of them have."""
        known = [self.people[key] for key in keys if key in self.people]
        person = max(set(known), key=lambda number: (known.count(number), -number), default=0)
        if not person:
            person, self.next = self.next, self.next + 1
        confirmed = len({camera for camera, _ in keys}) > 1
        for key in keys:
            if confirmed or key not in self.people:
                self.people[key] = person
        if confirmed:  # another track of these cameras is another person
            seen = {camera for camera, _ in keys}
            for key in self.tracks_of(person):
                if key[0] in seen and key not in keys:
                    del self.people[key]
