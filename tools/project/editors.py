"""Files that editors leave beside the one that is open: locks, swap files, backups."""

import re

# .gitignore names the same. Vim tries with 4913 whether it can write; KDE's editors first write
# page.po.AbCdEf; Lokalize keeps its project in index.lokalize.
_NAME = re.compile(
    r"\..*|.*~|#.*#|4913|.*\.(?:bak|orig|rej|tmp|temp|lock|swp|swo|save(?:\.\d+)?|lokalize)|"
    r".*\.po\.\w{6}|Thumbs\.db|desktop\.ini"
)


def is_editors_file(name: str) -> bool:
    """Return whether a file of this name is an editor's, not a translator's or an author's."""
    return _NAME.fullmatch(name) is not None
