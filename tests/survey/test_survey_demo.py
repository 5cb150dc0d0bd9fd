"""The survey demonstration, as it is typed."""

import pytest

from stirred.survey import demo


def test_the_demonstration_prints_estimates_beside_the_truth(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(demo, "PERSONS", 60_000)
    demo.run(tmp_path / "demo")
    printed = capsys.readouterr().out
    assert "Verified: tables" in printed and "FAILS" not in printed
    assert "of 13 intervals contain the truth" in printed
    assert (tmp_path / "demo" / "release" / "README.txt").exists()
    with pytest.raises(Exception, match="exists"):
        demo.run(tmp_path / "demo")
