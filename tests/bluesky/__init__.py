"""Stories about Bluesky that run against Bluesky's own server and against the stand-in of the sandbox.

The real server is right: where a story passes with one of them only, the stand-in is wrong. `make bluesky` installs the
server from npm and runs the stories against it. `make test` runs them against the stand-in.
"""
