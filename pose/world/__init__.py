"""A world to stand in: gravity, floor, true size and feet that do not slide, for people before a fixed camera."""
