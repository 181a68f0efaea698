"""The scene solver: gravity, focal length, floor, camera height and body sizes in one estimate."""
