"""How commands state a mistake: one line on standard error."""


def error_line(capsys) -> str:
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert said.count("\n") == 1, said
    return said
