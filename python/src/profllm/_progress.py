# SPDX-License-Identifier: Apache-2.0
"""How far a call is: one line that is rewritten, on a terminal or in the output of a notebook's cell."""
import sys
import time
from typing import Any, Callable, Optional, Union

Progress = Union[bool, Callable[[str, int, int], None]]
EVERY_S = 0.1


def text_of(what: str, done: int, total: int) -> str:
    """total 0: not known."""
    return "%s %d/%d (%d %%)" % (what, done, total, 100 * done // total) if total else what


def in_notebook() -> bool:
    """Whether a kernel runs this code. A notebook has imported IPython; nothing is imported to find out."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return getattr(shell, "kernel", None) is not None


class Terminal:
    """A line of stderr; nothing where stderr is no terminal."""

    def __init__(self) -> None:
        self.is_drawn = False

    def draw(self, text: str) -> None:
        if sys.stderr.isatty():
            sys.stderr.write("\r" + text + "\x1b[K")
            sys.stderr.flush()
            self.is_drawn = True

    def clear(self) -> None:
        if self.is_drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
        self.is_drawn = False


class Notebook:
    """One output of the cell, whose last text remains."""

    def __init__(self) -> None:
        self.handle: Any = None

    def draw(self, text: str) -> None:
        from IPython.display import display

        bundle = {"text/plain": text}
        if self.handle:
            self.handle.update(bundle, raw=True)
        else:
            self.handle = display(bundle, raw=True, display_id=True)

    def clear(self) -> None:
        pass


class Meter:
    """Takes what the library or the program reports: progress=True draws it, a function gets all of it."""

    def __init__(self, progress: Progress) -> None:
        self.call = progress if callable(progress) else None
        self.line: Union[Notebook, Terminal, None] = None
        self.what: Optional[str] = None
        self.drawn_s = 0.0
        if progress is True:
            self.line = Notebook() if in_notebook() else Terminal()

    def show(self, what: str, done: int, total: int) -> None:
        if self.call:
            self.call(what, done, total)
        now = time.monotonic()
        is_due = what != self.what or now - self.drawn_s >= EVERY_S or 0 < total <= done
        if self.line and is_due:
            self.what, self.drawn_s = what, now
            self.line.draw(text_of(what, done, total))

    def say(self, text: str) -> None:
        """What goes on, where there is nothing to count."""
        if self.line:
            self.line.draw(text)

    def clear(self) -> None:
        """Before something else is printed, and at the end."""
        if self.line:
            self.line.clear()
