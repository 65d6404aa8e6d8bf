"""Errors of the runner, split by cause and remedy.

    RunnerError
      UsageError          the command line is wrong (exit 2)
        UnknownSetting      a setting is unknown: names the nearest
      DatasetError        an input file is wrong: names file, row and field (exit 1)
      RunChanged          resuming would send other requests: --accept-changes
      AttemptError        one HTTP attempt ended without a usable reply
        RateLimited         429: wait as requested, then retry
        Overloaded          503, 529: the endpoint is too busy: back off
        ServerError         other 5xx: retry, a few times
        Timeout             no byte, or not the last one, in time: retry
        ConnectionLost      refused, reset, closed in the middle: retry
        OutOfFiles          too many open files: retry, with fewer calls
        MalformedReply      the body is not the endpoint's format: retry
        BadRequest          other 4xx: the request is wrong: never retry
        AuthFailed          401, 403: the key is wrong: stop the endpoint
        QuotaSpent          no credit or quota is left: stop the endpoint
        NotServed           model or route is unknown there: stop the model
        Unavailable         a service that the run needs stays broken: stop the model
        Expired             its batch ended without it: retry, in the next
        FormRefused         a parameter is refused: retry without it
        OptionRefused       ... which the user set: stop, and leave tasks open
        ContextTooLong      the prompt does not fit: never retry
        ContentFault        500 for this content: retry, a few times, plainer
        ContentFiltered     refused with an error status: never retry
        SchemaMismatch      the content has another form: re-ask, if allowed
        BudgetExceeded      no money left for it: not sent
        Cancelled           a user or a shutdown ended it
        JobFault            the job's code raised: fix it, then retry

A cut or filtered reply *with* a body is an answer, kept and counted, not an error.
The decision for each class is in one table:
`runner/engine/failure_policy.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from store.nearest import did_you_mean


class RunnerError(Exception):
    """Something the runner cannot do; the message says what to do instead."""


class UsageError(RunnerError):
    """The command line, a setting or a configuration file is wrong."""


class UnknownSetting(UsageError):
    """A job has no setting of that name.

    Flags that are no options of a command arrive as settings too, so the command line
    adds its options to the names that may be meant.
    """

    job: str = ""
    key: str = ""
    names: tuple[str, ...] = ()  #: that may be meant
    otherwise: str = ""  #: end of the sentence if none is near

    @classmethod
    def of(
        cls, job: str, key: str, names: Iterable[str], otherwise: str
    ) -> UnknownSetting:
        """Return the error about a key that a user typed."""
        known = tuple(names)
        hint = did_you_mean(key, known, otherwise, limit=2)
        error = cls(f"{job} has no setting {key!r}; {hint}")
        error.job, error.key = job, key
        error.names, error.otherwise = known, otherwise
        return error

    def or_option(self, options: Iterable[str]) -> UnknownSetting:
        """Return the error of a command with these options."""
        if not self.names:
            return self  # raised anew with the place of the mistake
        names = dict.fromkeys((*self.names, *options))
        return UnknownSetting.of(self.job, self.key, names, self.otherwise)


class DatasetError(RunnerError):
    """An input file is wrong; the message names file, row and field."""


class RunChanged(RunnerError):
    """A resumed run would send or read something else than before."""


class AttemptError(RunnerError):
    """One attempt ended without a usable reply."""

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        retry_after_s: float | None = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        was_sent: bool = True,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after_s = retry_after_s
        self.body = body  #: the response, if any; stored in the log
        self.was_sent = (
            was_sent  #: False: no connection was made, nothing can be billed
        )
        self.headers = headers  #: relevant ones, in lower case; they report limits


class RateLimited(AttemptError):
    """The endpoint asks to slow down."""


class Overloaded(AttemptError):
    """The endpoint is overloaded."""


class ServerError(AttemptError):
    """The endpoint failed."""


class Timeout(AttemptError):
    """The endpoint did not answer in time."""


class ConnectionLost(AttemptError):
    """The connection failed, or broke before the reply was complete."""


class OutOfFiles(AttemptError):
    """This process cannot open more files."""


class MalformedReply(AttemptError):
    """The response body does not match the API."""


class BadRequest(AttemptError):
    """The endpoint refuses the request."""


class AuthFailed(AttemptError):
    """The endpoint refuses the key."""


class QuotaSpent(AttemptError):
    """The account has no credit or quota left; waiting does not help."""


class NotServed(AttemptError):
    """The endpoint does not serve the model or the route."""


class Unavailable(AttemptError):
    """A service that all calls of the model need is unavailable."""


class Expired(AttemptError):
    """The batch ended before the request was processed; it is not billed."""


class FormRefused(AttemptError):
    """The endpoint refuses a parameter that can be omitted."""


class OptionRefused(AttemptError):
    """The endpoint refuses a parameter that the user set."""


class ContextTooLong(AttemptError):
    """The prompt is longer than the model's context."""


class ContentFault(AttemptError):
    """The endpoint fails on this request only."""


class ContentFiltered(AttemptError):
    """The endpoint refuses the content with an error status."""


class SchemaMismatch(AttemptError):
    """The reply does not match the request."""


class BudgetExceeded(AttemptError):
    """The maximum cost of the attempt exceeds the remaining budget."""


class Cancelled(AttemptError):
    """The attempt was cancelled."""


class JobFault(AttemptError):
    """The job's `request` or `follow_up` raised; the message is class and line."""
