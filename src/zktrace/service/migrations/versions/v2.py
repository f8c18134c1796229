"""A second factor of an account: its secret, and the step of the last code that was taken."""

from typing import Final

from alembic import op

revision: Final = "2"
down_revision: Final = "1"


def upgrade() -> None:
    """Nobody has one yet."""
    op.execute("ALTER TABLE zks_accounts ADD COLUMN totp_secret TEXT")
    op.execute("ALTER TABLE zks_accounts ADD COLUMN totp_step BIGINT NOT NULL DEFAULT 0")
