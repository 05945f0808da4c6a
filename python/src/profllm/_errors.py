# SPDX-License-Identifier: Apache-2.0
"""What a call raises. Each has what was measured until then, if anything was."""
from typing import Any, Dict, List, Optional

Document = Dict[str, Any]


class Error(Exception):
    """document: the result or the experiment's document; None where none was written."""

    def __init__(self, reason: str, document: Optional[Document] = None) -> None:
        super().__init__(reason.rstrip("\n"))
        self.document = document


class Refused(Error, ValueError):
    """A mistake in options or configuration. Nothing was started. lines: one sentence for each mistake."""

    def __init__(self, reason: str, document: Optional[Document] = None) -> None:
        super().__init__(reason, document)
        self.lines: List[str] = [line for line in reason.splitlines() if line]


class Failed(Error, RuntimeError):
    """The measurement failed, or a condition of fail_if was met.

    exit_status: of the program; None for run.
    """

    def __init__(self, reason: str, document: Optional[Document] = None,
                 exit_status: Optional[int] = None) -> None:
        super().__init__(reason, document)
        self.exit_status = exit_status


class Interrupted(KeyboardInterrupt):
    """Ctrl-C: everything was stopped. document: as in Error, of the part that was measured."""

    def __init__(self, document: Optional[Document] = None) -> None:
        super().__init__("interrupted")
        self.document = document
