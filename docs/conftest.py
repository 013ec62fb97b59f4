"""What the build of the docs writes is none of their examples."""

collect_ignore = ["_build", "gallery", "generated"]
