"""The one table from redis-py's exceptions to ours."""

from __future__ import annotations

from redis import exceptions as theirs

from poller import errors

#: The server is down, full, starting or denies access: a later attempt can succeed.
#: InvalidResponse: another program answers at the address of Redis.
_AWAY = (
    "ConnectionError TimeoutError BusyLoadingError MaxConnectionsError OutOfMemoryError "
    "ReadOnlyError MasterDownError ClusterDownError TryAgainError AuthenticationError "
    "AuthenticationWrongNumberOfArgsError AuthorizationError ExternalAuthProviderError "
    "NoPermissionError InvalidResponse"
)
_CONFLICT = "WatchError LockError LockNotOwnedError"
#: The server refused a command: a bug of ours, or a Redis cluster instead of one server.
_REFUSED = (
    "RedisError ResponseError DataError ExecAbortError ModuleError NoScriptError "
    "NoSuchFieldsetError PubSubError ChildDeadlockedError IncorrectPolicyType AskError MovedError "
    "ClusterError ClusterCrossSlotError CrossSlotTransactionError InvalidPipelineStack "
    "RedisClusterException SlotNotCoveredError"
)
_KINDS: dict[str, type[errors.StoreError]] = {
    **dict.fromkeys(_AWAY.split(), errors.StoreUnavailable),
    **dict.fromkeys(_CONFLICT.split(), errors.StoreConflict),
    **dict.fromkeys(_REFUSED.split(), errors.StoreError),
}
#: By class; a version of the library may lack some. The nearest ancestor decides.
TRANSLATION: dict[type[Exception], type[errors.StoreError]] = {
    getattr(theirs, name): kind for name, kind in _KINDS.items() if hasattr(theirs, name)
}
EXPECTED = tuple(TRANSLATION)

_LOGIN_REFUSED = (theirs.AuthenticationError, theirs.AuthenticationWrongNumberOfArgsError)
#: Replies without a class of their own that ask for a later attempt.
_NOT_NOW = ("BUSY ", "MISCONF ", "NOREPLICAS ")


def translate(error: Exception, where: str) -> errors.StoreError:
    """Return an exception of the library as one of ours; `where` is the address for people."""
    ancestors = type(error).__mro__
    kind = next(TRANSLATION[base] for base in ancestors if base in TRANSLATION)
    cause = f"{type(error).__name__}: {error}"

    if isinstance(error, _LOGIN_REFUSED):
        hint = "correct user and password in POLLER_REDIS_URL (redis_url)"
        return errors.StoreUnavailable(f"the login was refused by Redis at {where}", cause, hint)
    if isinstance(error, theirs.NoPermissionError):
        hint = "grant it with ACL SETUSER, or name another user in POLLER_REDIS_URL (redis_url)"
        return errors.StoreUnavailable(f"the user may not do this in Redis at {where}", cause, hint)
    if kind is errors.StoreUnavailable or str(error).startswith(_NOT_NOW):
        hint = "is the server running? `poller up` starts one; POLLER_REDIS_URL names yours"
        return errors.StoreUnavailable(f"cannot use Redis at {where}", cause, hint)
    if kind is errors.StoreConflict:
        return kind("another process changed the same data first", cause, "repeat the command")
    return kind(f"Redis at {where} refused a command", cause)
