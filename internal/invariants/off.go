//go:build !invariants && !race

package invariants

// Enabled reports whether this is a checked build.
const Enabled = false
