"""Bluesky's API of sessions, handles, records and blobs, and the directory of DIDs.

`put_record` with `swapRecord: null` cannot create a second record.
"""

from typing import Any

from socialpub.sandbox.bluesky.network import (
    APP_PASSWORD_SCOPE,
    HANDLE,
    MAIN_SCOPE,
    PROFILE,
    REVOKED,
    BlueskyAccount,
    BlueskyNetwork,
    BlueskyRecord,
    invalid,
    refused,
)
from socialpub.sandbox.memory import Token
from socialpub.sandbox.messages import Refusal, Reply, SandboxRequest, json_reply
from socialpub.sandbox.network import api_call, open_call
from socialpub.sandbox.pages import avatar

SERVER, REPO = "/xrpc/com.atproto.server", "/xrpc/com.atproto.repo"
CREATE = "com.atproto.repo.applyWrites#create"
UNSET = object()


class BlueskySandbox(BlueskyNetwork):
    # --- sessions ------------------------------------------------------------------------------------------------

    @open_call("POST", f"{SERVER}.createSession")
    def create_session(self, request: SandboxRequest) -> Reply:
        body = request.json_object()
        password = body["password"]
        account = self.served_account(body["identifier"].lower())
        if account is None:
            raise refused("AuthenticationRequired")
        name = next((name for name, app_password in account.app_passwords.items() if app_password == password), None)
        if password != account.password and (name is None or account.status == "takendown"):
            raise refused("AuthenticationRequired")
        if account.status == "takendown":
            raise refused("AccountTakedown")
        scope = MAIN_SCOPE if name is None else APP_PASSWORD_SCOPE
        return _session(request, account, self.issue(account.did, (scope,), name))

    @open_call("POST", f"{SERVER}.refreshSession")
    def refresh_session(self, request: SandboxRequest) -> Reply:
        token = self.refresh_token_of(request)
        if self.timestamp() >= token.refresh_expires_at:
            raise refused("ExpiredToken")
        account = self.accounts[token.account_id]
        if account.status == "deleted":
            raise _no_user(account)
        if account.status == "takendown":
            raise refused("AccountTakedown")
        successor = None if token.dead else self.renew(token, token.client_id or "")
        if successor is None:
            raise refused("ExpiredToken", REVOKED)
        return _session(request, account, successor)

    @api_call("GET", f"{SERVER}.getSession")
    def get_session(self, request: SandboxRequest) -> Reply:
        if request.account.status in ("deleted", "takendown"):
            raise _no_user(request.account)
        return _session(request, request.account)

    @open_call("POST", f"{SERVER}.deleteSession")
    def delete_session(self, request: SandboxRequest) -> Reply:
        """End one refresh token. The call is repeatable, and an expired token is accepted."""
        self.tokens.end(self.refresh_token_of(request))
        return Reply(200)

    def refresh_token_of(self, request: SandboxRequest) -> Token:
        """Return the pair of the refresh token in the header, even a spent or expired one. Raise Refusal."""
        token = self.tokens.by_refresh(request.bearer)
        if token is None:
            raise refused("InvalidToken")
        return token

    # --- the server, handles and DIDs ----------------------------------------------------------------------------

    @open_call("GET", f"{SERVER}.describeServer")
    def describe_server(self, request: SandboxRequest) -> Reply:
        host = request.headers.get("host", "127.0.0.1").replace(":", "%3A")
        facts: dict[str, Any] = {
            "did": f"did:web:{host}",
            "availableUserDomains": [".test"],
            "inviteCodeRequired": False,
            "links": {},
            "contact": {},
            "blobUploadLimit": self.blob_limit,
        }
        return json_reply(200, facts)

    @open_call("GET", "/xrpc/com.atproto.identity.resolveHandle")
    def resolve_handle(self, request: SandboxRequest) -> Reply:
        account = self.served_account(request.query()["handle"].lower())
        if account is None:
            raise refused("HandleNotFound")
        return json_reply(200, {"did": account.did})

    def served_account(self, name: object) -> BlueskyAccount | None:
        """Return the account of a DID or a whole handle. Short names of the sandbox are unknown to a server."""
        is_whole = isinstance(name, str) and (":" in name or HANDLE.fullmatch(name))
        account = self.account_named(str(name)) if is_whole else None
        return None if account is None or account.status == "deleted" else account

    @open_call("GET", "/plc/{did}")
    def did_document(self, request: SandboxRequest) -> Reply:
        """Respond as the directory of DIDs."""
        did = request.path_params["did"]
        account = self.accounts.get(did)
        if account is None:
            return json_reply(404, {"message": f"DID not registered: {did}"})
        return json_reply(200, _did_document(request, account))

    # --- writes --------------------------------------------------------------------------------------------------

    @api_call("POST", f"{REPO}.putRecord")
    def put_record(self, request: SandboxRequest) -> Reply:
        """Store a record under its key. The same record again writes nothing."""
        body = request.json_object()
        record, validation = self.new_record(request, body, body["record"], body.get("validate"))
        answer: dict[str, Any] = {"uri": record.uri, "cid": record.cid, "validationStatus": validation}
        present = self.records.get(record.uri)
        if present is not None and present.cid == record.cid:
            return json_reply(200, answer)
        swap = body.get("swapRecord", UNSET)
        if swap is not UNSET and swap != (None if present is None else present.cid):
            raise refused("InvalidSwap", f"Record was at {'null' if present is None else present.cid}")
        self.require_blobs(record)
        self.commit([record])
        return json_reply(200, answer | self.commit_json())

    @api_call("POST", f"{REPO}.applyWrites")
    def apply_writes(self, request: SandboxRequest) -> Reply:
        """Create records. All of them are stored, or none."""
        body = request.json_object()
        stored: dict[str, BlueskyRecord] = {}
        for write in body["writes"]:
            record, _ = self.new_record(request, write, write.get("value"), body.get("validate"))
            if record.uri in stored or record.uri in self.records:
                raise refused("InternalServerError")
            stored[record.uri] = record
        self.commit(stored.values())
        results = [
            {"$type": f"{CREATE}Result", "uri": uri, "cid": record.cid, "validationStatus": "valid"}
            for uri, record in stored.items()
        ]
        return json_reply(200, {**self.commit_json(), "results": results})

    def new_record(
        self, request: SandboxRequest, place: dict[str, Any], value: Any, validate: bool | None
    ) -> tuple[BlueskyRecord, str]:
        """Return a record for the collection and key of `place`, and how it was validated. Raise Refusal."""
        collection, rkey = place["collection"], place["rkey"]
        record = {"$type": collection, **value}
        validation = self.check_record(collection, record, validate)
        cid = self.cid_of_record(record)
        return BlueskyRecord(request.account.did, collection, rkey, record, cid, self.now()), validation

    def require_blobs(self, record: BlueskyRecord) -> None:  # for stand-ins
        """Raise Refusal if the record contains a file that was not uploaded as it says."""

    def commit_json(self) -> dict[str, Any]:
        rev = self.new_tid()
        return {"commit": {"cid": self.cid_of_record({"rev": rev}), "rev": rev}}

    # --- reads ---------------------------------------------------------------------------------------------------

    def _shown_account(self, repo: str) -> BlueskyAccount | None:
        """Return an account whose records this server shows."""
        account = self.served_account(repo)
        return account if account is not None and account.status == "active" else None

    @open_call("GET", f"{REPO}.getRecord")
    def get_record(self, request: SandboxRequest) -> Reply:
        query = request.query()
        collection, rkey = query["collection"], query["rkey"]
        account = self._shown_account(query["repo"])
        if account is None:
            raise invalid("Could not locate record")
        uri = f"at://{account.did}/{collection}/{rkey}"
        record = self.find_record(uri)
        if record is None and (collection, rkey) == (PROFILE, "self"):
            record = self._profile(account)
        if record is None or query.get("cid") not in (None, record.cid):
            raise refused("RecordNotFound", f"Could not locate record: {uri}")
        return json_reply(200, _record_json(record))

    def _profile(self, account: BlueskyAccount) -> BlueskyRecord:
        """Return the name and the picture of an account that has stored no profile of its own."""
        blob = self.add_blob(account.did, avatar(account.picture or account.name, 128), "image/png")
        value = {"$type": PROFILE, "displayName": account.name, "avatar": blob.reference}
        return BlueskyRecord(account.did, PROFILE, "self", value, self.cid_of_record(value), self.now())

    @open_call("GET", f"{REPO}.listRecords")
    def list_records(self, request: SandboxRequest) -> Reply:
        query = request.query()
        collection, written = query["collection"], query.get("limit", "50")
        account = self._shown_account(query["repo"])
        if account is None:
            raise invalid(f"Could not find repo: {query['repo']}")
        records = self.records_of(account.did, collection)
        backwards = query.get("reverse") == "true"
        if backwards:
            records.reverse()
        if cursor := query.get("cursor"):
            records = [record for record in records if (record.rkey > cursor if backwards else record.rkey < cursor)]
        page = records[: int(written)]
        answer: dict[str, Any] = {"records": [_record_json(record) for record in page]}
        if page:
            answer["cursor"] = page[-1].rkey
        return json_reply(200, answer)

    # --- blobs ---------------------------------------------------------------------------------------------------

    @api_call("POST", f"{REPO}.uploadBlob")
    def upload_blob(self, request: SandboxRequest) -> Reply:
        declared_type = request.content_type or "application/octet-stream"
        return json_reply(200, {"blob": self.add_blob(request.account.did, request.body, declared_type).reference})

    @open_call("GET", "/xrpc/com.atproto.sync.getBlob")
    def get_blob(self, request: SandboxRequest) -> Reply:
        did, cid = request.query()["did"], request.query()["cid"]
        blob = self.find_blob(did, cid) if self._shown_account(did) else None
        data = None if blob is None else self.cache.get(cid)
        if blob is None or data is None:
            raise refused("BlobNotFound" if blob is None else "InternalServerError")
        headers = [("x-content-type-options", "nosniff"), ("content-security-policy", "default-src 'none'; sandbox")]
        return Reply(200, data, blob.mime_type, headers)


