"""Numbers, durations, times and settings in words, for applications that show them."""

from groupmq.core.setting_texts import expected as expected_setting
from groupmq.core.setting_texts import read as read_setting
from groupmq.core.setting_words import spelled as setting
from groupmq.core.wording import number, span, when

__all__ = ["expected_setting", "number", "read_setting", "setting", "span", "when"]
