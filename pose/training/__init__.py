"""Training of lifters and forecasters: training loop, losses, optimisers, learning rate schedules and metrics."""
