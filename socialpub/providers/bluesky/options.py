"""The options of a post on Bluesky (contract 11.4)."""

from socialpub.providers import options

TABLE: options.Table = ()
