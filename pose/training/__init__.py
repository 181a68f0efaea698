"""Training a lifter: loop, losses, optimisers, schedules, measuring."""
