//go:build !libdeflate || !cgo

package chunk

// Backend names what inflates: "Go" or "libdeflate".
const Backend = "Go"

// inflater inflates zlib streams.
type inflater = flate
