"""Show a result as a table: aligned text in a terminal, a real table on the page."""


def print_table(header, rows):
    """Print ``rows``, lists of strings, in columns below ``header``."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    for row in [header, *rows]:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        print("  ".join(cells).rstrip())


# The build of the site puts a function here that makes the table part of the page.
show_on_page = None


def show_table(header, rows):
    """Show ``rows``, lists of strings as long as ``header``, where the reader looks."""
    (show_on_page or print_table)(header, rows)
