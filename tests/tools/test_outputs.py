"""The outputs of samples must be the accepted and committed ones."""

from tools.execute.expected_outputs import outputs_on

BUILD = ["tools.execute"]
ACCEPT = ("tools.accept_outputs",)
PAGE = """\
Title
=====

.. code-block:: none

    a listing of the text

.. code-block:: Python

    print("one")

.. rst-class:: sphx-glr-script-out

 .. code-block:: none

    one
      two

    three

Text.

.. list-table::
   :header-rows: 1
   :class: result-table

   * - name
     - value

.. list-table::

   * - of the text
"""


def test_what_a_page_shows():
    assert outputs_on(PAGE) == "one\n  two\n\nthree\n\n* - name\n  - value\n"


def test_another_output_fails_the_build_until_it_is_accepted(project):
    project.sample("print('old')\nprint('same')\n", output="old\nsame\n")
    assert project.run(*BUILD)[0] == 0
    project.sample("print('new')\nprint('same')\n", output="old\nsame\n")
    output = project.fail(*BUILD)
    assert "gallery/tutorial/sample.py: the output differs from the accepted one" in output
    assert "    -old\n    +new\n     same\n" in output
    assert "gallery/tutorial/sample/output.txt" in output and "make accept-outputs" in output
    assert "'old'" in project.read("_build/execute/tutorial/sample.rst"), "the last good page"
    project.fail(*BUILD)  # It was not taken for a good run.
    status, output = project.run(*ACCEPT)
    assert status == 0 and "wrote gallery/tutorial/sample/output.txt" in output
    assert project.read("gallery/tutorial/sample/output.txt") == "new\nsame\n"
    assert project.run(*BUILD)[0] == 0
    assert "'new'" in project.read("_build/execute/tutorial/sample.rst")


def test_a_rule_says_what_may_differ(project):
    code = "print('took', {}, 's')\n# output may differ in: \\d+(?= s)\n"
    project.sample(code.format(17), output="took 5 s\n")
    assert project.run(*BUILD)[0] == 0
    assert "took 17 s" in project.read("_build/execute/tutorial/sample.rst")
    project.sample(code.format("'long'"), output="took 5 s\n")
    assert "    -took … s\n    +took long s\n" in project.fail(*BUILD)


def test_accepting_needs_a_run_and_removes_outputs_without_a_sample(project):
    project.sample("print('new')\n")
    output = project.fail(*ACCEPT)
    assert "gallery/tutorial/sample.py: without an output that could be accepted" in output
    assert project.run(*BUILD)[0] == 0
    project.write("gallery/tutorial/gone/output.txt", "old\n")
    assert "removed gallery/tutorial/gone/output.txt" in project.run(*ACCEPT)[1]
    assert not (project.root / "gallery/tutorial/gone/output.txt").exists()


def test_stderr_is_never_accepted_and_holds_up_no_other_sample(project):
    project.sample("print('old')\n", output="older\n")
    assert "-older\n    +old\n" in project.fail(*BUILD)
    code = "import sys\nprint('new')\nprint('to stderr', file=sys.stderr)\n"
    project.sample(code, output="older\n")
    project.sample("print('right')\n", name="other", output="wrong\n")
    assert "unexpected output on stderr\n    to stderr\n" in project.fail(*BUILD)
    output = project.fail(*ACCEPT)
    assert "error: gallery/tutorial/sample.py: without an output" in output
    assert project.read("gallery/tutorial/sample/output.txt") == "older\n"
    assert project.read("gallery/tutorial/other/output.txt") == "right\n"
