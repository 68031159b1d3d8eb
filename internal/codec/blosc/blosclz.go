package blosc

import "errors"

var errBlosclz = errors.New("corrupt blosclz data")

// farthest is the value of a match's 13 bits, all ones, after which 16 more bits of the distance follow.
const farthest = 8191

// blosclz fills dst from a stream of blosclz, which is a row of:
//
//	000LLLLL, then L+1 bytes                                  those bytes
//	LLLOOOOO, [if L = 7: M, up to one below 255], OOOOOOOO    L+2 (+M) bytes from O+1 bytes back;
//	                                                          if O is all ones, 16 bits more of it follow
//
// The first token is always of the first kind, and has other bits on top.
func blosclz(dst, src []byte) error {
	if len(src) == 0 {
		return errLength
	}
	token, in, out := int(src[0]&31), 1, 0
	for {
		if token < 32 {
			n := token + 1
			if n > len(src)-in || n > len(dst)-out {
				return errBlosclz
			}
			copy(dst[out:], src[in:in+n])
			in, out = in+n, out+n
		} else {
			n, distance, next, ok := match(src, in, token)
			if !ok || n > len(dst)-out || distance > out {
				return errBlosclz
			}
			in = next
			copyMatch(dst[out-distance:out+n], distance)
			out += n
		}
		if in == len(src) {
			break
		}
		token = int(src[in])
		in++
	}
	if out != len(dst) {
		return errLength
	}
	return nil
}

// match reads the length and the distance of a match. Its token is the byte before src[in].
func match(src []byte, in, token int) (n, distance, next int, ok bool) {
	n, distance = token>>5+2, token&31<<8
	for more := n == 7+2; more; in++ {
		if in == len(src) {
			return 0, 0, 0, false
		}
		n += int(src[in])
		more = src[in] == 255
	}
	if in == len(src) {
		return 0, 0, 0, false
	}
	low := int(src[in])
	distance += low + 1
	in++
	if distance == farthest+1 { // all ones
		if len(src)-in < 2 {
			return 0, 0, 0, false
		}
		distance = int(src[in])<<8 + int(src[in+1]) + farthest + 1
		in += 2
	}
	return n, distance, in, true
}

// copyMatch repeats the first distance bytes of b until b is full.
func copyMatch(b []byte, distance int) {
	for at := distance; at < len(b); {
		at += copy(b[at:], b[:at])
	}
}
