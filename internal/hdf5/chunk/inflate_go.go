//go:build !libdeflate || !cgo

package chunk

// Backend names what inflates: "Go" or "libdeflate".
const Backend = "Go"

// copyMapped: a page that a mapped file lost is a fault that Go code survives.
const copyMapped = false

// inflater inflates zlib streams.
type inflater = flate
