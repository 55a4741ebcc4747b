"""Why a delivery is as it is: one row per attempt at a step (contract 1.15). Never a secret, never a body."""

from socialpub.db.states import READ_BACK
from socialpub.providers.base import Kind

STEP_KINDS = (*Kind, READ_BACK)
"""What the steps of attempts are counted by."""
