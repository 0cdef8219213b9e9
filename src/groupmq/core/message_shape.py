"""The shape of an error message: its first line with placeholders for numbers, ids and quoted text."""

from __future__ import annotations

import re

_LONGEST = 200
_REPLACED = (
    (re.compile(r"(?<!\w)'[^'\n]*'|\"[^\"\n]*\"|`[^`\n]*`"), "'...'"),
    (re.compile(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b|\b0x[0-9a-fA-F]+\b"), "<id>"),
    # Hexadecimal digits, or a long word with a digit in it: 8f3ab21c, V1StGXR8_Z5j.
    (re.compile(r"\b(?=[a-fA-F]*[0-9])(?=[0-9]*[a-fA-F])[0-9a-fA-F]{6,}\b"), "<id>"),
    (re.compile(r"\b(?=\w*[0-9])(?=\w*[A-Za-z])\w{10,}\b"), "<id>"),
    (re.compile(r"\d+(?:[.,:]\d+)*"), "#"),
)


def shape_of(reason: str, error_class: str | None) -> str:
    """The shape of a message. A class name at its beginning is removed: the class is stored apart from the message."""
    line = reason.strip().partition("\n")[0]
    name = (error_class or "").rpartition(".")[2]
    if name and line.startswith(name):
        line = line[len(name) :].removeprefix(":").lstrip() if line[len(name) : len(name) + 1] in (":", "") else line
    line = line[: 2 * _LONGEST]
    for pattern, instead in _REPLACED:
        line = pattern.sub(instead, line)
    return line[:_LONGEST]
