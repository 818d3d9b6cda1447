"""The one table from redis-py's exceptions to ours."""

from __future__ import annotations

from redis import exceptions as theirs

from poller import errors

#: It is away, full, starting up, or does not let us in: the same again, later, can succeed.
_AWAY = (
    "ConnectionError TimeoutError BusyLoadingError MaxConnectionsError OutOfMemoryError ReadOnlyError MasterDownError "
    "ClusterDownError TryAgainError AuthenticationError AuthenticationWrongNumberOfArgsError AuthorizationError "
    "ExternalAuthProviderError NoPermissionError InvalidResponse"  # the last: whatever answers there is not Redis
)
_CONFLICT = "WatchError LockError LockNotOwnedError"
#: It refused what we said: a mistake of ours, or a cluster where one server is expected.
_REFUSED = (
    "RedisError ResponseError DataError ExecAbortError ModuleError NoScriptError NoSuchFieldsetError PubSubError "
    "ChildDeadlockedError IncorrectPolicyType AskError MovedError ClusterError ClusterCrossSlotError "
    "CrossSlotTransactionError InvalidPipelineStack RedisClusterException SlotNotCoveredError"
)
_KINDS: dict[str, type[errors.StoreError]] = {
    **dict.fromkeys(_AWAY.split(), errors.StoreUnavailable),
    **dict.fromkeys(_CONFLICT.split(), errors.StoreConflict),
    **dict.fromkeys(_REFUSED.split(), errors.StoreError),
}
#: By class; not every version of the library has all of them. The nearest one in an exception's ancestry decides.
TRANSLATION: dict[type[Exception], type[errors.StoreError]] = {
    getattr(theirs, name): kind for name, kind in _KINDS.items() if hasattr(theirs, name)
}
EXPECTED = tuple(TRANSLATION)

#: Answers without a class of their own that say: not now.
_NOT_NOW = ("BUSY ", "MISCONF ", "NOREPLICAS ")


def translate(error: Exception, where: str) -> errors.StoreError:
    """An exception of the library as one of ours; `where` is the server's address for people."""
    kind = next(TRANSLATION[base] for base in type(error).__mro__ if base in TRANSLATION)
    cause = f"{type(error).__name__}: {error}"
    if kind is errors.StoreUnavailable or str(error).startswith(_NOT_NOW):
        hint = "is the server running? `poller up` starts one; POLLER_REDIS_URL names yours"
        return errors.StoreUnavailable(f"cannot use Redis at {where}", cause, hint)
    if kind is errors.StoreConflict:
        return kind(
            "somebody else changed the same thing first", cause, "look at it again and repeat"
        )
    return kind(f"Redis at {where} refused a command", cause)
