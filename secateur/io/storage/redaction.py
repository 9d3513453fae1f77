"""Redact credentials in locations and errors before they are shown."""

from __future__ import annotations

import errno
import os
import re

from secateur.errors import AccessDenied, SecateurError, TooManyOpenFiles

ENVIRONMENT = (
    "Credentials are not sent to other processes: each takes those of its environment, of a profile, or of the role of "
    "its machine. For Spark's executors set spark.executorEnv.AWS_ACCESS_KEY_ID, "
    "spark.executorEnv.AWS_SECRET_ACCESS_KEY and, if there is one, spark.executorEnv.AWS_SESSION_TOKEN"
)
_URI = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<host>[^/?]*)(?P<path>[^?]*)(?P<query>.*)", re.DOTALL)
_NAMES_USERS = ("abfs", "abfss", "wasb", "wasbs", "gs", "gcs", "hdfs", "viewfs")  # on Azure the user is a container
S3 = ("s3", "s3a", "s3n")  # their user is an access key
_USERS = (
    re.compile(r"(?<=://)[^\s'\"/@]*:[^\s'\"]*@"),  # a password may have an unescaped slash
    re.compile(r"(?<=s3://)[^\s'\"/@]+@|(?<=s3[an]://)[^\s'\"/@]+@"),
)
_PARAMETER = re.compile(
    r"([?&][^=&\s]*(?:key|secret|token|passw|credential|signature|sig|sas)[^=&\s]*=)[^&\s'\"]*", re.IGNORECASE
)
_REFUSED = re.compile(
    r"ACCESS_DENIED|INVALID_ACCESS_KEY|INVALID_CLIENT_TOKEN|EXPIRED_TOKEN|SIGNATURE_DOES_NOT_MATCH|UNRECOGNIZED_CLIENT"
    r"|HTTP status 40[13]|40[13] (?:Unauthorized|Forbidden)|AccessDenied|AuthenticationFailed|AuthorizationFailure"
    r"|PermissionDenied|Unauthenticated|Failed to get token from \w+Credential",
)
_NO_AZURE_TOKEN = re.compile(r"Failed to get token from \w+Credential")  # followed by a trace of C++ names
_OF_AZURE = re.compile(r"Azure Error|Microsoft(?:Azure)? error|MicrosoftAzure|blob\.core\.", re.IGNORECASE)
_OF_GOOGLE = re.compile(r"googleapis|google::cloud|GCS|gcs", re.ASCII)
_AZURE_CREDENTIALS = (
    "set AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_TOKEN, or AZURE_TENANT_ID, AZURE_CLIENT_ID and "
    "AZURE_CLIENT_SECRET, log in with `az login`, or run where the machine has a managed identity"
)
_GOOGLE_CREDENTIALS = (
    "set GOOGLE_APPLICATION_CREDENTIALS to a file of credentials, log in with `gcloud auth application-default login`, "
    "or run where the machine has a service account"
)
_EACH_PROCESS = "Credentials are not sent to other processes: on the driver and on every executor, "

_NO_FILES = os.strerror(errno.EMFILE)  # in messages of libraries that omit its number


def redacted_location(location: str) -> str:
    """Return a location without credentials and without a query; a path is returned unchanged.

    The user in a URI is removed completely, because it may be an access key. On stores where it is a container or a
    name, only the part after its first colon is removed.
    """
    match = _URI.fullmatch(location)
    if match is None or match["scheme"].lower() == "file":
        return location
    user, at, host = match["host"].rpartition("@")
    user = user.partition(":")[0] if match["scheme"].lower() in _NAMES_USERS else ""
    return f"{match['scheme']}://{user}{at if user else ''}{host}{match['path']}"


def has_secrets(location: str) -> bool:
    """Return whether a location contains credentials."""
    match = _URI.fullmatch(location)
    if match is None:
        return False
    user, _, _ = match["host"].rpartition("@")
    is_secret = bool(user) and (match["scheme"].lower() not in _NAMES_USERS or ":" in user)
    return is_secret or _PARAMETER.search(match["query"]) is not None


def without_secrets(text: str) -> str:
    """Redact the credentials of URIs in a text, such as an error of a library."""
    for user in _USERS:
        text = user.sub("***@", text)
    return _PARAMETER.sub(r"\1***", text)


def cannot_open(location: str, error: Exception) -> str:
    """Return the error text for an unopenable location, redacted even if it is not a valid URI."""
    return without_secrets(f"cannot open {redacted_location(location)}: {error}")


def refused(error: Exception) -> bool:
    """Return whether a store refuses the credentials of this process."""
    return _REFUSED.search(str(error)) is not None


def explained(error: Exception) -> str:
    """Explain an error of a library; if a store refuses credentials, also say where they are looked for."""
    if _NO_AZURE_TOKEN.search(str(error)):
        return f"Azure gave no token: {_AZURE_CREDENTIALS}"
    text = " ".join(without_secrets(str(error)).splitlines())
    return f"{text.rstrip('.')}. {_where_from(text)}" if refused(error) else text


def _where_from(text: str) -> str:
    """Return where credentials of the store are looked for whose error this is."""
    if _OF_AZURE.search(text):
        return _EACH_PROCESS + _AZURE_CREDENTIALS
    return _EACH_PROCESS + _GOOGLE_CREDENTIALS if _OF_GOOGLE.search(text) else ENVIRONMENT


def trouble(what: str, error: Exception, kind: type[SecateurError]) -> SecateurError:
    """Return an error that says `what` went wrong and why.

    AccessDenied if a store refuses, TooManyOpenFiles if no file can be opened at all, else `kind`.
    """
    text = f"{what}: {explained(error)}"
    if getattr(error, "errno", None) in (errno.EMFILE, errno.ENFILE) or _NO_FILES in str(error):
        return TooManyOpenFiles(text)
    return AccessDenied(text) if refused(error) else kind(text)
