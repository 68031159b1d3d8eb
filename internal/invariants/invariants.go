// Package invariants says whether this is a checked build: one made with
// -tags invariants, or with -race. Checked builds make mistakes with lifetimes loud, at
// some cost in speed; in other builds Enabled is a false constant, and the compiler
// removes what it guards:
//
//	if invariants.Enabled {
//		invariants.Poison(buf)
//	}
package invariants

// PoisonByte fills released memory in checked builds. It is not valid UTF-8, a large
// negative number in every integer type, and an implausible one in every float type.
const PoisonByte = 0xCC

// Poison overwrites b with PoisonByte. It overwrites b in every build: callers guard
// the call with Enabled.
func Poison(b []byte) {
	if len(b) == 0 {
		return
	}
	b[0] = PoisonByte
	for n := 1; n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
}
