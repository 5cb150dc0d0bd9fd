"""The survey demonstration, as it is typed."""

from stirred.survey import demo


def test_the_demonstration_prints_estimates_beside_the_truth(tmp_path, command, monkeypatch):
    monkeypatch.setattr(demo, "PERSONS", 60_000)
    ended = command("demo", "survey", "--out", tmp_path / "demo")
    assert ended.code == 0 and "Verified: tables" in ended.out and "FAILS" not in ended.out
    assert "of 13 intervals contain the truth" in ended.out
    assert (tmp_path / "demo" / "release" / "README.txt").exists()
    again = command("demo", "survey", "--out", tmp_path / "demo")
    assert again.code == 2 and "exists" in again.err
