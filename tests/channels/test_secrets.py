"""Where signing secrets come from, and where they never come from."""

from pathlib import Path

import pytest
from pydantic import SecretStr

from channels.secrets import Secrets
from domain.errors import NotSendable
from domain.outcome import OutcomeKind, Scope


def test_the_folder_wins_and_is_read_each_time(secrets_dir: Path) -> None:
    secrets = Secrets(secrets_dir, {"main": SecretStr("configured")})
    (secrets_dir / "main").write_text("old\nnew\n")
    assert secrets.live("acme", "main") == ("old", "new")
    (secrets_dir / "main").write_text("new")
    assert secrets.live("acme", "main") == ("new",)


def test_the_configuration_holds_several_live_secrets_too() -> None:
    assert Secrets(None, {"main": SecretStr("old new")}).live("acme", "main") == ("old", "new")


def test_a_folder_without_the_name_leaves_it_to_the_configuration(secrets_dir: Path) -> None:
    assert Secrets(secrets_dir, {"other": SecretStr("configured")}).live("acme", "other") == ("configured",)


@pytest.mark.parametrize("name", [None, "", "none", "../outside", "/etc/hostname", ".hidden", "a/b", "a\0b", "folder"])
def test_a_secret_that_is_not_there_is_no_secret(secrets_dir: Path, name: str | None) -> None:
    (secrets_dir.parent / "outside").write_text("never")
    (secrets_dir / ".hidden").write_text("never")
    (secrets_dir / "folder").mkdir()
    with pytest.raises(NotSendable) as refused:
        Secrets(secrets_dir, {"folder": SecretStr("older")}).live("acme", name)
    outcome = refused.value.outcome
    assert (outcome.kind, outcome.code, outcome.scope) == (OutcomeKind.TRANSIENT, "secret_missing", Scope.CONFIG)


def test_an_empty_file_is_no_secret(secrets_dir: Path) -> None:
    (secrets_dir / "main").write_text(" \n")
    with pytest.raises(NotSendable):
        Secrets(secrets_dir, {}).live("acme", "main")


def test_a_tenants_own_secret_wins_and_no_other_tenant_reaches_it(secrets_dir: Path) -> None:
    (secrets_dir / "acme").mkdir()
    (secrets_dir / "acme" / "main").write_text("own")
    (secrets_dir / "main").write_text("shared")
    secrets = Secrets(secrets_dir, {"acme/other": SecretStr("configured")})
    assert (secrets.live("acme", "main"), secrets.live("zeta", "main")) == (("own",), ("shared",))
    assert secrets.live("acme", "other") == ("configured",)
    for tenant, name in [("zeta", "acme/main"), ("zeta", "other"), ("..", "main/../acme/main"), ("zeta", "acme")]:
        with pytest.raises(NotSendable):
            secrets.live(tenant, name)
