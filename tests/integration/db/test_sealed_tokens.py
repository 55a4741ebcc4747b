"""Sealed tokens belong to their row and column."""

import pytest

from socialpub.accounts import tokens
from socialpub.core.errors import OperatorError
from socialpub.db.states import State
from tests.support.appliance import accept, add_profile, state_of
from tests.support.drain import drain


def test_a_token_carried_to_another_row_cannot_be_used_there(rt, network, profile, clock):
    other = add_profile(rt, account_id="other", tokens=("access-other", None))
    rt.db.write(
        lambda tx: tx.execute_sql(
            "UPDATE profile SET access_token = (SELECT access_token FROM profile WHERE id = ?) WHERE id = ?",
            (other, profile),
        )
    )
    post = accept(rt, profile)
    drain(rt, clock)
    assert state_of(rt, post) is State.FAILED
    assert network.jobs == []


def test_a_token_carried_to_another_column_cannot_be_used_there(rt, profile):
    rt.db.write(lambda tx: tx.execute_sql("UPDATE profile SET access_token = refresh_token"))
    with pytest.raises(OperatorError, match="cannot be decrypted"):
        tokens.load_fresh(rt, profile)
