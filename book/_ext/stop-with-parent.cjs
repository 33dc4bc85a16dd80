// Loaded into KaTeX's server: it ends when the build that started it does, even when that is killed.
process.stdin.on("end", () => process.exit()).resume();
