"""Window (pygame, SDL) that shows an image above lines of text, and reports pressed keys."""

import os
import sys
from typing import Self

from pose.errors import PoseError
from pose.structures.types import U8
from pose.utils.silence import silenced

ADVICE = "use --web for a browser, or --headless to run without a display"
TEXT_SIZE = 17  # px
MARGIN = 8
PAPER, INK, DIM, ALERT = (24, 27, 33), (236, 238, 242), (150, 158, 170), (255, 176, 70)
RECORDING = (230, 50, 50)
NO_DISPLAY = ("dummy", "offscreen")  # SDL's fallback without a display
MIN_WINDOW_SIZE = 760, 420  # px, for the status line
TEXT_ROWS = 4
MAX_SCREEN_FRACTION = 0.85  # of a new window


class Display:
    """A window that is open within its context."""

    def __init__(self, title: str) -> None:
        os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
        try:
            import pygame
        except ImportError as error:
            raise PoseError(f"the window needs pygame: pip install 'pose-run[webcam]'; or {ADVICE}") from error
        self._pygame = pygame
        try:
            with silenced(sys.stderr, 2):  # SDL tries several kinds of displays; the message names what is missing
                pygame.display.init()
            if pygame.display.get_driver() in NO_DISPLAY and "SDL_VIDEODRIVER" not in os.environ:
                raise pygame.error("no display found")
            pygame.font.init()
            pygame.display.set_caption(title)
            screens = pygame.display.get_desktop_sizes()
            self._screen = pygame.display.set_mode(MIN_WINDOW_SIZE, pygame.RESIZABLE)
        except pygame.error as error:
            pygame.quit()
            raise PoseError(f"cannot open a window ({error}): {ADVICE}") from error
        self._max_size = tuple(round(MAX_SCREEN_FRACTION * side) for side in screens[0])
        self._font = pygame.font.Font(None, round(1.35 * TEXT_SIZE))
        self._shape: tuple[int, int] | None = None

    def pressed(self) -> list[str]:
        """Return the names of the keys pressed since the last call, in order. Closing the window counts as key 'q'."""
        pygame, names = self._pygame, []
        for event in pygame.event.get():
            if event.type == pygame.QUIT:
                names.append("q")
            elif event.type == pygame.KEYDOWN:
                names.append(pygame.key.name(event.key))
        return names

    def show(self, picture: U8 | None, lines: list[str], alert: str = "", recording: str = "") -> None:
        """Show an image at the largest size that fits, with text below."""
        pygame = self._pygame
        if picture is not None and picture.shape[:2] != self._shape:
            self._shape = picture.shape[:2]
            self._fit(picture.shape[1], picture.shape[0])
        width, height = self._screen.get_size()
        texts = [(row, ALERT) for row in self._wrapped(alert, width)]
        for number, line in enumerate(lines):
            texts += [(row, DIM if number else INK) for row in self._wrapped(line, width)]
        spacing = self._font.get_linesize()
        top = max(0, height - self._text_height(max(TEXT_ROWS, len(texts))))
        self._screen.fill(PAPER)
        if picture is not None and top > 0:
            self._paint(picture, (width, top))
        for row, (text, colour) in enumerate(texts):
            self._screen.blit(self._font.render(text, True, colour), (MARGIN, top + MARGIN + row * spacing))
        if recording:
            pygame.draw.circle(self._screen, RECORDING, (MARGIN + 9, MARGIN + 9), 8)
            self._screen.blit(self._font.render(recording, True, RECORDING, PAPER), (MARGIN + 24, MARGIN))
        pygame.display.flip()

    def _text_height(self, rows: int) -> int:
        return rows * self._font.get_linesize() + 2 * MARGIN

    def _fit(self, width: int, height: int) -> None:
        """Resize the window for an image of a new size, within the screen."""
        below = self._text_height(TEXT_ROWS)
        scale = min(1.0, self._max_size[0] / width, (self._max_size[1] - below) / height)
        size = max(MIN_WINDOW_SIZE[0], round(scale * width)), max(MIN_WINDOW_SIZE[1], round(scale * height) + below)
        if size != self._screen.get_size():
            self._screen = self._pygame.display.set_mode(size, self._pygame.RESIZABLE)

    def _paint(self, picture: U8, area: tuple[int, int]) -> None:
        pygame = self._pygame
        height, width = picture.shape[:2]
        scale = min(area[0] / width, area[1] / height)
        size = max(1, round(scale * width)), max(1, round(scale * height))
        surface = pygame.image.frombuffer(picture, (width, height), "RGB")
        if size != (width, height):
            surface = pygame.transform.smoothscale(surface, size)
        self._screen.blit(surface, ((area[0] - size[0]) // 2, (area[1] - size[1]) // 2))

    def _wrapped(self, text: str, width: int) -> list[str]:
        """Wrap text into rows of at most `width` px."""
        rows: list[str] = []
        for word in text.split(" ") if text else []:
            longer = f"{rows[-1]} {word}" if rows else word
            if rows and self._font.size(longer)[0] > width - 2 * MARGIN:
                rows.append(word)
            else:
                rows[-1:] = [longer]
        return rows

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._pygame.quit()
