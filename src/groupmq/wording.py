"""Numbers, durations, sizes and moments in words, for applications that show them."""

from groupmq.core.wording import number, span, when

__all__ = ["number", "span", "when"]
