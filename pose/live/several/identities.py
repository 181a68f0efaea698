"""Assignment of the tracks of several live cameras to people, while tracks begin and end."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pose.multiview.identities import compare_tracks, find_people
from pose.multiview.types import ViewCamera, ViewTrack

Key = tuple[int, int]  # camera index, track id in this camera


@dataclass(slots=True)
class TrackAssignment:
    """Assignment of tracks (camera index, track id) to people."""

    # Tracks of two cameras match if they show the same person. A match lasts as long as both tracks, unless their
    # motions contradict each other. If the matches of other people confirm both cameras, it is an id switch, and the
    # match ends. If no match of a camera is confirmed, the camera may have been moved; `contradicted` contains it.

    people: dict[Key, int] = field(default_factory=dict)  # person id of each track, by (camera index, track id)
    contradicted: frozenset[int] = frozenset()
    next: int = 1  # id that the next new person gets

    def tracks_of(self, person: int) -> list[Key]:
        """Return the tracks of a person, as pairs of camera index and track id."""
        return [key for key, number in self.people.items() if number == person]

    def updated(self, tracks: Sequence[ViewTrack], cameras: Mapping[int, ViewCamera]) -> "TrackAssignment":
        """Return a copy that assigns the given tracks and no others. Known people keep their ids."""
        new = TrackAssignment(dict(self.people), self.contradicted, self.next)
        new._match(tracks, cameras)
        return new

    def _match(self, tracks: Sequence[ViewTrack], cameras: Mapping[int, ViewCamera]) -> None:
        """Update this object, see `updated`."""
        views = [cameras.get(index, next(iter(cameras.values()))) for index in range(max(cameras) + 1)]
        keys = [(track.camera, track.number) for track in tracks]
        self.people = {key: person for key, person in self.people.items() if key in keys}
        self._check(dict(zip(keys, tracks, strict=True)), cameras)
        for rows in find_people(tracks, views):
            self._join([keys[row] for row in rows])

    def _check(self, tracks: Mapping[Key, ViewTrack], cameras: Mapping[int, ViewCamera]) -> None:
        """End contradicted matches between confirmed cameras, and find the contradicted cameras."""
        good: set[int] = set()
        bad: list[tuple[Key, Key]] = []
        for key, other_key in self._matches():
            agreement = compare_tracks(tracks[key], tracks[other_key], cameras[key[0]], cameras[other_key[0]])
            if agreement is None:
                continue
            if agreement.cost < float("inf"):
                good |= {key[0], other_key[0]}
            else:
                bad.append((key, other_key))
        self.contradicted = frozenset(camera for pair in bad for camera, _ in pair) - good
        for key, other_key in bad:
            if key[0] in good and other_key[0] in good:
                self.people.pop(other_key, None)

    def _matches(self) -> list[tuple[Key, Key]]:
        """Return all pairs of tracks in different cameras that belong to the same person."""
        keys = sorted(self.people)
        return [
            (earlier, later)
            for count, later in enumerate(keys)
            for earlier in keys[:count]
            if earlier[0] != later[0] and self.people[earlier] == self.people[later]
        ]

    def _join(self, keys: Sequence[Key]) -> None:
        """Give the tracks of one person the most frequent id among them, or a new id."""
        known = [self.people[key] for key in keys if key in self.people]
        person = max(set(known), key=lambda number: (known.count(number), -number), default=0)
        if not person:
            person, self.next = self.next, self.next + 1
        confirmed = len({camera for camera, _ in keys}) > 1
        for key in keys:
            if confirmed or key not in self.people:
                self.people[key] = person
        if confirmed:  # other tracks with this id in the same cameras belong to other people
            seen = {camera for camera, _ in keys}
            for key in self.tracks_of(person):
                if key[0] in seen and key not in keys:
                    del self.people[key]
