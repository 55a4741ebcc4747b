"""Texts with a secret in them, as they turn up in messages, headers, URLs and bodies; each secret holds `hush`."""

HUSH = "Zm9vYmFy-hush_0123456789"

SECRETS = [
    f"Authorization: Bearer {HUSH}",
    f"authorization: bearer x{HUSH}",
    f"headers={{'Authorization': 'Basic {HUSH}'}}",
    f"Bearer {HUSH}",
    f"key spk_0190abc_{HUSH} refused",
    f"GET /storage/media/a?expires=17&signature={HUSH} HTTP/1.1",
    f"https://example.com/path?{HUSH}",
    f"https://example.com/cb?state=1&code={HUSH}#_=_",
    f"https://me:{HUSH}@example.com/",
    f"access_token={HUSH}&token_type=bearer",
    f'{{"access_token": "{HUSH}", "refresh_token":"{HUSH}"}}',
    f'{{"client_secret": "with \\" quote {HUSH}"}}',
    f"{{'refresh_token': '{HUSH}'}}",
    f'"body": "{{\\"access_token\\": \\"{HUSH}\\"}}"',
    f"clientSecret: {HUSH}",
    f"code_verifier={HUSH}",
    f"signature={HUSH}",
    f"password = {HUSH}",
]
