"""Numbers, durations, sizes and moments in words, for applications that show them."""

from groupmq.core.setting_words import spelled as setting
from groupmq.core.wording import number, span, when

__all__ = ["number", "setting", "span", "when"]
