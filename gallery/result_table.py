"""Show a result as a table: aligned text in a terminal, a real table on the page."""


def print_table(header, rows):
    """Print ``rows``, lists of strings, in columns below ``header``."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    for row in [header, *rows]:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        print("  ".join(cells).rstrip())


# Functions that show a table. The build of the site adds one that makes it part of the page.
displays = [print_table]


def show_table(header, rows):
    """Show ``rows``, lists of strings as long as ``header``, where the reader looks."""
    displays[-1](header, rows)
