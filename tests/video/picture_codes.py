"""Images whose orientation and number can be read off after encoding."""

import numpy as np

QUADRANTS = {"red": (220, 30, 30), "green": (30, 200, 30), "blue": (30, 30, 220), "white": (235, 235, 235)}


def quadrants(width: int, height: int) -> np.ndarray:
    """Red top left, green top right, blue bottom left, white bottom right."""
    image = np.zeros((height, width, 3), np.uint8)
    middle_x, middle_y = width // 2, height // 2
    image[:middle_y, :middle_x] = QUADRANTS["red"]
    image[:middle_y, middle_x:] = QUADRANTS["green"]
    image[middle_y:, :middle_x] = QUADRANTS["blue"]
    image[middle_y:, middle_x:] = QUADRANTS["white"]
    return image


def corners(image: np.ndarray) -> list[str]:
    """The colours' names at top left, top right, bottom left, bottom right."""
    height, width = image.shape[:2]
    points = [(y, x) for y in (height // 4, 3 * height // 4) for x in (width // 4, 3 * width // 4)]
    names = list(QUADRANTS)
    colours = np.array([QUADRANTS[name] for name in names], float)
    return [names[int(np.abs(colours - image[point]).sum(axis=1).argmin())] for point in points]


def numbered(count: int, width: int = 64, height: int = 48) -> list[np.ndarray]:
    """Images that tell their number by their brightness."""
    return [np.full((height, width, 3), 20 + 200 * n // max(count - 1, 1), np.uint8) for n in range(count)]


def number_of(image: np.ndarray, count: int) -> int:
    """The inverse of `numbered`."""
    return round((float(image.mean()) - 20) * (count - 1) / 200)
