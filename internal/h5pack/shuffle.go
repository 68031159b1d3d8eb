package h5pack

// shuffle is HDF5's filter of elements of size bytes: the first byte of all comes first, then
// the second byte of all, and so on. Bytes that make no whole element stay where they are, at
// the end.
//
//	for i := range n { for j := range size { dst[j*n+i] = src[i*size+j] } }
func shuffle(dst, src []byte, size int) {
	n := len(src) / size
	for j := range size {
		plane := dst[j*n : (j+1)*n]
		for i, at := 0, j; i < len(plane); i, at = i+1, at+size {
			plane[i] = src[at]
		}
	}
	copy(dst[n*size:], src[n*size:])
}
