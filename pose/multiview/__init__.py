"""Several uncalibrated, unsynchronised cameras that film the same people: offsets, identities, cameras and joint 3D."""
