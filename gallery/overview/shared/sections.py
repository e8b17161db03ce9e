"""Show what a program printed in parts, each under the code that it belongs to."""


def show_section(output, name):
    """Print the lines of ``output`` between ``--- name`` and the next such heading."""
    print(output.partition(f"--- {name}\n")[2].partition("---")[0], end="")
