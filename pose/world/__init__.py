"""World coordinates for people: gravity, floor, metric size, and feet without skating."""
