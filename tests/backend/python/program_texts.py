"""The judge's programs in Python, which headers hold as text."""
import re
import sys


def write(headers, folder, *names):
    """As files that can be imported."""
    for name in names:
        text = (headers / f"{name}_source.hpp").read_text()
        (folder / f"{name}.py").write_text(re.search(r'R"python\((.*)\)python"', text, re.DOTALL)[1])
    sys.path.insert(0, str(folder))