# --- bodies and responses --------------------------------------------------------------------------------------------


def _no_user(account: BlueskyAccount) -> Refusal:
    return invalid(f"Could not find user info for account: {account.did}")


def _session(request: SandboxRequest, account: BlueskyAccount, token: Token | None = None) -> Reply:
    session: dict[str, Any] = {
        "did": account.did,
        "handle": account.username,
        "email": f"{account.username.replace('.', '-')}@example.com",
        "emailConfirmed": account.email_confirmed,
        "active": account.status == "active",
    }
    if account.status != "active":
        session["status"] = account.status
    if token is not None:
        session |= {"accessJwt": token.access, "refreshJwt": token.refresh}
    return json_reply(200, session | {"didDoc": _did_document(request, account)})


def _did_document(request: SandboxRequest, account: BlueskyAccount) -> dict[str, Any]:
    server = {
        "id": "#atproto_pds",
        "type": "AtprotoPersonalDataServer",
        "serviceEndpoint": f"{request.base_url}/bluesky",
    }
    return {
        "@context": ["https://www.w3.org/ns/did/v1", "https://w3id.org/security/multikey/v1"],
        "id": account.did,
        "alsoKnownAs": [f"at://{account.username}"],
        "verificationMethod": [],
        "service": [server],
    }


def _record_json(record: BlueskyRecord) -> dict[str, Any]:
    return {"uri": record.uri, "cid": record.cid, "value": record.value}
