"""Arrays and their names: frames, people, skeletons, cameras, sequences, rotations, filters."""
