//! What an `.sbt` trace file is: header, blocks, columns and index.
