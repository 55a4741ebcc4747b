"""Bluesky's stand-in with the further calls of a server, which the product does not make: create, delete, and mixed
writes."""

from typing import Any

from socialpub.sandbox.bluesky.api import REPO
from socialpub.sandbox.bluesky.network import BlueskyRecord, invalid, refused
from socialpub.sandbox.messages import Refusal, Reply, SandboxRequest, json_reply
from socialpub.sandbox.network import api_call, open_call
from tests.stand_ins.bluesky import CALLS_SECONDS, DAY_SECONDS, BlueskyServer

MAX_WRITES = 200


class BlueskyStandIn(BlueskyServer):
    def create_session(self, request: SandboxRequest) -> Reply:
        """Count the sign-in of an account."""
        body = request.json_object()
        if not isinstance(body["identifier"], str) or not isinstance(body["password"], str):
            raise invalid("Input/identifier and Input/password must be strings")
        identifier = body["identifier"].lower()
        self.count_points(request, ("sign_ins", identifier), self.limits["sign_ins"], CALLS_SECONDS)
        self.count_points(request, ("sign_ins_of_day", identifier), self.limits["sign_ins_of_day"], DAY_SECONDS)
        return super().create_session(request)

    @open_call("", "/xrpc/{method}")
    def unknown_method(self, request: SandboxRequest) -> Reply:
        """Respond to a method of another service, or to a known one with the wrong HTTP method."""
        if any(call.path.endswith(f"/xrpc/{request.path_params['method']}") for call in self.declared_calls()):
            raise invalid(f"Incorrect HTTP method ({request.method})")
        raise invalid(f"No service configured for {request.path_params['method']}")

    @api_call("POST", f"{REPO}.createRecord")
    def create_record(self, request: SandboxRequest) -> Reply:
        """Store a new record. A key that is taken is an internal error, as on the real server."""
        body = self.repo_body(request)
        body["rkey"] = body.get("rkey") or self.new_tid()
        record, validation = self.new_record(request, body, body["record"], body.get("validate"))
        if record.uri in self.records:
            raise refused("InternalServerError")
        self.require_blobs(record)
        self.commit([record])
        facts = {"uri": record.uri, "cid": record.cid, "validationStatus": validation}
        return json_reply(200, facts | self.commit_json())

    @api_call("POST", f"{REPO}.deleteRecord")
    def delete_record(self, request: SandboxRequest) -> Reply:
        body = self.repo_body(request)
        present = self.records.get(f"at://{request.account.did}/{body['collection']}/{body['rkey']}")
        if present is None:
            return json_reply(200, {})
        if body.get("swapRecord") not in (None, present.cid):
            raise refused("InvalidSwap", f"Record was at {present.cid}")
        self.remove([present.uri])
        return json_reply(200, self.commit_json())

    def apply_writes(self, request: SandboxRequest) -> Reply:
        """Make all writes of one call, or none."""
        body = self.repo_body(request)
        writes = body["writes"]
        if not isinstance(writes, list) or not all(isinstance(one, dict) and "$type" in one for one in writes):
            raise invalid("Input/writes must be an array of objects with the property $type")
        if len(writes) > MAX_WRITES:
            raise invalid(f"Too many writes. Max: {MAX_WRITES}")
        stored: dict[str, BlueskyRecord] = {}
        deleted: list[str] = []
        results = [self._write(request, one, body.get("validate"), stored, deleted) for one in writes]
        for record in stored.values():
            self.require_blobs(record)
        self.remove(deleted)
        self.commit(stored.values())
        return json_reply(200, {**self.commit_json(), "results": results})

    def _write(
        self,
        request: SandboxRequest,
        write: dict[str, Any],
        validate: bool | None,
        stored: dict[str, BlueskyRecord],
        deleted: list[str],
    ) -> dict[str, Any]:
        """Add one write to what is stored or deleted. Return its result."""
        action = str(write["$type"]).rpartition("#")[2]
        if action == "create" and write.get("rkey") is None:
            write["rkey"] = self.new_tid()
        uri = self.uri_of(request.account, write.get("collection"), write.get("rkey"))
        taken = uri in stored or (uri in self.records and uri not in deleted)
        if action not in ("create", "update", "delete"):
            raise invalid(f"Action not supported: {write['$type']}")
        record, validation = None, ""
        if action != "delete":
            record, validation = self.new_record(request, write, write.get("value"), validate)
        if taken == (action == "create"):
            raise refused("InternalServerError")
        result: dict[str, Any] = {"$type": f"com.atproto.repo.applyWrites#{action}Result"}
        if record is None:
            deleted.append(uri)
            return result
        stored[uri] = record
        return result | {"uri": uri, "cid": record.cid, "validationStatus": validation}

    @open_call("GET", "/xrpc/com.atproto.sync.getRepoStatus")
    def repo_status(self, request: SandboxRequest) -> Reply:
        account = self.served_account(request.query()["did"])
        if account is None:
            raise Refusal(json_reply(400, {"error": "RepoNotFound", "message": "Could not find repo"}))
        if account.status == "active":
            return json_reply(200, {"did": account.did, "active": True, "rev": self.new_tid()})
        return json_reply(200, {"did": account.did, "active": False, "status": account.status})
