package kernel

// FeistelRounds is the number of keys of Feistel.
const FeistelRounds = 8

// Feistel sets the first elements of dst to the images of positions x, x+1, ... in a Feistel
// network over Z_a x Z_b, as far as this CPU has instructions for it, and returns how many it did:
// of each, for all rounds in pairs,
//
//	hi, lo := x/b, x%b
//	for r := 0; r < FeistelRounds; r += 2 {
//		hi = (hi + high(mix(lo+keys[r])*a)) % a
//		lo = (lo + high(mix(hi+keys[r+1])*b)) % b
//	}
//	dst[i] = hi*b + lo
//
// where high is the upper half of a product of 128 bits, and mix is
//
//	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
//	z = (z ^ z>>27) * 0x94d049bb133111eb
//	z = z ^ z>>31
//
// Positions are less than a*b, with a <= b. Both are at least feistelLanes and less than
// 2^32, or nothing is done.
func Feistel(dst []int, x, a, b uint64, keys *[FeistelRounds]uint64) (done int) {
	if a < feistelLanes || b < a || b >= 1<<32 {
		return 0
	}
	return feistelFast(dst, x/b, x%b, a, b, keys)
}

// FeistelAt is Feistel of positions in any order, which it replaces by their images; a*b is at most
// 2^52, or nothing is done.
func FeistelAt(x []int, a, b uint64, keys *[FeistelRounds]uint64) (done int) {
	if a < feistelLanes || b < a || b > 1<<26 || a*b > 1<<52 {
		return 0
	}
	return feistelAtFast(x, a, b, keys)
}

// feistelLanes is how many positions are computed at a time.
const feistelLanes = 16
