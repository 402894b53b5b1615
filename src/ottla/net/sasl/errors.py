"""What goes wrong in an exchange."""


class SaslError(Exception):
    """An exchange cannot go on. The message says why, for this side's log or user: it holds no secret, but is not for
    the peer, whom it would tell which users there are."""


class TokenError(SaslError):
    """No token could be had."""


class WrongPasswordError(SaslError):
    """The exchange was as it should be, but for the password."""
