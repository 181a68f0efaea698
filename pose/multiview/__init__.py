"""Fusion of several uncalibrated, unsynchronised cameras that film the same people.

The package estimates time offsets, identities, camera parameters and fused 3D poses."""
