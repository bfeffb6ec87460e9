"""One JSON object a line, of allowed fields only: ids, codes, counts and times, never what anybody wrote."""

import json
import logging
import sys
from datetime import UTC, datetime
from pathlib import Path

OWN = "tidings"
"""Our loggers lie below this name; their messages are constant words."""

FIELDS = (
    "event_id",
    "delivery_id",
    "notification_id",
    "tenant_hash",
    "trace_id",
    "channel",
    "provider",
    "attempt",
    "outcome",
    "status",
    "code",
    "fenced",
    "latency_ms",
    "restarts",
    "error_type",
    "method",
    "route",
    "http_status",
)
"""Extra fields that a log line may carry. A new one is added here on purpose, or it is not logged."""


class JsonLines(logging.Formatter):
    """Formats a record as one line of JSON.

    Of a library's record only the template is kept: its arguments may hold an address, a URL or a token.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its end."""
        line: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage() if _ours(record.name) else str(record.msg),
        }
        line |= {name: value for name in FIELDS if (value := record.__dict__.get(name)) is not None}
        if record.exc_info and record.exc_info[0]:
            line["error_type"] = record.exc_info[0].__name__
            line["error_at"] = _innermost(record)
        return json.dumps(line, ensure_ascii=False, default=str)


class _QuietLibraries(logging.Filter):
    """Lets our own records through by level, and a library's only from WARNING on, whatever the level is set to."""

    def filter(self, record: logging.LogRecord) -> bool:
        return _ours(record.name) or record.levelno >= logging.WARNING


def configure(level: str, file: Path | None = None) -> None:
    """Sends every record of this process to standard error, or to the file, which only its owner may read."""
    if file is None:
        handler: logging.Handler = logging.StreamHandler(sys.stderr)
    else:
        file.touch(mode=0o600, exist_ok=True)
        handler = logging.FileHandler(file, encoding="utf-8")
    handler.setFormatter(JsonLines())
    handler.addFilter(_QuietLibraries())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)


def _ours(name: str) -> bool:
    return name == OWN or name.startswith(f"{OWN}.")


def _innermost(record: logging.LogRecord) -> str | None:
    """Where an exception was raised; its text is left out on purpose."""
    trace = record.exc_info[2] if record.exc_info else None
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return None
    code = trace.tb_frame.f_code
    return f"{Path(code.co_filename).name}:{trace.tb_lineno} {code.co_name}"
